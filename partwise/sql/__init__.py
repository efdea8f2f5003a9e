"""Spark SQL as far as Partwise must understand it: which parts of which tables a query reads."""

from partwise.sql.canonical import canonical
from partwise.sql.parse import SqlProblem
from partwise.sql.references import FoundReference, FoundReferences, analyse, find, splice

__all__ = ["FoundReference", "FoundReferences", "SqlProblem", "analyse", "canonical", "find", "splice"]
