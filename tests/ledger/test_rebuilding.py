"""A table that is made again: nothing runs that need not, and readers see one whole generation or the other."""

from __future__ import annotations

import pytest

from partwise.ledger.ledger import Ledger
from partwise.ledger.read.as_of import readable
from partwise.ledger.read.pin import Version
from partwise.ledger.runs import existing
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts
from tests.ledger.test_steps import GRAPH, T, arrive, build, steps


@pytest.fixture
def built(ledger: Ledger) -> Ledger:
    """s -> v -> w, three parts of each."""
    ledger.define(GRAPH, T)
    arrive(ledger, {0: "a", 1: "b", 2: "c"}, version=0)
    build(ledger, "v", version=0)
    build(ledger, "w", version=0)
    return ledger


def again(ledger: Ledger, table: str, now: float = T) -> Parts:
    held = ledger.take(table, "rebuild", 60, now)
    found = ledger.rebuild_again(held, now)
    ledger.release(held, now)
    return found


def parts(ledger: Ledger, table: str) -> list[int]:
    with ledger.database.reading() as r:
        return list(existing(r, table))


def seen(ledger: Ledger, table: str, moment: float | None = None) -> Version:
    seq = None if moment is None else ledger.sequence_at(moment)
    return readable(ledger.database, [table], [table], seq)[table].version


def load(ledger: Ledger, contents: dict[int, str], version: int, now: float = T) -> None:
    held = ledger.take("s", "ingest", 60, now)
    generation = ledger.current("s").generation
    made = {p: Content(1, digest) for p, digest in contents.items()}
    ledger.commit(held, Entry("s", generation, "s1", None, parts=made), version, now)


def test_a_view_that_comes_back_as_it_was_lets_its_readers_rest(built: Ledger) -> None:
    assert list(again(built, "v")) == [0, 1, 2]
    assert (parts(built, "v"), parts(built, "w")) == ([], [0, 1, 2])
    assert set(steps(built.plan(T))) == {"v"}
    assert seen(built, "v") == Version(0, 0)
    assert not build(built, "v", version=0), "the same content is no change"
    assert seen(built, "v") == Version(1, 0)
    assert not built.plan(T).steps
    assert not built.audit()


def test_what_comes_back_otherwise_is_a_change(built: Ledger) -> None:
    again(built, "v")
    assert list(build(built, "v", digest="y", version=0)) == [0, 1, 2]
    assert set(steps(built.plan(T))) == {"w"}


def test_a_source_comes_back_with_other_parts_before_it_is_whole(built: Ledger) -> None:
    again(built, "s")
    assert built.rebuilding() == {"s": Parts.of((0, 2))}
    load(built, {0: "a", 1: "other"}, 0)
    assert built.rebuilding() == {"s": Parts.single(2)}
    assert seen(built, "s") == Version(0, 0)
    load(built, {2: "c"}, 1)
    assert (built.rebuilding(), seen(built, "s")) == ({}, Version(1, 1))
    assert steps(built.plan(T)) == {"v": Parts.single(1)}
    assert not built.audit()


def test_as_of_reads_know_since_when_it_is_whole(built: Ledger) -> None:
    again(built, "s", T + 10)
    load(built, {0: "a", 1: "b"}, 0, T + 20)
    load(built, {2: "c"}, 1, T + 30)
    assert [seen(built, "s", T + t) for t in (5, 15, 25, 35)] == [Version(0, 0)] * 3 + [Version(1, 1)]


def test_what_was_never_built_becomes_due_when_its_inputs_are_back(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    arrive(ledger, {0: "a"}, version=0)
    again(ledger, "s")
    assert not ledger.plan(T).steps
    load(ledger, {0: "a"}, 0)
    assert steps(ledger.plan(T)) == {"v": Parts.single(0)}
    assert not ledger.audit()


def test_a_step_that_pinned_before_its_input_was_lost_and_changed_stays_due(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    arrive(ledger, {0: "a"}, version=0)
    held = ledger.take("v", "step", 60, T)
    pin = ledger.pin(held, T)
    assert pin is not None
    again(ledger, "s")
    load(ledger, {0: "other"}, 0)
    ledger.commit(held, pin.entry({0: Content(1, "of a")}), 0, T)
    assert steps(ledger.plan(T)) == {"v": Parts.single(0)}
    assert not ledger.audit()


def test_nothing_expires_while_a_table_is_made_again(built: Ledger) -> None:
    before = built.may_expire("s", T)
    again(built, "v")
    assert built.may_expire("s", T) < before
