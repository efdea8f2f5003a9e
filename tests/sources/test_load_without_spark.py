"""Small files that leave nothing to decide are loaded without Spark."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from partwise.ledger.schema import part
from spark_jobs.ingest import load
from spark_jobs.ingest.files import find
from tests.spark.landing import World

DIMENSION = "dimension: nodes\ncolumns: {node: string, region: string}\nfiles: landing/nodes.csv\n"
#: Of the two rows of the first minute.
KNOWN = "2:756e668dd7422920af33b0a5ab0c99c2"


class Never:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"Spark is asked for {name}")


NEVER: Any = Never()


def test_small_files_need_no_session(tmp_path: Path) -> None:
    """Neither new parts nor late rows start it."""

    world = World(NEVER, tmp_path).define()
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


def test_dimensions_need_no_session_at_first(tmp_path: Path) -> None:
    """What their new content changes is looked up by Spark."""
    world = World(NEVER, tmp_path).define(DIMENSION)
    world.put("nodes.csv", "node,region\na,north\nb,\n")
    done = world.ingest()
    assert (done.rows, done.refused) == (2, [])
    assert world.handle("nodes").table.to_pyarrow_table().to_pylist() == [
        {"node": "a", "region": "north", "_file": 1},
        {"node": "b", "region": None, "_file": 1},
    ]


def test_the_digests_of_loaded_parts_never_change(tmp_path: Path) -> None:
    """They are kept for years, and are those that Spark would have given: `tests/spark/test_load_by_arrow.py`."""
    world = World(NEVER, tmp_path).define()
    world.csv("a.csv", (0, "", 1.5), (0, "é" * 40, -0.0), (1, "b", 2.0))
    world.ingest()
    with world.ledger.database.reading() as r:
        assert r.on.execute(select(part.c.digest).where(part.c.table == "m")).scalars().all() == [KNOWN]


def test_a_file_that_goes_while_it_is_read_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(NEVER, tmp_path).define()
    going, read = world.csv("a.csv", (0, "x", 1.0)), load.read_quickly
    world.csv("b.csv", (1, "y", 2.0))

    def gone(*given: Any) -> Any:
        found = read(*given)
        going.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(load, "read_quickly", gone)
    done = world.ingest()
    assert (done.files, done.rows, done.refused) == (1, 1, [])
    assert world.handle().table.to_pyarrow_table().column("src").to_pylist() == ["y"]
