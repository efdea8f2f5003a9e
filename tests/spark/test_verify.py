"""`verify` finds every wrong part, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import select

from partwise import storage
from partwise.ledger.schema import reader
from partwise.parts import Parts
from spark_jobs.step.stage import stage
from spark_jobs.verify.compare import different
from spark_jobs.verify.verify import Verified, verify

from .workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("verify")]

VIEWS = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: double}
files: landing/*.csv
---
view: total
part: 1 minute
initialize: SELECT g, SUM(x) AS x FROM m[i] GROUP BY g
update: |
  SELECT COALESCE(p.g, n.g) AS g, COALESCE(p.x, 0) + COALESCE(n.x, 0) AS x
  FROM total[j-1] p FULL JOIN (SELECT g, SUM(x) AS x FROM m[j] GROUP BY g) n ON n.g <=> p.g
---
view: pairs
part: 2 minutes
update: SELECT g, x FROM total[2*j..2*j+1]
---
view: windows
part: 1 minute
query: SELECT g, SUM(x) AS s, COUNT(*) AS n FROM m [WINDOW 2 minutes] GROUP BY g HAVING COUNT(*) > 0
---
view: rising
part: 1 minute
query: |
  SELECT g, COUNT(*) AS n, SUM(b.x) AS s, FIRST(x) AS f FROM m PATTERN [a, b+]
  WHERE b.x > a.x AND b.x > PREV(b.x) GROUP BY g
"""


def row(minute: int, x: float | None, g: str = "a", second: int = 0) -> dict[str, Any]:
    return {"t": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=minute, seconds=second), "g": g, "x": x}


@pytest.fixture(scope="module")
def workspace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = Workspace(spark, tmp_path_factory.mktemp("verify"), VIEWS)
    values = {0: [1.5], 1: [2.5, 0.1], 2: [], 3: [4.0], 4: [5.0]}
    found.replace("m", {p: [row(p, x, second=at) for at, x in enumerate(xs)] for p, xs in values.items()})
    found.run()
    return found


def test_everything_is_checked_and_nothing_differs(workspace: Workspace) -> None:
    seen: dict[str, int] = {}
    readers: set[int] = set()

    def progress(table: str, done: int, of: int) -> None:
        seen[table] = done
        with workspace.ledger.database.reading() as r:
            readers.update(r.on.execute(select(reader.c.seq)).scalars())

    result = verify(workspace.engine, progress=progress)
    # Five parts of total, two of pairs, four windows, five of rising.
    assert result == Verified(16, (), 0, 0)
    assert seen == {"total": 5, "pairs": 2, "windows": 4, "rising": 5}
    assert len(readers) == 1  # upkeep knew of it all the while
    assert [path.name for path in Path(workspace.engine.warehouse).glob("_verify*")] == []
    assert verify(workspace.engine, only=["windows"]).checked == 4


def test_ctrl_c_keeps_what_was_found_and_names_the_rest(workspace: Workspace) -> None:
    done: list[str] = []

    def stopped(table: str, _done: int, _of: int) -> None:
        if done[-1:] != [table] and len(done) == 2:
            raise KeyboardInterrupt
        done.extend([] if table in done else [table])

    result = verify(workspace.engine, progress=stopped)
    assert len(done) == 2
    assert set(result.left) == {"total", "pairs", "windows", "rising"} - set(done)
    assert result.checked == sum({"total": 5, "pairs": 2, "windows": 4, "rising": 5}[view] for view in done)
    assert [path.name for path in Path(workspace.engine.warehouse).glob("_verify*")] == []
    assert verify(workspace.engine, only=result.left).checked == 16 - result.checked


def test_a_pattern_shows_what_it_means(workspace: Workspace) -> None:
    shown = workspace.rows("rising")
    assert shown[1] == []  # 1.5, 2.5, 0.1: the newest row does not rise
    assert shown[4] == [{"g": "a", "n": 2, "s": 5.0, "f": 4.0}]


