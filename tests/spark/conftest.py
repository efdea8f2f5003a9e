"""Workspaces to load files into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.landing import World


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    """An empty workspace, its folder named so that any pattern made of it would go wrong."""
    found = World(spark, tmp_path / "work [1] {a}")
    yield found
    if hasattr(found, "ledger"):
        found.ledger.database.close()
