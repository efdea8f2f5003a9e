"""Queries over several windows: joins, negation, set operations, DISTINCT, the largest groups, the last rows."""