@pytest.mark.parametrize("view", ["total", "pairs", "windows", "rising"])
def test_a_wrong_part_is_found(workspace: Workspace, view: str) -> None:
    """Somebody changes a table behind the ledger's back, in the version that the ledger knows."""
    part = next(p for p, rows in workspace.rows(view).items() if rows)
    handle = storage.open_at(workspace.engine.path(view, 0))
    old = workspace.spark.read.parquet(*handle.uris())
    wrong = old.where(f"part = {part}").unionByName(old)  # one part has its rows twice
    staged = stage(wrong, handle, f"wrong-{view}")
    version = storage.commit(handle, staged, handle.files, {"kind": "test"})
    engine = workspace.engine
    rows = len(workspace.rows(view)[part])
    held = workspace.ledger.take(view, "test", 60, engine.now())
    workspace.ledger.adopt(held, [(version, None)], engine.now())
    result = verify(engine, [view])
    assert result.different == ((view, part, rows, 2 * rows),)
    good = storage.open_at(engine.path(view, 0))
    version = storage.commit(good, stage(old, good, f"good-{view}"), good.files, {"kind": "test"})
    workspace.ledger.adopt(held, [(version, None)], engine.now())
    workspace.ledger.release(held, engine.now())
    assert verify(engine, [view]).different == ()


def test_stale_parts_are_told_apart_from_wrong_ones(workspace: Workspace) -> None:
    assert workspace.replace("m", {3: [row(3, 4.25)]}) == Parts.single(3)
    result = verify(workspace.engine)
    # total[3] is due and total[4] reads it, pairs[1] reads both; two windows; two parts of the pattern.
    assert (result.different, result.stale, result.checked) == ((), 7, 9)
    workspace.run()
    assert verify(workspace.engine) == Verified(16, (), 0, 0)
    workspace.replace("m", {3: [row(3, 4.0)]})  # as the other tests expect it
    workspace.run()


def test_floats_are_compared_with_a_tolerance_and_all_else_exactly(spark: SparkSession) -> None:
    def table(*rows: tuple[Any, ...]) -> Any:
        return spark.createDataFrame(list(rows), "part bigint, k string, x double, y float, m map<string,int>")

    nan, inf = float("nan"), float("inf")
    one = table((1, "a", 1.0, 1.0, {"p": 1, "q": 2}), (2, None, nan, 0.0, None), (3, "c", None, inf, {}))
    assert different(one, one) == {}
    near = table((1, "a", 1.0 + 1e-12, 1.0, {"q": 2, "p": 1}), (2, None, nan, -0.0, None), (3, "c", None, inf, {}))
    assert different(one, near) == {}
    far = table((1, "a", 1.0 + 1e-6, 1.0, {"p": 1, "q": 2}), (2, None, 5.0, 0.0, None), (3, "c", 0.0, inf, {}))
    assert different(one, far) == {1: (1, 1), 2: (1, 1), 3: (1, 1)}
    twice = table((1, "a", 1.0, 1.0, {"p": 1, "q": 2}), (1, "a", 1.0, 1.0, {"p": 1, "q": 2}), (2, "", nan, 0.0, None))
    assert different(one, twice) == {1: (1, 2), 2: (1, 1), 3: (1, 0)}
    infinite = table((1, "a", inf, 1.0, {"p": 1, "q": 2}), (2, None, nan, 0.0, None), (3, "c", None, 3.0, {}))
    assert different(one, infinite) == {1: (1, 1), 3: (1, 1)}


def test_nearly_equal_values_may_sort_differently(spark: SparkSession) -> None:
    kind = "part bigint, x double, y double"
    one = spark.createDataFrame([(1, 1.0, 5.0), (1, 1.0 + 1e-13, 2.0)], kind)
    other = spark.createDataFrame([(1, 1.0 + 1e-13, 5.0), (1, 1.0, 2.0)], kind)
    assert different(one, other) == {}
    assert different(one, spark.createDataFrame([(1, 1.0, 5.0), (1, 1.0, 5.0)], kind)) == {1: (2, 2)}
    exact = "part bigint, k int"
    rows = spark.createDataFrame([(1, 1), (1, 1), (2, 3)], exact)
    assert different(rows, spark.createDataFrame([(1, 1), (1, 2), (2, 3)], exact)) == {1: (2, 2)}
    assert different(rows, spark.createDataFrame([(1, 1), (1, 1), (2, 3)], "part bigint, k bigint")) == {
        1: (2, 2),
        2: (1, 1),
    }
