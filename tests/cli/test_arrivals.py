"""`explain SOURCE`: what is still to come, for people and for programs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from partwise.ledger.write.commit import Content, Entry
from partwise.workspace import open_workspace
from tests.cli.conftest import Run

#: 2026-10-03T00:00 UTC in minutes.
DAY = 1_790_985_600 // 60


@pytest.fixture
def ten_hours(workspace: Path) -> None:
    """Ten minutes a load, live; of every part one row of twenty comes forty minutes later."""
    ledger = open_workspace(str(workspace), {}).open_ledger(0.0)
    definitions = open_workspace(str(workspace), {}).definitions(ledger)
    with closing(ledger.database):
        ledger.define(definitions.graph(), 0.0)
        name, fingerprint = "measurements", ledger.graph()["measurements"].fingerprint
        for load in range(60):
            first = DAY + 10 * load
            rows = dict.fromkeys(range(first, first + 10), 19)
            if load >= 4:
                rows |= dict.fromkeys(range(first - 40, first - 30), 1)
            clock = (first + 10) * 60.0
            at, held = ledger.current(name), ledger.take(name, "ingest", 60, clock)
            contents = {p: Content(n, f"{load}:{n}") for p, n in rows.items()}
            entry = Entry(name, at.generation, fingerprint, None, parts=contents, reason="loaded", arrived=rows)
            ledger.commit(held, entry, 0 if at.version is None else at.version + 1, clock)


@pytest.mark.usefixtures("ten_hours")
def test_for_people(run: Run) -> None:
    shown = run("explain", "measurements").out
    assert "watched for 9 hours 50 minutes of event time, parts up to an age of 9 hours 59 minutes" in shown
    assert (
        "close.delay: 1 hour would leave 0 % of rows late (now 2 minutes: 5 %); every part comes 58 minutes later"
        in shown
    )
    assert "late.accept: 1 hour would quarantine 0 % of rows" in shown
    assert "keep: 2 weeks would keep about 403," in shown


@pytest.mark.usefixtures("ten_hours")
def test_for_programs(run: Run) -> None:
    found = run("explain", "MEASUREMENTS", "--json").json
    assert found["views"] == []
    (source,) = found["sources"]
    assert source["arrivals"]["rows_per_part"] == pytest.approx(20, rel=0.01)
    to_come = {each["age"]: each for each in source["arrivals"]["to_come"]}
    assert to_come[0]["deliveries"] == to_come[900]["deliveries"] == pytest.approx(1, rel=0.05)
    assert to_come[3600] == {"age": 3600, "deliveries": 0, "rows": 0, "share": 0, "seen": 0}
    assert 86400 not in to_come
    assert [(each["setting"], each["suggested"]) for each in source["suggestions"]] == [
        ("close.delay", 3600),
        ("late.accept", 3600),
        ("keep", 14 * 86400),
    ]


def test_before_anything_arrives(run: Run, workspace: Path) -> None:
    assert "none seen yet" in run("explain", "measurements").out
    assert run("explain", "measurements", "--json").json["sources"][0]["arrivals"]["to_come"] == []
