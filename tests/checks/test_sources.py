"""Checks of sources: a part that fails is held back with its rows, late files wait, the others go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from partwise.checks.results import KeptResults
from partwise.ledger.records import checks as ledger_checks
from partwise.parts import Parts
from spark_jobs.ingest import Ingested
from spark_jobs.ingest.api import NotDone
from spark_jobs.run import run_all
from spark_jobs.verify.verify import verify
from tests.spark.landing import DAY, DEFINITION, NOW, Crash, World

pytestmark = pytest.mark.spark
CHECKED = (
    DEFINITION.strip()
    + """
checks:
  - expect_column_values_to_be_between: {column: loss, min_value: 0, max_value: 100}
  - expect_column_values_to_not_be_null: {column: src}
---
view: v
part: 1 minute
update: SELECT src, SUM(loss) AS s FROM m[j] GROUP BY src
"""
)


@pytest.fixture
def shop(world: World) -> Iterator[World]:
    world.define(CHECKED)
    yield world
    world.check()


def kept(world: World, minute: int, table: str = "m") -> KeptResults:
    with world.ledger.database.reading() as r:
        found = ledger_checks.kept(r, table, DAY + minute if table == "m" else minute)
    assert found is not None
    return found


def failing(world: World, table: str = "m") -> list[int]:
    with world.ledger.database.reading() as r:
        return sorted(p - DAY for p in ledger_checks.failed_parts(r, table))


def failures(world: World, table: str = "m") -> int:
    """How many parts `partwise checks` says have failed."""
    with world.ledger.database.reading() as r:
        return ledger_checks.counts(r).get(table, {}).get("failed", 0)


def accept(world: World, *minutes: int) -> Parts:
    with world.ledger.database.writing(NOW) as w:
        return ledger_checks.accept(w, "m", Parts.single(*(DAY + m for m in minutes)), "bob")


def clean(world: World) -> None:
    run_all(world.engine)
    found = verify(world.engine)
    assert (list(found.different), found.stale) == ([], 0)
    assert world.ledger.audit() == {}


def test_a_part_that_fails_is_not_closed_and_a_correction_lets_it_through(shop: World) -> None:
    shop.csv("a.csv", (0, "x", 1), (1, "x", 500), (1, "y", 2), (2, "x", 3), (3, "x", 1))
    done: Ingested = shop.ingest()
    assert list(done.failed) == [DAY + 1]
    assert shop.closed() == [0, 2]  # 3 is not over yet
    found = kept(shop, 1)
    assert (found.outcome, found.rows) == ("failed", 2)
    (row,) = found.results[0].rows
    assert json.loads(row) | {"event_time": ""} == {
        "event_time": "",
        "src": "x",
        "loss": 500.0,
        "file": "landing/m/a.csv",
    }
    run_all(shop.engine)
    assert shop.closed("v") == [0, 2]
    assert shop.ingest().failed == {}  # known: nobody is told twice, and nothing is asked twice
    assert failing(shop) == [1]
    shop.csv("a.csv", (0, "x", 1), (1, "x", 50), (1, "y", 2), (2, "x", 3), (3, "x", 1))
    assert shop.ingest().failed == {}
    assert (shop.closed(), failing(shop)) == ([0, 1, 2], [])
    clean(shop)


def test_accepted_it_is_closed_as_it_is(shop: World) -> None:
    shop.csv("a.csv", (0, "x", 1), (1, "x", 500), (2, "x", 3))
    shop.ingest()
    assert accept(shop, 0, 1) == Parts.single(DAY + 1)
    shop.ingest()
    assert shop.closed() == [0, 1]
    assert (kept(shop, 1).outcome, kept(shop, 1).accepted_by) == ("accepted", "bob")
    clean(shop)


def test_late_rows_that_fail_keep_their_file_out_and_the_others_go_on(shop: World) -> None:
    shop.csv("a.csv", (0, "x", 1), (1, "x", 2), (2, "x", 3))
    shop.ingest()
    before = shop.minutes()
    shop.csv("bad.csv", (0, "x", 7), (1, "z", -1))
    shop.csv("good.csv", (0, "y", 8))
    done: Ingested = shop.ingest()
    assert [name for name, _ in done.held] == ["landing/m/bad.csv"]
    assert "m[2026-10-03T00:01]: check failed: 1 of 2 values of loss" in done.held[0][1]
    assert (done.changed, failing(shop)) == (Parts.single(DAY), [1])
    assert sorted(shop.minutes()) == sorted([*before, (0, "y", 8.0)])
    assert shop.revisions()[1] == 1
    assert shop.ingest().held == []  # it waits, and is not read again
    run_all(shop.engine)
    shop.csv("bad.csv", (0, "x", 7), (1, "z", 1))
    done = shop.ingest()
    assert (done.held, failing(shop)) == ([], [])
    assert sorted(shop.minutes()) == sorted([*before, (0, "y", 8.0), (0, "x", 7.0), (1, "z", 1.0)])
    clean(shop)


def test_a_correction_that_fails_leaves_what_it_would_have_replaced(shop: World) -> None:
    shop.csv("a.csv", (0, "x", 1), (1, "x", 2), (2, "x", 3))
    shop.ingest()
    before = shop.minutes()
    shop.csv("a.csv", (0, "x", 9), (1, "x", 200), (2, "x", 3))
    assert len(shop.ingest().held) == 1
    assert shop.minutes() == before
    # Taken back, it has never been.
    shop.csv("a.csv", (0, "x", 1), (1, "x", 2), (2, "x", 3))
    shop.ingest()
    assert (failing(shop), failures(shop)) == ([], 0)
    shop.csv("a.csv", (0, "x", 9), (1, "x", 200), (2, "x", 3))
    assert len(shop.ingest().held) == 1
    accept(shop, 1)
    assert shop.ingest().held == []
    assert shop.minutes() == [(0, "x", 9.0), (1, "x", 200.0), (2, "x", 3.0)]
    # What was accepted can be corrected as if nothing had been.
    shop.csv("a.csv", (0, "x", 9), (1, "x", 20), (2, "x", 3))
    shop.ingest()
    assert shop.minutes() == [(0, "x", 9.0), (1, "x", 20.0), (2, "x", 3.0)]
    clean(shop)


def test_a_held_file_that_goes_away_or_whose_checks_change(shop: World) -> None:
    shop.csv("a.csv", (0, "x", 1), (1, "x", 2))
    shop.ingest()
    path: Path = shop.csv("bad.csv", (0, "x", 700))
    assert len(shop.ingest().held) == 1
    path.unlink()
    shop.ingest()
    assert (failing(shop), failures(shop)) == ([], 0)
    shop.csv("bad.csv", (0, "x", 700))
    assert len(shop.ingest().held) == 1
    shop.define(CHECKED.replace("max_value: 100", "max_value: 1000"))
    assert shop.ingest().held == []
    assert (0, "x", 700.0) in shop.minutes()
    clean(shop)


def test_retract_and_gaps(world: World) -> None:
    """Taking rows out can fail, too; and a part without rows is checked when it closes."""
    world.define(DEFINITION.strip() + "\nchecks:\n  - expect_table_row_count_to_be_between: {min_value: 1}\n")
    world.csv("a.csv", (0, "x", 1))
    world.csv("b.csv", (2, "x", 1), (3, "x", 1))
    done = world.ingest()
    assert (world.closed(), list(done.failed)) == ([0, 2], [DAY + 1])
    with pytest.raises(NotDone, match=r"Without the rows of landing/m/a.csv, m\[2026-10-03T00:00\]: check failed"):
        world.retract("a.csv")
    assert world.closed() == [0, 2]
    world.csv("c.csv", (1, "x", 1))
    world.ingest()
    assert world.closed() == [0, 1, 2]
    world.check()


def test_a_dimension_keeps_its_content_if_the_new_one_fails(world: World) -> None:
    world.define(
        DEFINITION
        + """
