"""Small files that leave nothing to decide are loaded without Spark."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.ingest.files import find
from tests.spark.landing import World


def test_small_files_need_no_session(tmp_path: Path) -> None:
    """Neither new parts nor late rows start it."""

    class Never:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"Spark is asked for {name}")

    world = World(Never(), tmp_path).define()  # type: ignore[arg-type]
    world.csv("a.csv", (0, "a", 1.0), (3, "b", 2.0))
    assert (world.ingest().rows, world.closed()) == (2, [0, 1, 2])
    world.csv("b.csv", (1, "late", 1.0))
    assert (world.ingest().late_rows, world.revisions()) == (1, {0: 1, 1: 2, 2: 1})


def test_young_files_are_waited_for_no_longer_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Parquet file with its end is whole; others must have rested for so long, what has passed already included."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "whole.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-1])
    (tmp_path / "tiny.parquet").write_bytes(b"PAR1")
    (tmp_path / "rows.csv").write_text("a\n1\n")

    def waited(name: str, age: float) -> float:
        os.utime(tmp_path / name, (time.time() - age,) * 2)
        paths = {name: str(tmp_path / name)}
        slept.clear()
        assert find.still_growing(paths, find.look(paths), 10) == frozenset()
        return slept[0] if slept else 0.0

    assert waited("whole.parquet", 0) == 0
    assert waited("cut.parquet", 0) > 9
    assert waited("tiny.parquet", 0) > 9
    assert 3 < waited("rows.csv", 6) <= 4
    assert waited("rows.csv", 11) == 0
    assert waited("rows.csv", -60) == 10  # by a clock that is ahead
