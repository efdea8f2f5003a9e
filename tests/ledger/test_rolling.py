"""Rolling tables in the ledger: only the newest part is ever due, built and there, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partwise.ledger.ledger import Ledger
from partwise.ledger.read import reports
from partwise.ledger.read.history import history
from partwise.ledger.read.snapshot import as_defined
from partwise.parts import Parts, Reference
from partwise.tables import Graph, Input, Table
from tests.ledger.test_steps import T, arrive, build, fail, steps

WINDOW = (Input("s", Reference.window(-2, 0)),)
NOW = Table("now", "view", 60, "n1", WINDOW, WINDOW, rolling=True)
GRAPH = Graph.of([Table("s", "source", 60, "s1"), NOW])


@pytest.fixture
def rolling(ledger: Ledger) -> Ledger:
    """A window of three parts over s[0..5]."""
    ledger.define(GRAPH, T)
    arrive(ledger, dict.fromkeys(range(6), "a"))
    return ledger


def due(ledger: Ledger) -> Parts:
    return steps(ledger.plan(T)).get("now", Parts())


def test_only_the_newest_part_is_built(rolling: Ledger) -> None:
    assert due(rolling) == Parts.single(5)
    with as_defined(rolling, GRAPH, T) as snapshot:
        (_, shown) = reports.tables(snapshot)
        assert (shown.parts, shown.missing, shown.blocked) == (0, 1, 0)
    assert build(rolling, "now") == Parts.single(5)
    assert due(rolling) == Parts()
    with as_defined(rolling, GRAPH, T) as snapshot:
        (_, shown) = reports.tables(snapshot)
        assert (shown.parts, shown.first, shown.last, shown.missing, shown.expired) == (1, 5, 5, 0, 0)
        assert history(snapshot, "now", 4).state == "expired"


def test_it_moves_on_and_leaves_parts_out(rolling: Ledger) -> None:
    build(rolling, "now")
    arrive(rolling, {6: "a", 7: "a", 9: "a"})
    assert due(rolling) == Parts.single(7), "the window of 8 and 9 is not complete"
    build(rolling, "now")
    arrive(rolling, {8: "a"})
    assert due(rolling) == Parts.single(9)
    build(rolling, "now")
    assert rolling.audit() == {}
    with as_defined(rolling, GRAPH, T) as snapshot:
        assert [row.part for row in reports.parts(snapshot, "now").parts] == [9]


def test_late_rows_count_only_inside_the_window(rolling: Ledger) -> None:
    build(rolling, "now")
    arrive(rolling, {2: "late"})
    assert due(rolling) == Parts(), "no window that is shown holds it"
    with as_defined(rolling, GRAPH, T) as snapshot:
        assert reports.tables(snapshot)[1].frozen_hits == 0, "nobody misses what is not shown"
    arrive(rolling, {3: "late"})
    assert due(rolling) == Parts.single(5)


def test_whoever_asks_for_a_part_gets_the_newest(rolling: Ledger) -> None:
    """Else a view that is slower than its source would never be computed: each run finds a newer part."""
    held = rolling.take("now", "step", 60, T)
    pin = rolling.pin(held, T, Parts.single(3))
    assert pin is not None
    assert pin.due == Parts.single(5)
    assert rolling.pin(held, T, Parts.single(6)) is None


def test_no_older_part_takes_the_place_of_one_that_failed(rolling: Ledger) -> None:
    fail(rolling, "now", 5)
    assert due(rolling) == Parts()
    arrive(rolling, {6: "a"})
    build(rolling, "now")
    arrive(rolling, {7: "a"})
    fail(rolling, "now", 7)
    arrive(rolling, {4: "late"})
    assert due(rolling) == Parts.single(6), "what is shown is repaired"
    build(rolling, "now")
    arrive(rolling, {5: "late"})
    assert due(rolling) == Parts.single(7), "what failed is tried again: it has other inputs"
    fail(rolling, "now", 7)
    assert due(rolling) == Parts.single(6), "what is shown is repaired"


def test_to_roll_or_not_begins_anew(rolling: Ledger) -> None:
    build(rolling, "now")
    for table, parts in ((replace(NOW, rolling=False), Parts.of((2, 5))), (NOW, Parts.single(5))):
        before = rolling.current("now").generation
        rolling.define(Graph.of([GRAPH["s"], table]), T)
        assert rolling.current("now").generation == before + 1, "the table has other columns"
        assert due(rolling) == parts
        build(rolling, "now")
        assert rolling.audit() == {}