---
dimension: nodes
columns: {node: string}
files: landing/nodes.csv
checks:
  - expect_column_values_to_be_unique: {column: node}
"""
    )
    world.put("nodes.csv", "node\na\nb\n")
    world.ingest("nodes")
    world.put("nodes.csv", "node\na\na\nc\n")
    done = world.ingest("nodes")
    assert [name for name, _ in done.held] == ["landing/nodes.csv"]
    assert world.rows("nodes", "node") == [("a",), ("b",)]
    assert len(kept(world, 0, "nodes").results[0].rows) == 2
    assert world.ingest("nodes").held == []
    world.put("nodes.csv", "node\na\nb\n")
    world.ingest("nodes")
    assert failures(world, "nodes") == 0
    path = world.put("nodes.csv", "node\na\na\nc\n")
    assert len(world.ingest("nodes").held) == 1
    path.unlink()
    world.ingest("nodes")
    assert failures(world, "nodes") == 0
    world.put("nodes.csv", "node\na\nc\n")
    assert world.ingest("nodes").held == []
    assert world.rows("nodes", "node") == [("a",), ("c",)]


@pytest.mark.parametrize("point", ["checked", "ready", "committed"])
def test_a_crash_around_the_checks(shop: World, point: str) -> None:
    shop.csv("a.csv", (0, "x", 1), (1, "x", 500), (2, "x", 3))
    shop.crash_at(point)
    with pytest.raises(Crash):
        shop.ingest()
    shop.go_on()
    shop.ingest()
    assert (shop.closed(), failing(shop)) == ([0], [1])
    shop.csv("a.csv", (0, "x", 1), (1, "x", 5), (2, "x", 3))
    shop.ingest()
    assert (shop.closed(), failing(shop)) == ([0, 1], [])


def test_a_key_is_checked_before_a_part_is_published(world: World) -> None:
    world.define(DEFINITION + "key: src\n")
    world.csv("a.csv", (0, "x", 1), (0, "x", 2), (1, "x", 1), (2, "x", 1))
    done = world.ingest()
    assert [p - DAY for p in done.failed] == [0]
    assert "(src)" in done.failed[DAY]
    assert world.closed() == [1]
    world.csv("a.csv", (0, "x", 1), (0, "y", 2), (1, "x", 1), (2, "x", 1))
    done = world.ingest()
    assert not done.failed
    assert world.closed() == [0, 1]
    assert (done.row_change.added, done.row_change.removed, done.row_change.changed) == (0, 0, 1)


def test_a_delivery_that_takes_out_most_of_a_part_is_held_back(world: World) -> None:
    world.define(DEFINITION + "max_removed: 50 %\n")
    rows = [(0, f"n{at}", 1) for at in range(10)]
    world.csv("a.csv", *rows, (1, "x", 1))
    assert world.ingest().row_change.added == 11
    world.csv("a.csv", (1, "x", 1))
    done = world.ingest()
    [(file, why)] = done.held
    assert file == "landing/m/a.csv"
    assert "10 of 10 rows would be taken out (100.0%); max_removed is 50 %" in why
    assert len(world.rows()) == 11
    assert not world.ingest().held, "it is told once"
    with world.ledger.database.writing(NOW) as w:
        assert ledger_checks.accept(w, "m", Parts.single(DAY), "me")
    done = world.ingest()
    assert not done.held
    assert (done.row_change.added, done.row_change.removed) == (0, 10)
    world.csv("b.csv", *rows)
    world.ingest()
    assert world.retract("b.csv").row_change.removed == 10, "what a person asks for has no brake"
    world.check()
