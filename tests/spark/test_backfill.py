"""Backfills on real Spark and Delta, called as a user calls them."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from partwise.backfill import ask
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records import backfills
from partwise.parts import Parts, Range
from spark_jobs.backfill import carry_out, progress
from spark_jobs.verify.verify import verify

from .landing import DAY, World

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: m
part: 1 minute
time: event_time
columns: {event_time: timestamp, src: string, loss: double}
files: landing/m/*
---
view: sums
part: 1 minute
update: SELECT src, SUM(loss) AS loss FROM m[j] GROUP BY src
---
view: high
part: 1 minute
update: SELECT src FROM sums[j] WHERE loss > 10
---
view: total
part: 1 minute
initialize: SELECT SUM(loss) AS loss FROM sums[i]
update: |
  SELECT p.loss + COALESCE(n.loss, 0) AS loss
  FROM total[j-1] p CROSS JOIN (SELECT SUM(loss) AS loss FROM sums[j]) n
---
view: by_hand
part: 1 minute
repair: manual
update: SELECT COUNT(*) AS n, SUM(loss) AS loss FROM sums[j-1..j]
"""


def rows(first: int, last: int) -> list[tuple[int, str, float]]:
    return [(minute, src, float(minute + n)) for minute in range(first, last + 1) for n, src in enumerate("ab")]


@pytest.fixture
def filled(world: World) -> World:
    """Minutes 10 to 19, everything built."""
    world.define(DEFINITIONS)
    world.csv("first.csv", *rows(10, 20))
    world.ingest()
    run(world)
    return world


def run(world: World) -> list[tuple[str, list[int]]]:
    from spark_jobs.run import run_all

    return [(r.table, [p - DAY for p in r.parts]) for r in run_all(world.engine)]


def begin(world: World, name: str, lo: int, hi: int, upstream: bool = False, downstream: bool = True) -> Any:
    graph = world.ledger.graph()
    with as_defined(world.ledger, graph, world.engine.now()) as snapshot:
        asked = ask(backfills.world_of(snapshot), name, Range(DAY + lo, DAY + hi), upstream)
    with world.ledger.database.writing(world.engine.now()) as w:
        return backfills.begin(w, graph, asked, downstream, world.engine.holder, lambda _: False)


def done(world: World, found: Any) -> dict[str, tuple[list[int], list[int], list[int]]]:
    return {
        name: tuple([p - DAY for p in parts] for parts in (d.recomputed, d.changed, d.left))  # type: ignore[misc]
        for name, d in progress(world.engine, found).items()
    }


def test_fresh_parts_are_recomputed_and_nothing_follows_where_nothing_changed(filled: World) -> None:
    found = begin(filled, "sums", 12, 14)
    reports = [o.report for o in carry_out(filled.engine, found) if o.report]
    assert [(r.table, r.parts.count, r.changed.count, r.reason) for r in reports] == [("sums", 3, 0, "requested")]
    assert done(filled, found) == {"sums": ([12, 13, 14], [], [])}
    with filled.ledger.database.reading() as r:
        assert backfills.unfinished(r) == []


def test_what_changed_is_followed_and_nothing_else(filled: World) -> None:
    filled.csv("late.csv", (13, "a", 1.0), (18, "b", 1.0))
    filled.ingest()
    found = begin(filled, "sums", 13, 13)
    tables = {o.report.table for o in carry_out(filled.engine, found) if o.report}
    assert tables == {"sums", "high", "total", "by_hand"}
    result = done(filled, found)
    assert result["sums"] == ([13], [13], [])
    assert result["high"] == ([13], [], [])  # the same rows as before: it stops here
    assert result["total"] == ([13, 14, 15, 16, 17], [13, 14, 15, 16, 17], [18])  # sums[18] is another's to repair
    assert result["by_hand"] == ([13, 14], [13, 14], [])  # a person asked: manual repair is no obstacle
    # The other late row is not the backfill's: it stays due, and the next run does it, but for what is manual.
    assert ("sums", [18]) in run(filled)
    plan = filled.ledger.plan(filled.engine.now())
    assert [(s.table, s.parts.lo - DAY, s.parts.hi - DAY) for s in plan.manual] == [("by_hand", 18, 19)]
    found = begin(filled, "by_hand", 18, 19)
    list(carry_out(filled.engine, found))
    assert not filled.ledger.plan(filled.engine.now()).manual
    assert verify(filled.engine).different == ()


