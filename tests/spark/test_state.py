"""Kept joins: when they are read, that contents are those of recomputation, and what happens when they are wrong."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.choose.settled import with_kept_states
from partwise.compile.program import KeptOutput
from partwise.compile.state.generate import state_mark
from partwise.ledger.records.kept_states import KeptChoice
from partwise.parts import Parts
from partwise.settings import Batch
from spark_jobs.step.compute import Computing
from spark_jobs.step.run_step import Report, run_step
from spark_jobs.verify.verify import verify

from .workspace import Workspace, assert_same

pytestmark = pytest.mark.spark
BASE = 9_000_000

SOURCES = """
source: lineitem
part: 1 minute
time: t
columns: {t: timestamp, l_orderkey: bigint, price: bigint, kind: string}
files: l/*.csv
---
source: orders
part: 1 minute
time: t
columns: {t: timestamp, o_orderkey: bigint, o_custkey: bigint, kind: string}
files: o/*.csv
---
dimension: customer
columns: {c_custkey: bigint, c_name: string}
files: c.csv
---
"""
VIEW = """
view: revenue
part: 1 minute
{more}
update: |
  SELECT c.c_name, o.kind, SUM(price) AS revenue, COUNT(price) AS prices, COUNT(*) AS n
  FROM lineitem[j] l JOIN orders[{orders}] o ON l_orderkey = o_orderkey JOIN customer c ON c_custkey = o_custkey
  WHERE o.kind <> 'x' AND l.kind IS NOT NULL
  GROUP BY c.c_name, o.kind
"""
STATE = "state: {join: [o, customer]}"


def text(more: str = STATE, orders: str = "j") -> str:
    return SOURCES + VIEW.format(more=more, orders=orders)


def line(p: int, rng: random.Random) -> dict[str, Any]:
    return {
        "t": datetime.fromtimestamp(60 * p, UTC),
        "l_orderkey": rng.randrange(6),
        "price": rng.choice([1, 2, 3, None]),
        "kind": rng.choice("ab"),
    }


def order(p: int, rng: random.Random) -> dict[str, Any]:
    at = datetime.fromtimestamp(60 * p, UTC)
    return {"t": at, "o_orderkey": rng.randrange(6), "o_custkey": rng.randrange(3), "kind": rng.choice("abx")}


def filled(spark: SparkSession, at: Path, definitions: str, rng: random.Random) -> Workspace:
    space = Workspace(spark, at, definitions)
    space.dimension("customer", [{"c_custkey": n, "c_name": f"n{n}"} for n in range(3)])
    parts = range(BASE, BASE + 3)
    space.replace("orders", {p: [order(p, rng) for _ in range(5)] for p in parts})
    space.replace("lineitem", {p: [line(p, rng) for _ in range(9)] for p in parts})
    space.run()
    return space


def of(reports: list[Report], table: str) -> Report:
    return next(report for report in reports if report.table == table)


def test_late_rows_are_joined_with_what_was_kept(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(3)
    space = filled(spark, tmp_path / "w", text(), rng)
    last = BASE + 2
    assert space.parts("revenue__joined").last == last
    for repair in ("recompute", "merge"):
        space.deliver("lineitem", {last: [line(last, rng)]})
        reports = space.run(repair_by=repair)
        assert [report.table for report in reports] == ["revenue"]
        found = of(reports, "revenue")
        assert [*found.kept] == [last]
        assert found.repair is not None
        assert found.repair.by == repair
        assert verify(space.engine).different == ()
    # What is kept is stale now, too: whichever step comes first, neither reads what is not up to date.
    space.deliver("orders", {last: [order(last, rng)]})
    reports = space.run()
    assert {report.table for report in reports} == {"revenue", "revenue__joined"}
    assert verify(space.engine).different == ()
    # Of older parts nothing is kept.
    space.deliver("lineitem", {BASE: [line(BASE, rng)]})
    assert of(space.run(), "revenue").kept == Parts()
    # Without the key the helper is gone, and nothing else has changed.
    space.define(text(""))
    assert space.run() == []


def test_a_query_that_fails_over_what_is_kept_runs_as_it_is_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(4)
    space = filled(spark, tmp_path / "w", text(orders="j-1..j"), rng)
    last, found = BASE + 2, Computing.kept_output

    def broken(computing: Computing, j: int) -> KeptOutput | None:
        kept = found(computing, j)
        return None if kept is None else replace(kept, rest=replace(kept.rest, text="SELECT no_such_column AS c_name"))

    with monkeypatch.context() as patched:
        patched.setattr(Computing, "kept_output", broken)
        space.deliver("lineitem", {last: [line(last, rng)]})
        report = of(space.run(), "revenue")
        assert report.kept == Parts()
        assert report.changed == Parts.single(last)
    assert verify(space.engine).different == ()
    # What is kept takes no part in what is computed for many parts at once.
    space.deliver("lineitem", {p: [line(p, rng)] for p in (BASE + 1, last)})
    assert of(space.run(), "revenue").kept == Parts()
    space.deliver("orders", {BASE + 1: [order(BASE + 1, rng)]})  # the first of two that the kept part was made of
    space.deliver("lineitem", {last: [line(last, rng)]})
    space.run()
    assert verify(space.engine).different == ()


FREE = """
---
view: {name}_sums
part: 1 minute
state: {state}
update: |
  SELECT c.c_name, SUM(price) AS revenue, MAX(price) + 1 AS most
  FROM lineitem[j] l JOIN orders[j] o ON l_orderkey = o_orderkey JOIN customer c ON c_custkey = o_custkey
  WHERE o.kind <> 'x' GROUP BY c.c_name HAVING COUNT(*) > 1
---
view: {name}_large
part: 1 minute
state: {state}
update: |
  SELECT c_name, o_orderkey, price FROM customer, orders[j], lineitem[j-1..j] l WHERE c_custkey = o_custkey
  AND o_orderkey = l.l_orderkey AND o_orderkey IN
    (SELECT i.l_orderkey FROM lineitem[j] i GROUP BY i.l_orderkey HAVING SUM(i.price) > 3)
"""
CHOICES: dict[str, list[tuple[tuple[str, ...], bool]]] = {
    "free_sums": [((), False), (("o", "c"), False), ((), True), (("l", "o"), False)],
    "free_large": [((), False), (("customer", "orders"), False), ((), True), (("customer", "orders"), True)],
}


def choose(space: Workspace, wanted: dict[str, tuple[tuple[str, ...], bool]]) -> None:
    """As the rule could have predicted: nobody asks whether it was right."""
    program = space.definitions
    chosen = {
        view: KeptChoice(view, join, groups, state_mark(program.views[view]), 10**6) if join or groups else None
        for view, (join, groups) in wanted.items()
    }
    after = with_kept_states(program, {view: choice for view, choice in chosen.items() if choice is not None})
    names = {h.name for each in (program, after) for view in wanted for h in each.alternative(view).kept_helpers}
    tables = {name: table for name, table in after.graph().tables.items() if name in names}
    space.ledger.keep_states(chosen, tables, names, space.engine.now())
    space.load()


def test_predictions_never_change_contents(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever is kept, and whenever that changes: contents are those of views that keep nothing."""
    rng = random.Random(7)
    text = SOURCES + (FREE.format(name="free", state="automatic") + FREE.format(name="plain", state="none"))[5:]
    space = filled(spark, tmp_path / "w", text, rng)
    space.given["batch"] = Batch(views=1)  # small steps that share a job read the inputs
    last, seen = BASE + 2, set[str]()
    for number in range(8):
        if number % 2 == 0:
            choose(space, {view: ways[(number // 2 + 1) % len(ways)] for view, ways in CHOICES.items()})
        # What was chosen is there by the next delivery.
        source, make = rng.choice([("lineitem", line), ("orders", order)]) if number % 2 == 0 else ("lineitem", line)
        p = rng.choice([last, BASE + 1]) if number % 2 == 0 else last
        space.deliver(source, {p: [make(p, rng) for _ in range(rng.choice([1, 4]))]})
        if number == 5:
            space.dimension("customer", [{"c_custkey": n, "c_name": f"n{n // 2}"} for n in range(3)])
        reports = space.run()
        seen |= {report.table for report in reports if report.kept}
        for view in ("sums", "large"):
            assert_same(space.rows(f"free_{view}"), space.rows(f"plain_{view}"), f"{view} {number}")
    assert seen == {"free_sums", "free_large"}
    assert verify(space.engine).different == ()
    # A budget of nothing is recomputation: what was chosen is not even compiled.
    program = space.definitions.keeping_nothing()
    assert not [helper for helper in program.helpers.values() if helper.keeps]
    assert program.graph()["free_large"].fingerprint == space.definitions.graph()["free_large"].fingerprint


def test_a_crash_leaves_what_is_kept_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(8)
    text = SOURCES + FREE.format(name="free", state="automatic")[5:]
    space = filled(spark, tmp_path / "w", text, rng)
    choose(space, {"free_large": (("customer", "orders"), True)})
    space.run()
    last = BASE + 2
    for point in ("staged", "committed"):
        space.deliver("lineitem", {last: [line(last, rng) for _ in range(3)]})

        def crash(passed: str, at: str = point) -> None:
            if passed == at:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run_step(space.with_engine(passed=crash), "free_large__grouped")
        reports = space.run()
        assert [*of(reports, "free_large").kept] == [last]
        assert verify(space.engine).different == ()


def test_what_is_kept_again_begins_with_the_newest_part(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(9)
    space = filled(spark, tmp_path / "w", SOURCES + FREE.format(name="free", state="automatic")[5:], rng)
    for number in range(3):
        choose(space, {"free_large": (("customer", "orders"), False)})
        space.run()
        assert [*space.parts("free_large__joined")] == [BASE + 2 + number]
        choose(space, {"free_large": ((), False)})
        new = BASE + 3 + number
        space.replace("orders", {new: [order(new, rng)]})
        space.replace("lineitem", {new: [line(new, rng)]})
        space.run()
    assert verify(space.engine).different == ()
