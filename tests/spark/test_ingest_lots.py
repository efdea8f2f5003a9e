"""Thousands of files are loaded in lots. However large the lots are, what comes of it is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from spark_jobs.ingest import Ingested
from spark_jobs.ingest.api import take_in
from spark_jobs.ingest.files.lots import Lots
from tests.spark.landing import DAY, DEFINITION, World

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("ingest")]

BOUNDED = DEFINITION + "late: {accept: 10 minutes}\n"


def deliver(world: World) -> None:
    """Seven files in the order of their names; the newest time is in the last one, one that is too old in the first."""
    for number in range(7):
        rows = [(100 + number, "a", float(number)), (100 + number // 2, "b", 1.0)]
        world.csv(f"{number}.csv", *rows, *([(3, "old", 9.0)] if number == 0 else []))


def load(world: World, lot: int, stop: Callable[[], bool] = lambda: False) -> Ingested:
    # No lot grows, so that the number of commits does not depend on how fast this machine is.
    engine = replace(world.engine, lot_files=lot, step_seconds=0.0)
    return take_in(engine, world.workspace, "m", settle=0, stop=stop)


def test_lots_give_what_one_load_gives(world: World) -> None:
    world.define(BOUNDED)
    deliver(world)
    seen: list[tuple[str, int, int]] = []
    world.engine = replace(world.engine, loading=lambda *told: seen.append(told))
    done = load(world, 2)
    assert (done.files, done.rows, done.late_rows, done.quarantined, done.left) == (7, 14, 0, 1, 0)
    # A lot takes longer than no time at all, so those after the first have one file.
    assert seen == [("m", at, 7) for at in (0, 2, 3, 4, 5, 6)]
    assert [p - DAY for p in done.closed] == world.closed() == [*range(100, 106)]
    assert set(world.revisions().values()) == {1}  # no part was closed before all its rows were there
    assert [why.partition(",")[0] for why, _ in world.aside()] == ["older than late.accept (10 minutes)"]
    assert [late for _, _, late in world.arrivals()] == [False] * len(world.arrivals())
    world.check()
    assert load(world, 2) == Ingested("m")


def test_stopped_between_lots_it_keeps_what_is_loaded_and_goes_on(world: World) -> None:
    world.define(BOUNDED)
    deliver(world)
    done = load(world, 2, stop=lambda: True)
    assert (done.files, done.left, world.closed()) == (2, 5, [])
    assert len(world.rows()) == 4
    world.check()
    world.csv("0.csv", (100, "a", 50.0), (3, "old", 9.0))  # corrections come first, and together
    done = load(world, 1, stop=lambda: True)
    assert (done.files, done.left) == (1, 5)
    assert (100, "a", 50.0) in world.minutes()
    done = load(world, 3)
    assert (done.files, done.left, done.late_rows, world.closed()) == (5, 0, 0, [*range(100, 106)])
    assert sorted(loss for minute, src, loss in world.minutes() if src == "a") == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 50.0]
    assert len(world.aside()) == 1
    world.check()


def test_a_file_that_is_refused_or_cannot_be_read_leaves_the_other_lots(world: World) -> None:
    world.define()
    deliver(world)
    world.put("m/1.csv", "colour\nred\n")
    world.put("m/3.parquet", b"PAR1 no parquet PAR1")
    done = load(world, 2)
    assert (done.files, done.left) == (6, 0)
    assert sorted({file for file, _ in done.refused}) == ["landing/m/1.csv", "landing/m/3.parquet"]
    assert len(done.refused) == 2
    world.check()


def test_a_table_that_is_made_again_comes_back_as_a_whole(world: World) -> None:
    """Half of a closed part must not be taken for a revision of it."""
    world.define()
    deliver(world)
    load(world, 100)
    before, revisions = world.minutes(), world.revisions()
    with world.engine.leased("m", adopting=False) as held:
        world.ledger.rebuild_again(held, world.engine.now())
    done = load(world, 2, stop=lambda: True)
    assert (done.files, done.left) == (7, 0)
    assert (world.minutes(), world.revisions()) == (before, revisions)
    world.check()


def test_lots_grow_and_shrink_with_the_time_that_they_take() -> None:
    lots = Lots(seconds=30.0, files=100)
    lots.took(100, 1_000, 10.0)
    assert (lots.files, lots.size) == (300, 3_000)
    lots.took(300, 3_000, 0.0)
    assert lots.files == 1_200  # never more than four times as many
    lots.took(1_200, 9_000, 3_000.0)
    assert lots.files == 300
    lots.took(1, 10**12, 3_000.0)
    assert lots.files == 1
    assert lots.room(0, 0)  # one file is a lot, however large it is
    assert not lots.room(1, 5)
    assert lots.loaded == 1_601
