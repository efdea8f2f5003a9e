"""Which version of a forward dimension a part reads, one behaviour at a time, on both databases."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import select, text, update

from partwise.ledger.database import Database
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import upgrade
from partwise.ledger.read.born import Born, Versions, versions
from partwise.ledger.read.born import DimensionVersion as Kept
from partwise.ledger.read.forward_why import read_versions_of
from partwise.ledger.read.pin import Pin
from partwise.ledger.schema import part, revision
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts, Range, Reference
from partwise.tables import Graph, Input, Table
from partwise.upkeep.retain import give_up
from partwise.upkeep.versions import first_needed
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


def versions_read(ledger: Ledger, table: str, j: int) -> int:
    """The version, by its sequence, that a part reads of the first dimension."""
    with ledger.database.reading() as r:
        graph = ledger.graph_at(r)
        [first, *_] = read_versions_of(r, graph, graph[table], j)
        return next(item.seq for item in versions(r, first.dimension).contents if item.number == first.number)


def test_the_last_version_by_the_time_that_a_part_was_born_counts() -> None:
    known = Versions((Kept(5, 1, T), Kept(9, 1, T), Kept(12, 1, T)), since=3)
    assert [known.at(Born(born, 0)).seq for born in (1, 5, 8, 9, 11, 12, 50)] == [5, 5, 5, 9, 9, 12, 12]
    assert [replace(known, since=10).at(Born(born, 0)).seq for born in (1, 9, 11, 12)] == [9, 9, 9, 12]


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


def test_what_counts_for_a_time_range_counts_for_all_that_its_source_parts_decide(ledger: Ledger) -> None:
    """Both views read s[0] and nothing else, one of them a part later: they read the same version. What was born with a part
    outside of the range does not change, and neither does what reads the same version as before."""
    before = (Input("s", Reference.window(-1, -1)), Input("rates", None))
    shifted = Table("shifted", "view", 60, "h1", before, before)
    both = (Input("s", Reference.window(-1, 0)), Input("rates", None))
    two_parts = Table("two_parts", "view", 60, "t1", both, both)
    defined(ledger, RATES, PRICED, shifted, two_parts)
    one = load(ledger, "one")
    arrive(ledger, {0: "a"})
    arrive(ledger, {1: "b"})
    two = load(ledger, "two")
    arrive(ledger, {2: "c"})
    for _ in range(2):
        for name in ("priced", "shifted", "two_parts"):
            build(ledger, name)
    assert not steps(ledger.plan(T))
    assert ledger.repin("rates", Range(0, 0), two, "me", T) == {
        "priced": Parts.single(0),
        "shifted": Parts.single(1),  # two_parts[1] was born with s[1]
    }
    assert steps(ledger.plan(T)) == {"priced": Parts.single(0), "shifted": Parts.single(1)}
    assert not ledger.audit()
    for name, j in (("priced", 0), ("shifted", 1)):
        found = pinned(ledger, name, j)
        assert found is not None
        assert found.forward == {"rates": two}
        build(ledger, name)
    assert ledger.repin("rates", Range(0, 60), two, "me", T) == {
        "priced": Parts.single(1),
        "shifted": Parts.single(2),
        "two_parts": Parts.single(1),
    }
    assert ledger.repin("rates", Range(0, 0), None, "me", T) == {"priced": Parts.single(0), "shifted": Parts.single(1)}
    found = pinned(ledger, "priced", 0)
    assert found is not None
    assert found.forward == {"rates": one}
    assert not ledger.audit()


def test_what_is_computed_while_another_version_begins_to_count_is_due_again(ledger: Ledger) -> None:
    """The first part of a view, of which nothing is on record yet, and a later one."""
    defined(ledger, RATES, PRICED)
    one = load(ledger, "one")
    arrive(ledger, {0: "a"})
    two = load(ledger, "two")
    for j in (0, 1):
        held = ledger.take("priced", "step", 60, T)
        found = ledger.pin(held, T)
        assert found is not None
        ledger.repin("rates", Range(60 * j, 60 * j), two if j == 0 else one, "me", T)
        ledger.commit(held, found.entry({p: Content(1, f"{p} old") for p in found.walk()}), None, T)
        assert steps(ledger.plan(T)) == {"priced": Parts.single(j)}
        assert not ledger.audit()
        build(ledger, "priced")
        arrive(ledger, {1: "b"})


def test_what_was_said_ends_when_a_dimension_turns(ledger: Ledger) -> None:
    defined(ledger, RATES, PRICED)
    load(ledger, "one")
    arrive(ledger, {0: "a"})
    two = load(ledger, "two")
    ledger.repin("rates", Range(0, 59), two, "me", T)
    build(ledger, "priced")
    defined(ledger, replace(RATES, forward=False, fingerprint="r2"), PRICED)
    build(ledger, "priced")
    three = load(ledger, "three")
    build(ledger, "priced")
    defined(ledger, RATES, PRICED)
    assert not steps(ledger.plan(T))
    found = versions_read(ledger, "priced", 0)
    assert found == three


def test_a_ledger_that_knows_no_times_of_births_finds_them_out(ledger: Ledger) -> None:
    v = Table("v", "view", 60, "v1", SAME, SAME)
    read = (Input("v", Reference.same()), *READ)
    defined(ledger, RATES, v, Table("w", "view", 60, "w1", read, read))
    load(ledger, "one")
    arrive(ledger, {0: "a"})
    arrive(ledger, {1: "a"})
    two = load(ledger, "two")
    for name in ("v", "w"):
        build(ledger, name)
    with ledger.database.writing(T) as w:
        w.on.execute(update(part).where(part.c.table.in_(("v", "w"))).values(born_at=None))
    arrive(ledger, {1: "late"})
    build(ledger, "v")
    assert ledger.repin("rates", Range(0, 0), two, "me", T) == {"w": Parts.single(0)}
    assert not ledger.audit()


def test_versions_and_births_stay_in_the_ledger_as_long_as_they_are_read(ledger: Ledger) -> None:
    """Of a source part the first revision says when it came to exist; of a dimension each version may still be read."""
    defined(ledger, RATES, PRICED)
    one = load(ledger, "one")
    first = arrive(ledger, {0: "a"})
    two = load(ledger, "two")
    arrive(ledger, {1: "b"})
    arrive(ledger, {0: "late"})
    load(ledger, "three")
    arrive(ledger, {0: "later"})
    for _ in range(3):
        build(ledger, "priced")
    give_up(ledger, 0.0, T + 1)
    with ledger.database.reading() as r:
        assert len(versions(r, "rates").contents) == 3
        kept = r.on.execute(select(revision.c.seq).where(revision.c.table == "s", revision.c.part == 0)).scalars().all()
        assert (min(kept), len(kept)) == (first, 2)
        assert first_needed(r, "rates") == one
    ledger.request("priced", Parts.single(0), T)
    found = pinned(ledger, "priced", 0)
    assert found is not None
    assert found.forward == {"rates": one}
    build(ledger, "priced")
    for name in ("priced", "s"):
        held = ledger.take(name, "retain", 60, T)
        ledger.commit(held, Entry(name, 0, "", None, floor=1), None, T)
    with ledger.database.reading() as r:
        assert first_needed(r, "rates") == two
    ledger.repin("rates", Range(0, 0), one, "me", T)
    with ledger.database.reading() as r:
        assert first_needed(r, "rates") == one


def test_when_source_parts_came_to_exist_stays_known_before_any_dimension_counts_forward(ledger: Ledger) -> None:
    """It may turn forward later, and `verify` asks then which source part came last."""
    defined(ledger, replace(RATES, forward=False), PRICED)
    load(ledger, "one")
    first = arrive(ledger, {0: "a"})
    arrive(ledger, {1: "b"})
    for late in ("late", "later"):
        arrive(ledger, {0: late})
    build(ledger, "priced")
    give_up(ledger, 0.0, T + 1)
    with ledger.database.reading() as r:
        kept = r.on.execute(select(revision.c.seq).where(revision.c.table == "s", revision.c.part == 0)).scalars().all()
        assert (min(kept), len(kept)) == (first, 2)
