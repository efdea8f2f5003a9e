"""How a window is kept is settled by counts before its first part, and its content is the same however that goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.choose import window
from partwise.choose.settled import FOUND
from partwise.ledger.records.strategies import Settlement, count_again
from partwise.parts import Parts
from spark_jobs.engine import Engine
from spark_jobs.run import run_all

from .workspace import Workspace, assert_same

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("windows")]

SOURCE = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: int}
files: landing/*.csv
---
"""
#: Half of the rows have an odd x, and there are three groups of them in a pane of two minutes.
SUMS = """
view: sums
share: false
part: 2 minutes
query: |
  SELECT UPPER(g) AS g, SUM(x) AS s, COUNT(*) AS n FROM m [WINDOW 6 minutes]
  WHERE x % 2 = 1 GROUP BY UPPER(g) HAVING COUNT(*) > 4
---
"""
LARGEST = """
view: largest
share: false
part: 1 minute
query: SELECT UPPER(g) AS g, MAX(x) AS top FROM m [WINDOW 3 minutes] GROUP BY UPPER(g)
---
"""
READER = """
view: doubled
part: 2 minutes
update: SELECT g, 2 * s AS s FROM sums[j]
"""

Rows = dict[int, list[dict[str, Any]]]


def arrived(minutes: range) -> Rows:
    """Eight rows a minute, in groups that are the same but for their case."""
    return {
        minute: [
            {"t": datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=minute), "g": "aAbBcCdD"[k], "x": minute + k}
            for k in range(8)
        ]
        for minute in minutes
    }


def sums(rows: Mapping[int, Sequence[dict[str, Any]]], first: int, last: int) -> Rows:
    found = {}
    for j in range(first, last + 1):
        groups = defaultdict(list)
        for minute in range(2 * j - 4, 2 * j + 2):
            for row in rows.get(minute, ()):
                if row["x"] % 2 == 1:
                    groups[row["g"].upper()].append(row["x"])
        found[j] = [{"g": g, "s": sum(xs), "n": len(xs)} for g, xs in groups.items() if len(xs) > 4]
    return found


def helpers(workspace: Workspace) -> set[str]:
    return {name for name, table in workspace.ledger.graph().tables.items() if table.helper_of}


def settled(workspace: Workspace, view: str = "sums") -> Settlement:
    return workspace.ledger.strategies()[view]


