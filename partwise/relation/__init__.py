"""Rules on the relational tree of a query."""
