"""Which version of a forward dimension a part reads, one behaviour at a time, on both databases."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import text

from partwise.ledger.database import Database
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import upgrade
from partwise.ledger.read.born import DimensionVersion as Kept
from partwise.ledger.read.born import Versions, versions
from partwise.ledger.read.pin import Pin
from partwise.parts import Parts, Reference
from partwise.tables import Graph, Input, Table
from tests.ledger.test_steps import SAME, T, arrive, build, steps

RATES = Table("rates", "dimension", 1, "r1", forward=True)
READ = (Input("rates", None),)
PRICED = Table("priced", "view", 60, "p1", (*SAME, *READ), (*SAME, *READ))
SOURCES = [Table("s", "source", 60, "s1"), Table("u", "source", 60, "u1")]
GRAPH = Graph.of([*SOURCES, RATES, PRICED])


def defined(ledger: Ledger, *tables: Table) -> Ledger:
    ledger.define(Graph.of([*SOURCES, *tables]), T)
    return ledger


def load(ledger: Ledger, digest: str) -> int:
    return arrive(ledger, {0: digest}, "rates")


def pinned(ledger: Ledger, table: str = "priced", *parts: int) -> Pin | None:
    held = ledger.take(table, "step", 60, T)
    found = ledger.pin(held, T, Parts.single(*parts) if parts else None)
    ledger.release(held, T)
    return found


def test_the_last_version_by_the_time_that_a_part_was_born_counts() -> None:
    known = Versions((Kept(5, 1, T), Kept(9, 1, T), Kept(12, 1, T)), since=3)
    assert [known.at(born).seq for born in (1, 5, 8, 9, 11, 12, 50)] == [5, 5, 5, 9, 9, 12, 12]
    assert [replace(known, since=10).at(born).seq for born in (1, 9, 11, 12)] == [9, 9, 9, 12]


def test_a_new_version_counts_for_source_parts_that_come_to_exist_later(ledger: Ledger) -> None:
    defined(ledger, RATES, PRICED)
    one = load(ledger, "one")
    arrive(ledger, {0: "a"})
    two = load(ledger, "two")
    arrive(ledger, {1: "b"})
    found = pinned(ledger)
    assert found is not None
    assert (found.due, found.forward) == (Parts.single(0), {"rates": one})
    assert build(ledger, "priced") == Parts.single(0)
    found = pinned(ledger)
    assert found is not None
    assert (found.due, found.forward) == (Parts.single(1), {"rates": two})
    assert build(ledger, "priced") == Parts.single(1)
    load(ledger, "three")
    assert not steps(ledger.plan(T))
    assert not ledger.audit()
    arrive(ledger, {0: "late"})
    found = pinned(ledger)
    assert found is not None
    assert (found.due, found.forward) == (Parts.single(0), {"rates": one})


def test_what_came_before_the_first_version_reads_the_first_version(ledger: Ledger) -> None:
    defined(ledger, RATES, PRICED)
    arrive(ledger, {0: "a"})
    assert not steps(ledger.plan(T))
    one = load(ledger, "one")
    load(ledger, "two")
    found = pinned(ledger)
    assert found is not None
    assert found.forward == {"rates": one}


def test_a_dimension_that_turns_forward_rewrites_nothing_and_one_that_turns_back_everything(ledger: Ledger) -> None:
    old = replace(RATES, forward=False)
    defined(ledger, old, PRICED)
    load(ledger, "one")
    arrive(ledger, {0: "a"})
    build(ledger, "priced")
    two = load(ledger, "two")
    build(ledger, "priced", "y")
    defined(ledger, RATES, PRICED)
    assert not steps(ledger.plan(T))
    assert not ledger.audit()
    load(ledger, "three")
    assert not steps(ledger.plan(T))
    assert not ledger.audit()
    arrive(ledger, {0: "late"})
    found = pinned(ledger)
    assert found is not None
    assert found.forward == {"rates": two}
    build(ledger, "priced", "y")
    defined(ledger, old, PRICED)
    assert steps(ledger.plan(T)) == {"priced": Parts.single(0)}
    assert not ledger.audit()
    found = pinned(ledger)
    assert found is not None
    assert not found.forward


def test_readers_are_told_when_a_part_was_born_at_another_time_though_its_content_is_the_same(ledger: Ledger) -> None:
    """u[0] came after the second version; v reads it as well now, and what reads v has to follow."""
    v = Table("v", "view", 60, "v1", SAME, SAME)
    read = (Input("v", Reference.same()), *READ)
    w = Table("w", "view", 60, "w1", read, read)
    defined(ledger, RATES, v, w)
    one = load(ledger, "one")
    arrive(ledger, {0: "a"})
    build(ledger, "v")
    found = pinned(ledger, "w")
    assert found is not None
    assert found.forward == {"rates": one}
    build(ledger, "w")
    two = load(ledger, "two")
    arrive(ledger, {0: "a"}, "u")
    both = (*SAME, Input("u", Reference.same()))
    defined(ledger, RATES, replace(v, fingerprint="v2", inputs=both, initial=both), w)
    assert steps(ledger.plan(T)) == {"v": Parts.single(0)}
    assert build(ledger, "v") == Parts()
    assert steps(ledger.plan(T)) == {"w": Parts.single(0)}
    assert not ledger.audit()
    found = pinned(ledger, "w")
    assert found is not None
    assert found.forward == {"rates": two}
    build(ledger, "w")
    assert not steps(ledger.plan(T))
    assert not ledger.audit()


def test_a_view_that_nobody_asked_when_it_was_born_is_asked_later(ledger: Ledger) -> None:
    """v was there before anything read a forward dimension."""
    v = Table("v", "view", 60, "v1", SAME, SAME)
    read = (Input("v", Reference.same()), *READ)
    defined(ledger, RATES, v)
    one = load(ledger, "one")
    arrive(ledger, {0: "a"})
    load(ledger, "two")
    build(ledger, "v")
    two = load(ledger, "three")
    arrive(ledger, {1: "b"})
    build(ledger, "v")
    defined(ledger, RATES, v, Table("w", "view", 60, "w1", read, read))
    for j, version in ((0, one), (1, two)):
        found = pinned(ledger, "w", j)
        assert found is not None
        assert found.forward == {"rates": version}


def test_equal_content_is_no_version(ledger: Ledger) -> None:
    defined(ledger, RATES, PRICED)
    for digest in ("one", "one", "two", "one"):
        load(ledger, digest)
    with ledger.database.reading() as r:
        assert len(versions(r, "rates").contents) == 3


def test_an_older_ledger_learns_when_source_parts_came_to_exist(empty_url: str) -> None:
    database = Database(empty_url)
    upgrade(database, head="0011")
    columns = "revision, changed_seq, as_of, self_as_of, fingerprint, rows, digest, updated_at"
    with database.changing_schema() as on:
        on.execute(
            text(
                'INSERT INTO catalog ("table", kind, length, fingerprint, defined_seq, definition, generation, retired, '
                "frozen_hits) VALUES ('s', 'source', 60, 's1', 1, '{}', 0, false, 0)"
            )
        )
        for p in (1, 2):
            on.execute(
                text(f"INSERT INTO part (\"table\", part, {columns}) VALUES ('s', {p}, 2, 9, 9, 9, 's1', 1, 'x', 0)")
            )
        for seq in (4, 9):  # of part 2 nothing is on record
            on.execute(
                text(
                    'INSERT INTO revision ("table", part, seq, revision, rows, digest, at, reason) '
                    f"VALUES ('s', 1, {seq}, 1, 1, 'x', 0, '')"
                )
            )
    upgrade(database)
    with database.changing_schema() as on:
        assert on.execute(text("SELECT part, born FROM part ORDER BY part")).all() == [(1, 4), (2, 0)]
    database.close()
