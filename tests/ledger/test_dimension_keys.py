"""A change of a dimension makes only parts with changed keys due; whatever is not known of it makes all of them due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partwise.ledger.ledger import Ledger
from partwise.ledger.read.formula import due_parts
from partwise.ledger.records.dimension_changes import Met
from partwise.ledger.runs import due_rows
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Bound, Parts, Reference
from partwise.plan.model import parts_of_due
from partwise.tables import Graph, Input, Keyed, Table

T = 1_000.0
LAST_TWO = Reference(Bound(1, -1), Bound(1, 0))
INPUTS = (Input("s", LAST_TWO), Input("d", None))
BY_KEY = Keyed("d", ("k",), "s", ("k",), LAST_TWO)
V = Table("v", "view", 60, "v1", INPUTS, INPUTS, keyed=(BY_KEY,))
GRAPH = Graph.of([Table("s", "source", 60, "s1"), Table("d", "dimension", 1, "d1"), V])


@pytest.fixture
def joined(ledger: Ledger) -> Ledger:
    """v[1..4] are built from s[0..4] and d."""
    ledger.define(GRAPH, T)
    arrive(ledger, dict.fromkeys(range(5), "a"))
    change(ledger, "first")
    build(ledger)
    return ledger


def arrive(ledger: Ledger, parts: dict[int, str]) -> None:
    held = ledger.take("s", "ingest", 60, T)
    contents = {p: Content(1, digest) for p, digest in parts.items()}
    ledger.commit(held, Entry("s", 0, "s1", None, parts=contents), None, T)


def seq(ledger: Ledger) -> int:
    with ledger.database.reading() as r:
        return r.seq


def looked_up(ledger: Ledger, *parts: int) -> Met:
    """As of now these parts of s hold a changed key."""
    return Met(("k",), "s", ("k",), Parts.single(*parts), seq(ledger))


def change(ledger: Ledger, digest: str, *met: Met) -> None:
    held = ledger.take("d", "ingest", 60, T)
    entry = Entry("d", 0, "d1", None, parts={0: Content(1, digest)}, met=met)
    ledger.commit(held, Entry.from_json(entry.to_json()), None, T)


def build(ledger: Ledger, digest: str = "x") -> Parts:
    held = ledger.take("v", "step", 60, T)
    pin = ledger.pin(held, T)
    assert pin is not None
    return ledger.commit(held, pin.entry({j: Content(1, f"{digest}{j}") for j in pin.walk()}), None, T).changed


def due(ledger: Ledger) -> list[int]:
    """By the ledger, and, the same, by both ways to compute the formula."""
    assert ledger.audit() == {}
    with ledger.database.reading() as r:
        found = parts_of_due(due_rows(r, "v"))
        assert due_parts(r, ledger.graph(), ledger.graph()["v"]) == found
    return list(found)


def test_only_parts_that_hold_changed_keys_are_due(joined: Ledger) -> None:
    change(joined, "second", looked_up(joined, 2))
    assert due(joined) == [2, 3], "both read s[2]"
    build(joined)
    change(joined, "third", looked_up(joined))
    assert due(joined) == []
    change(joined, "fourth", looked_up(joined, 4))
    change(joined, "fifth", looked_up(joined, 0))
    assert due(joined) == [1, 4]
    arrive(joined, {2: "late"})
    assert due(joined) == [1, 2, 3, 4]
    build(joined, "y")
    assert due(joined) == []


def test_what_was_not_looked_up_makes_everything_due(joined: Ledger) -> None:
    change(joined, "second")
    assert due(joined) == [1, 2, 3, 4]
    build(joined)
    change(joined, "third", replace(looked_up(joined, 2), columns=("other",)))
    assert due(joined) == [1, 2, 3, 4]


def test_a_narrow_change_does_not_hide_a_wide_one(joined: Ledger) -> None:
    change(joined, "second")
    change(joined, "third", looked_up(joined, 2))
    assert due(joined) == [1, 2, 3, 4]


def test_a_view_that_joins_by_something_else_is_due_as_a_whole(joined: Ledger) -> None:
    other = replace(V, name="w", keyed=())
    joined.define(Graph.of([*GRAPH.tables.values(), other]), T)
    change(joined, "second", looked_up(joined, 2))
    assert due(joined) == [2, 3]
    with joined.database.reading() as r:
        assert list(parts_of_due(due_rows(r, "w"))) == [1, 2, 3, 4]


def test_a_part_that_changes_between_the_look_and_the_commit_counts(joined: Ledger) -> None:
    """s[3] has no changed key when they are looked up. Then a row with one comes late, and v[3] is computed with the old
    dimension: nobody else would ever say that it is wrong."""
    found = looked_up(joined, 1)
    arrive(joined, {3: "late, with a changed key"})
    assert build(joined, "with the old dimension") == Parts.single(3, 4)
    change(joined, "second", found)
    assert due(joined) == [1, 2, 3, 4]


def test_a_step_under_way_does_not_clear_what_became_due(joined: Ledger) -> None:
    arrive(joined, {2: "late"})
    held = joined.take("v", "step", 60, T)
    pin = joined.pin(held, T)
    assert pin is not None
    change(joined, "second", looked_up(joined, 3))
    joined.commit(held, pin.entry({j: Content(1, f"y{j}") for j in pin.walk()}), None, T)
    assert due(joined) == [3, 4], "both read s[3]; v[2] does not"


def test_parts_to_come_wait_for_nothing(joined: Ledger) -> None:
    change(joined, "second", looked_up(joined, 2))
    arrive(joined, {5: "new"})
    assert due(joined) == [2, 3, 5]
