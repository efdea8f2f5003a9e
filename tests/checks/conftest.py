"""Workspaces to load files into, as for the tests of ingest."""

from tests.spark.conftest import world

__all__ = ["world"]
