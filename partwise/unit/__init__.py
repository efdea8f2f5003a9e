"""Unit tests of views, written as YAML: rows per source part, perhaps late ones, and what parts must hold."""

from partwise.unit.cases import BadCase, Case, cases_in
from partwise.unit.compare import difference

__all__ = ["BadCase", "Case", "cases_in", "difference"]
