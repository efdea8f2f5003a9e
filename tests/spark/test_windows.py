"""Windows end to end on Spark and Delta: partial ones against plain Python, and approximate aggregates."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise import storage
from partwise.parts import Parts
from spark_jobs.step.stage import stage
from spark_jobs.verify.verify import verify

from .workspace import Workspace, assert_same

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("windows")]

SOURCE = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: int, f: double}
files: landing/*.csv
"""
PARTIAL = """---
view: {strategy}
part: 1 minute
strategy: {strategy}
partial: true
query: SELECT g, SUM(x) AS s, MAX(x) AS top, COUNT(*) AS n FROM m [WINDOW 3 minutes] GROUP BY g
"""
STRATEGIES = ("merge", "subtract", "recompute")


def row(minute: int, x: int, g: str = "a", second: int = 0) -> dict[str, Any]:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=minute, seconds=second)
    return {"t": moment, "g": g, "x": x, "f": x / 4}


def windows(rows: Mapping[int, Sequence[dict[str, Any]]], first: int) -> dict[int, list[dict[str, Any]]]:
    found = {}
    for j in sorted(rows):
        groups = defaultdict(list)
        for p in range(j - 2, j + 1):
            for each in rows.get(p, ()):
                groups[each["g"]].append(each["x"])
        found[j] = [
            {"g": g, "s": sum(xs), "top": max(xs), "n": len(xs), "partial": j - 2 < first} for g, xs in groups.items()
        ]
    return found


def test_partial_windows_with_late_rows(spark: SparkSession, tmp_path: Path) -> None:
    views = "".join(PARTIAL.format(strategy=strategy) for strategy in STRATEGIES)
    workspace = Workspace(spark, tmp_path, SOURCE + views)
    rows = {5: [row(5, 1), row(5, 2, "b")], 6: [row(6, 4)], 7: [], 8: [row(8, -3, "b")], 9: [row(9, 7)]}
    workspace.replace("m", {p: rows[p] for p in (5, 6)})
    workspace.run()
    workspace.replace("m", {p: rows[p] for p in (7, 8, 9)})
    workspace.run()
    for strategy in STRATEGIES:
        assert workspace.start(strategy) == 5
        assert_same(workspace.rows(strategy), windows(rows, 5), strategy)
    for late in (row(5, 9, "c"), row(8, 10)):
        minute = 5 if late["g"] == "c" else 8
        rows[minute] = [*rows[minute], late]
        workspace.deliver("m", {minute: [late]})
        done = workspace.run()
        for strategy in STRATEGIES:
            changed = next(report.changed for report in done if report.table == strategy)
            assert changed == Parts.of((minute, min(minute + 2, 9))), strategy
            assert_same(workspace.rows(strategy), windows(rows, 5), strategy)
    found = verify(workspace.engine)
    assert (found.checked, found.different) == (15, ())


DIGITS = """---
view: told
part: 1 minute
update: SELECT g, f, CAST(x AS DECIMAL(8,2)) * 1.25 AS money FROM m[j]
---
view: untold
part: 1 minute
update: SELECT g, CAST(x AS DECIMAL(8,2)) AS money FROM m[j] UNION ALL SELECT g, 0.5 FROM m[j]
---
view: by_rows
part: 1 minute
query: SELECT g, SUM(money), AVG(money) AS a FROM untold [WINDOW 2 minutes] GROUP BY g
"""
SPREAD = """---
view: {strategy}
part: 1 minute
strategy: {strategy}
query: |
  SELECT g, SUM(money) AS s, AVG(money * 2) AS a, SUM(f) AS near_zero, VARIANCE(f + 1000000000) AS far, CORR(f, money) AS c,
    COVAR_POP(f, money) AS v, STDDEV(f) AS d
  FROM told [WINDOW 3 minutes] GROUP BY g
"""


