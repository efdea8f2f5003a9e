"""Runs that wait for Spark: which steps go along with the first of them, and how the others end. No Spark is needed for that."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from partwise.ledger.ledger import Ledger
from partwise.ledger.records import announcements
from partwise.ledger.records.writers import Writer
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import parse_part
from partwise.settings import Batch
from partwise.workspace import Workspace, open_workspace
from spark_jobs.airflow.company import _tables, already_done
from spark_jobs.engine import Engine

PART = parse_part("2026-10-03T10:00", 60)
TEXT = """
source: s
part: 1 minute
time: at
columns: {at: timestamp, x: int}
files: landing/*.csv
"""
VIEW = "---\nview: %s\npart: 1 minute\n%supdate: SELECT x FROM %s\n"
VIEWS = [
    ("a", "", "s[j]"),
    ("b", "", "s[j]"),
    ("c", "engine: submit\n", "s[j]"),
    ("d", "", "s[j]"),
    ("after", "", "a[j]"),
]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Workspace, Ledger]]:
    (tmp_path / "view_defs").mkdir()
    (tmp_path / "partwise.yaml").touch()
    (tmp_path / "view_defs" / "all.yaml").write_text(TEXT + "".join(VIEW % view for view in VIEWS))
    where = open_workspace(str(tmp_path), {})
    ledger = where.open_ledger(time.time())
    where.take_over(ledger, where.load(), time.time())
    held = ledger.take("s", "test", 60, time.time())
    mark = ledger.graph()["s"].fingerprint
    ledger.commit(held, Entry("s", 0, mark, None, parts={PART: Content(1, "1")}), None, time.time())
    yield where, ledger
    ledger.database.close()


def compute(ledger: Ledger, table: str) -> None:
    held = ledger.take(table, "test", 60, time.time())
    pin = ledger.pin(held, time.time())
    assert pin is not None
    ledger.commit(held, pin.entry({j: Content(1, "x") for j in pin.due}), None, time.time())


def wait(ledger: Ledger, *views: str) -> None:
    with ledger.database.aside() as on:
        for view in views:
            announcements.wait_for_turn(on, view, f"run of {view}")


def in_turn(ledger: Ledger) -> frozenset[str]:
    with ledger.database.reading() as r:
        return announcements.in_turn(r)


def step(where: Workspace, table: str, **more: str) -> str:
    return json.dumps({"workspace": str(where.folder), "table": table, "run": f"run of {table}", **more})


def test_only_views_with_a_run_that_waits_go_along(place: tuple[Workspace, Ledger]) -> None:
    where, ledger = place
    wait(ledger, "b")
    assert in_turn(ledger) == frozenset(), "nothing was announced of it: the run is another one's"
    assert announcements.announce(ledger, time.time()).keys() == {"a", "b", "c", "d"}
    engine = Engine(None, ledger, where.load(), where.warehouse)  # type: ignore[arg-type]
    assert _tables(engine, "a") == ["a"]
    wait(ledger, "a", "b", "c")
    assert in_turn(ledger) == {"a", "b", "c"}
    assert _tables(engine, "a") == ["a", "b"], "not c, which has a driver of its own, nor d, which may be paused"
    assert _tables(engine, "c") == ["c"]
    assert _tables(engine, "after") == ["after"], "it is not ready"
    engine.batch = Batch(views=1)
    assert _tables(engine, "a") == ["a"]
    with ledger.database.writing(time.time()) as w:
        announcements.begin(w, "b", "run of b")
    assert in_turn(ledger) == {"a", "c"}, "what has begun computes by itself"


def test_what_another_run_has_computed_ends_without_spark(
    place: tuple[Workspace, Ledger], caplog: pytest.LogCaptureFixture
) -> None:
    where, ledger = place
    announcements.announce(ledger, time.time())
    wait(ledger, "a", "b", "d")
    assert already_done(step(where, "a", begins="a")) is None
    ledger.writer = Writer("b", "r1", "b")
    compute(ledger, "a")
    assert already_done(step(where, "a", only="yes")) is None, "what people requested is computed again"
    with caplog.at_level(logging.INFO, "partwise.step"):
        report = already_done(step(where, "a", begins="a", ends="a"))
    assert report == {"table": "a", "steps": [], "failed": {}, "again": False, "quiet": False}
    assert "it was computed by task b of b, run r1" in caplog.text
    compute(ledger, "d")
    report = already_done(step(where, "d", begins="d", ends="d"))
    assert report is not None
    assert report["quiet"], "nothing reads it"
    assert in_turn(ledger) == {"b"}


def test_a_failure_is_told_by_the_step_itself(place: tuple[Workspace, Ledger]) -> None:
    where, ledger = place
    held = ledger.take("b", "test", 60, time.time())
    pin = ledger.pin(held, time.time())
    assert pin is not None
    ledger.fail(held, pin, PART, "query", "it broke", time.time(), certain=True)
    ledger.release(held, time.time())
    assert not [one for one in ledger.plan(time.time()).steps if one.table == "b"]
    assert already_done(step(where, "b")) is None