@pytest.fixture
def cheap_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were millions of rows: another table costs nothing beside reading them."""
    monkeypatch.setattr(window, "TABLE", 0)
    monkeypatch.setattr(window, "WRITTEN", 0)


def test_few_rows_need_no_helpers(spark: SparkSession, tmp_path: Path) -> None:
    workspace = Workspace(spark, tmp_path, SOURCE + SUMS + READER)
    assert helpers(workspace) == {"sums__panes"}, "until there are rows to count"
    old = workspace.with_engine()  # another process, which has read the ledger before anything is settled
    rows = arrived(range(0, 12))
    workspace.replace("m", rows)
    done = workspace.run()
    assert {report.table for report in done} == {"sums", "doubled"}
    found = settled(workspace)
    assert (found.strategy, found.rows, found.groups) == ("recompute", 8, 4)
    assert "about 48 rows in a window, 4 groups in a pane" in found.why
    assert helpers(workspace) == set()
    assert_same(workspace.rows("sums"), sums(rows, 2, 5), "sums")

    late = {**rows, **arrived(range(12, 14)), 3: rows[3] + rows[3]}
    workspace.replace("m", {p: late[p] for p in (3, 12, 13)})
    assert {report.table for report in run_all(old)} == {"sums", "doubled"}, "it goes on with what was settled"
    assert_same(workspace.rows("sums"), sums(late, 2, 6), "sums")
    assert settled(workspace) == found, "once"
    assert not Workspace(spark, tmp_path).run(), "and for everyone"
    assert not workspace.ledger.audit()


@pytest.mark.usefixtures("cheap_tables")
def test_many_rows_do(spark: SparkSession, tmp_path: Path) -> None:
    """Both ways the helpers are others than those of the query alone, in the middle of a run."""
    workspace = Workspace(spark, tmp_path, SOURCE + SUMS.replace("6 minutes", "12 minutes") + LARGEST)
    rows = arrived(range(0, 16))
    workspace.replace("m", rows)
    done = [report.table for report in run_all(workspace.engine, ["m", "sums", "sums__panes"])]
    assert done == ["sums__panes", "sums__rolling", "sums"]
    workspace.run()
    assert (settled(workspace).strategy, settled(workspace, "largest").strategy) == ("subtract", "merge")
    assert helpers(workspace) == {"sums__panes", "sums__rolling", "largest__panes"}
    tops = {j: [{"g": g, "top": j + 2 * k + 1} for k, g in enumerate("ABCD")] for j in range(2, 16)}
    assert_same(workspace.rows("largest"), tops, "largest")
    assert not workspace.ledger.audit()


def test_a_crash_between_counting_and_settling_leaves_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    workspace = Workspace(spark, tmp_path, SOURCE + SUMS)
    rows = arrived(range(0, 8))
    workspace.replace("m", rows)
    for point, known in (("counted", False), ("settled", True)):

        def crash(passed: str, point: str = point) -> None:
            if passed == point:
                raise KeyboardInterrupt

        engine = workspace.with_engine(passed=crash)
        with pytest.raises(KeyboardInterrupt):
            run_all(engine)
        assert ("sums" in workspace.ledger.strategies()) == known
        assert helpers(workspace) == (set() if known else {"sums__panes"})
    workspace.run()
    assert_same(workspace.rows("sums"), sums(rows, 2, 3), "sums")


def test_nothing_is_settled_before_there_are_rows(spark: SparkSession, tmp_path: Path) -> None:
    workspace = Workspace(spark, tmp_path, SOURCE + SUMS)
    workspace.replace("m", {p: [] for p in range(8)})
    workspace.run()
    assert workspace.parts("sums") == Parts.of((2, 3))
    assert (workspace.ledger.strategies(), helpers(workspace)) == ({}, {"sums__panes"})
    rows = arrived(range(8, 12))
    workspace.replace("m", rows)
    workspace.run()
    assert (settled(workspace).strategy, helpers(workspace)) == ("recompute", set())
    assert_same(workspace.rows("sums"), sums(rows, 2, 5), "sums")
    assert not workspace.ledger.audit()


def test_what_was_built_stays_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """Parts of a version that settled nothing: an upgrade builds nothing again. Another query is settled again."""
    workspace = Workspace(spark, tmp_path, SOURCE + SUMS, settling=False)
    rows = arrived(range(0, 8))
    workspace.replace("m", rows)
    workspace.run()
    assert workspace.ledger.strategies() == {}
    workspace.given["settling"] = True
    workspace.load()
    more = {**rows, **arrived(range(8, 10))}
    workspace.replace("m", arrived(range(8, 10)))
    assert [(report.table, report.parts) for report in workspace.run()] == [
        ("sums__panes", Parts.single(4)),
        ("sums", Parts.single(4)),
    ]
    assert (settled(workspace).strategy, settled(workspace).why, settled(workspace).rows) == ("merge", FOUND, None)
    workspace.define(SOURCE + SUMS.replace("COUNT(*) > 4", "COUNT(*) >= 5"))
    assert [report.table for report in workspace.run()] == ["sums"]
    assert settled(workspace).strategy == "merge", "its panes are as good as before"
    workspace.define(SOURCE + SUMS.replace("x % 2 = 1", "x % 2 <> 0"))
    assert [report.table for report in workspace.run()] == ["sums"]
    assert (settled(workspace).strategy, settled(workspace).rows, helpers(workspace)) == ("recompute", 8, set())
    assert_same(workspace.rows("sums"), sums(more, 2, 4), "sums")


def test_what_has_grown_is_counted_again_and_changed_where_that_pays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content stays the same, so nothing that reads the view is computed."""
    workspace = Workspace(spark, tmp_path, SOURCE + SUMS.replace("6 minutes", "12 minutes") + READER)
    workspace.replace("m", arrived(range(0, 16)))
    workspace.run()
    assert settled(workspace).strategy == "recompute"
    before = workspace.rows("sums")

    def look_again() -> list[str]:
        with workspace.ledger.database.writing(0.0) as w:
            count_again(w, "sums")
        workspace.load()
        workspace.ledger.request("sums", Parts.single(7), 0.0)
        return [report.table for report in workspace.run()]

    assert look_again() == ["sums"]
    assert not settled(workspace).again, "counted, and it stays"
    monkeypatch.setattr(window, "TABLE", 0)
    monkeypatch.setattr(window, "WRITTEN", 0)
    monkeypatch.setattr(window, "WORTH_IT", 0.9)
    done = look_again()
    assert done == ["sums__panes", "sums__rolling", "sums"], "not the view that reads it"
    assert settled(workspace).strategy == "subtract"
    assert_same(workspace.rows("sums"), before, "sums")
    assert not workspace.ledger.audit()


def test_panes_that_others_pay_for_are_read_where_that_costs_less(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_group = "view: {}\npart: 1 minute\n{}query: SELECT {}MAX(x) AS s FROM m [WINDOW 3 minutes]{}\n---\n"
    base = by_group.format("base", "strategy: merge\n", "g, ", " GROUP BY g")
    workspace = Workspace(spark, tmp_path, SOURCE + base + by_group.format("total", "", "", ""))
    workspace.replace("m", arrived(range(0, 6)))
    workspace.run()
    (panes,) = helpers(workspace)
    assert workspace.ledger.graph()[panes].serves == ("base", "total")
    assert settled(workspace, "total").strategy == "merge", "another table would cost more than it saves"
    assert [row["s"] for row in workspace.rows("total")[2]] == [2 + 7]
    with workspace.ledger.database.writing(0.0) as w:
        count_again(w, "total")
    workspace.load()
    workspace.replace("m", arrived(range(6, 7)))
    workspace.run()
    assert settled(workspace, "total").strategy == "merge", "counted again, and it stays"

    monkeypatch.setattr(window, "TABLE", 0)
    monkeypatch.setattr(window, "WRITTEN", 0)
    workspace.define(SOURCE + base + by_group.format("total", "", "", "").replace("3 minutes", "5 minutes"))
    assert workspace.ledger.strategies().covers
    workspace.run()
    assert workspace.ledger.strategies().covers == {}, "its own panes have fewer rows, and cost nothing"
    assert workspace.ledger.graph()[panes].serves == ("base",)
    assert [row["s"] for row in workspace.rows("total")[4]] == [4 + 7]
    assert not workspace.ledger.audit()


def test_a_query_that_fails_is_not_settled(spark: SparkSession, tmp_path: Path) -> None:
    workspace = Workspace(spark, tmp_path, SOURCE + SUMS.replace("x % 2 = 1", "x % (g = 'a') = 1"))
    workspace.replace("m", arrived(range(0, 8)))
    engine: Engine = workspace.engine
    failed = {p: why for report in run_all(engine) for p, why in report.failed.items()}
    assert failed
    assert workspace.ledger.strategies() == {}
    chosen = engine.definitions.choice("sums")
    assert chosen is not None
    assert chosen.strategy == "merge"
