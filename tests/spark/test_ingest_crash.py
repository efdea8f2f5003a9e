"""A crash at any point, then again: every file exactly once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.spark.landing import NOW, Crash, World

pytestmark = pytest.mark.spark

LATE = """
source: m
part: 1 minute
time: event_time
columns: {event_time: timestamp, src: string, loss: double}
files: landing/m/*.csv
late: {accept: 30 minutes}
"""
EXPECTED = [(20, "x", 2.0), (40, "x", 1.0), (41, "y", 1.0), (42, "z", 1.0)]
POINTS = ["leased", "adopted", "staged", "digested", "quarantined", "kept", "ready", "committed", "recorded"]


def first(world: World) -> None:
    world.define(LATE)
    world.csv("a.csv", (10, "x", 1), (40, "x", 1))
    assert world.ingest().rows == 2


def second(world: World) -> None:
    """A correction with a part of its own, new rows, and one row that is too old."""
    world.csv("a.csv", (20, "x", 2), (40, "x", 1))
    world.csv("b.csv", (41, "y", 1), (42, "z", 1), (1, "too old", 1))


def test_a_crash_at_every_point_then_again(world: World) -> None:
    """One world after the other would take minutes: all points crash in turn on one, each time with new deliveries."""
    first(world)
    expected = list(EXPECTED[1:2])
    seen: set[str] = set()
    for at, point in enumerate(POINTS):
        world.csv("a.csv", (40, "x", 1), (20, "changing", at))
        world.csv(f"b{at}.csv", (41 + at, "y", at), (1, "too old", at))
        world.crash_at(point)
        with pytest.raises(Crash):
            world.ingest()
        world.go_on()
        points = world.watch_points()
        world.ingest()
        seen.update(points)
        world.ingest()
        world.go_on()
        expected.append((41 + at, "y", float(at)))
        assert world.minutes() == sorted([*expected, (20, "changing", float(at))], key=repr), point
        assert len(world.aside()) == at + 1, point
        world.check()
    assert seen == {*POINTS} - {"created"}


def test_what_a_dead_ingest_staged_is_swept_by_a_later_one(world: World) -> None:
    first(world)
    table = Path(world.handle().path)
    before = {path.name for path in table.glob("s-*")}
    world.csv("b.csv", (41, "y", 1))
    world.crash_at("digested")
    with pytest.raises(Crash):
        world.ingest()
    world.go_on()
    [left] = {path.name for path in table.glob("s-*")} - before
    note = table / "_staged" / left.removeprefix("s-")
    assert world.ingest().files == 1  # so soon it might belong to somebody who lives
    assert (table / left).exists()
    os.utime(note, (NOW - 7200, NOW - 7200))
    world.csv("c.csv", (42, "z", 1))  # with nothing to load nobody looks
    assert world.ingest().files == 1
    assert not (table / left).exists()
    assert list((table / "_staged").iterdir()) == []
    world.check()
    assert world.minutes() == [(10, "x", 1.0), (40, "x", 1.0), (41, "y", 1.0), (42, "z", 1.0)]


def test_a_zombie_that_committed_is_adopted_and_one_that_did_not_is_refused(world: World) -> None:
    from dataclasses import replace

    from partwise.ledger.write.leases import Fenced
    from partwise.storage import Conflict

    first(world)
    second(world)
    mine = world.engine
    others: list[int] = []

    def overtaken(point: str) -> None:
        if point == "ready" and not others:
            others.append(1)
            later = replace(mine, now=lambda: mine.now() + 1000, holder="other")
            world.engine = later
            assert world.ingest().files == 2  # the lease has expired: another one does the work

    world.engine = replace(mine, passed=overtaken)
    from spark_jobs.ingest import ingest

    try:
        ingest(world.engine, world.workspace, settle=0)
    except (Fenced, Conflict):
        pass
    world.engine = mine
    assert world.minutes() == EXPECTED
    assert len(world.aside()) == 1
    world.check()
    assert world.ingest().files == 0


def test_rows_of_an_orphan_for_a_part_closed_by_hand_meanwhile_are_late(world: World) -> None:
    from partwise.ledger.write.closing import close
    from tests.spark.landing import DAY, NOW

    world.define(LATE + "close: manual\n")
    world.csv("a.csv", (0, "x", 1))
    world.crash_at("committed")
    with pytest.raises(Crash):
        world.ingest()
    world.go_on()
    close(world.ledger, "m", DAY, "test", NOW)  # without adoption: it closes as an empty part
    world.ingest()
    assert world.closed() == [0]
    assert world.revisions() == {0: 2}
    world.check()


def test_a_crash_while_columns_change(world: World) -> None:
    first(world)
    world.define(LATE.replace("loss: double", "loss: double, more: int"))
    for point in ("columns staged", "committed"):
        world.crash_at(point)
        with pytest.raises(Crash):
            world.ingest()
    world.go_on()
    assert world.ingest().notes == []
    assert world.rows(columns="src, more") == [("x", None), ("x", None)]
    world.check()
