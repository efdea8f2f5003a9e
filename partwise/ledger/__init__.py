"""The ledger: what parts exist, at which revision, computed from what, and what is due."""