def test_downstream_can_wait_for_the_next_run(filled: World) -> None:
    filled.csv("late.csv", (15, "a", 1.0))
    filled.ingest()
    found = begin(filled, "sums", 15, 15, downstream=False)
    assert [o.report.table for o in carry_out(filled.engine, found) if o.report] == ["sums"]
    assert {s.table for s in filled.ledger.plan(filled.engine.now()).steps} == {"high", "total"}
    assert {table for table, _ in run(filled)} == {"high", "total"}


def test_upstream_is_recomputed_as_well(filled: World) -> None:
    found = begin(filled, "by_hand", 15, 15, upstream=True)
    assert {(o.report.table, o.report.parts.count) for o in carry_out(filled.engine, found) if o.report} == {
        ("sums", 2),
        ("by_hand", 1),
    }


def test_an_earlier_start(filled: World) -> None:
    filled.csv("older.csv", *rows(5, 9))
    filled.ingest()
    assert run(filled) == []
    # `total` reads `sums`, which has no earlier parts; with --upstream that one starts earlier, too.
    found = begin(filled, "total", 5, 7, upstream=True)
    list(carry_out(filled.engine, found))
    result = done(filled, found)
    assert result["sums"][0][:6] == [5, 6, 7, 8, 9, 10]
    assert result["total"][:2] == (list(range(5, 20)), list(range(5, 20)))
    assert filled.ledger.audit() == {}
    assert verify(filled.engine).different == ()


def test_interrupted_and_gone_on_with(filled: World) -> None:
    filled.csv("late.csv", (12, "a", 1.0))
    filled.ingest()
    found, stop = begin(filled, "sums", 12, 12), threading.Event()
    for _ in carry_out(filled.engine, found, stop):
        stop.set()
    assert done(filled, found)["sums"] == ([12], [12], [])
    assert done(filled, found)["high"][2] == [12]
    with filled.ledger.database.reading() as r:
        (left,) = backfills.unfinished(r)
    assert (left.state, left.asked) == ("stopped", {"sums": Parts.single(DAY + 12)})
    with filled.ledger.database.writing(filled.engine.now()) as w:
        again = backfills.go_on(w, filled.ledger.graph(), left.number, "other", lambda _: False)
    assert "sums" not in {o.report.table for o in carry_out(filled.engine, again) if o.report}
    assert not any(left for _, _, left in done(filled, again).values())
    assert verify(filled.engine).different == ()


def test_at_the_shell(filled: World, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from partwise.cli import main

    def call(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        assert ended.value.code == code, err + out
        return str(out)

    monkeypatch.chdir(Path(filled.folder))
    lines = call("backfill", "sums", "2026-10-03T00:12..2026-10-03T00:13", "--yes", "--json").splitlines()
    plan, step, report = (json.loads(line) for line in lines)
    assert plan["plan"]["steps"][0]["kind"] == "requested"
    assert plan["plan"]["seconds"] > 0  # from the steps that have run
    assert (step["table"], len(step["parts"]), step["changed"]) == ("sums", 2, [])
    assert report["report"] == {"sums": {"recomputed": 2, "changed": 0, "unchanged": 2, "left": []}}
    shown = call("backfill", "sums", "2026-10-03T00:12", "--yes")
    assert "recomputed" in shown
    assert "Backfill of sums[2026-10-03T00:12]" in shown

    # One that was stopped after its first step goes on: what is left is shown, and nothing is done twice.
    filled.csv("late.csv", (13, "a", 1.0))
    filled.ingest()
    found, stop = begin(filled, "sums", 13, 13), threading.Event()
    for _ in carry_out(filled.engine, found, stop):
        stop.set()
    plan, *steps, report = (json.loads(line) for line in call("backfill", "--resume", "--yes", "--json").splitlines())
    assert {step["table"] for step in plan["plan"]["steps"]} == {"high", "total", "by_hand"}
    assert "sums" not in {step["table"] for step in steps}
    assert report["report"]["sums"]["recomputed"] == 1
    assert not any(each["left"] for each in report["report"].values())
