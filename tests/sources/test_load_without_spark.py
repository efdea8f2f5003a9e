"""Small files that leave nothing to decide are loaded without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