def test_results_have_the_digits_of_the_query_by_every_strategy(spark: SparkSession, tmp_path: Path) -> None:
    """Decimals of a view, known or not; doubles whose sums cancel, and whose spread is far less than their distance from 0."""
    views = DIGITS + "".join(SPREAD.format(strategy=strategy) for strategy in STRATEGIES)
    workspace = Workspace(spark, tmp_path, SOURCE + views)
    rng = random.Random(5)
    rows = {p: [row(p, rng.randrange(-9, 9), g) for g in "aab" for _ in range(4)] for p in range(5)}
    tenths = [{**each, "f": each["x"] / 10} for p in rows for each in rows[p]]
    tenths += [{**each, "f": -each["x"] / 10} for p in rows for each in rows[p]]  # the sum of each window is nearly 0
    tenths += [row(p, 5, "constant") for p in rows for _ in range(2)]  # whose CORR is NULL
    workspace.replace("m", {p: [each for each in tenths if each["t"] == row(p, 0)["t"]] for p in rows})
    workspace.run()
    schemas = {
        strategy: spark.read.format("delta").load(workspace.engine.path(strategy, 0)).drop("part").schema.simpleString()
        for strategy in STRATEGIES
    }
    assert len(set(schemas.values())) == 1, schemas
    assert "s:decimal(22,4),a:decimal(18,8)" in schemas["merge"]
    assert {each["c"] for each in workspace.rows("merge")[4] if each["g"] == "constant"} == {None}
    found = verify(workspace.engine)
    assert found.different == ()
    assert found.checked == 5 + 5 + 4 + 3 * 3


APPROXIMATE = """---
view: near
share: false
part: 1 minute
strategy: {strategy}
query: |
  SELECT g, APPROX_COUNT_DISTINCT(x) AS many, APPROX_PERCENTILE(f, 0.5) AS middle, COUNT(*) AS n
  FROM m [WINDOW 2 minutes] GROUP BY g
---
view: reader
part: 1 minute
update: SELECT g, n FROM near[j]
"""


def test_equal_rows_in_another_order_change_no_sketch(spark: SparkSession, tmp_path: Path) -> None:
    """A KLL sketch of more than a few hundred rows comes out differently every time."""
    workspace = Workspace(spark, tmp_path, SOURCE + APPROXIMATE.format(strategy="merge"))
    rng = random.Random(3)
    rows = {p: [row(p, rng.randrange(4000), second=k % 60) for k in range(3000)] for p in (0, 1, 2)}
    workspace.replace("m", rows)
    workspace.run()
    before = workspace.rows("near")
    found = verify(workspace.engine)
    assert (found.checked, found.different, found.beyond) == (2, (), 2)  # the reader of estimates cannot be checked

    mixed = {p: rng.sample(rows[p], len(rows[p])) for p in rows}
    changed = {**mixed, 1: [row(1, 17), *mixed[1][1:]]}
    workspace.replace("m", changed)
    workspace.ledger.request("near__panes", Parts.of((0, 2)), time.time())
    done = {report.table: report for report in workspace.run()}
    assert done["near__panes"].changed == Parts.single(1)  # 0 and 2 were computed from the same rows
    assert done["near"].parts == Parts.of((1, 2))
    assert workspace.rows("near").keys() == before.keys()
    assert verify(workspace.engine).different == ()


def _write(spark: SparkSession, workspace: Workspace, wrong: dict[str, Any]) -> None:
    """Past the engine: part 1 of `near` holds this row."""
    handle = storage.open_at(workspace.engine.path("near", 0))
    types = spark.read.format("delta").load(workspace.engine.path("near", 0)).schema
    row = {**wrong, "part": 1, "part_timestamp": datetime(1970, 1, 1, 0, 1, tzinfo=UTC)}
    rows = spark.createDataFrame([tuple(row[name] for name in types.names)], types)
    version = storage.commit(handle, stage(rows, handle, f"wrong-{handle.version}"), handle.files, {"kind": "test"})
    now = workspace.engine.now()
    held = workspace.ledger.take("near", "test", 60, now)
    workspace.ledger.adopt(held, [(version, None)], now)
    workspace.ledger.release(held, now)


def test_an_estimate_that_is_far_off_is_found(spark: SparkSession, tmp_path: Path) -> None:
    workspace = Workspace(spark, tmp_path, SOURCE + APPROXIMATE.format(strategy="recompute"))
    workspace.replace("m", {p: [row(p, k % 50) for k in range(100)] for p in (0, 1)})
    workspace.run()
    [right] = workspace.rows("near")[1]
    assert verify(workspace.engine, ["near"]).different == ()
    for column, wrong in (("many", right["many"] * 2), ("middle", right["middle"] + 20)):
        _write(spark, workspace, {**right, column: wrong})
        assert [found[:2] for found in verify(workspace.engine, ["near"]).different] == [("near", 1)]
