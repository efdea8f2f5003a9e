"""Dimensions whose rows are valid for a time: what is due when they change, on both databases."""

from __future__ import annotations

from dataclasses import replace

from partwise.ledger.ledger import Ledger
from partwise.ledger.read.validity import changed_times
from partwise.ledger.runs import all_due
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import FOREVER, Parts, Range, Reference
from partwise.plan.model import Due
from partwise.tables import Graph, Input, Table
from tests.ledger.test_steps import SAME, T, arrive, build, steps

PRICES = Table("prices", "dimension", 1, "p1", timed=True)
READ = (Input("prices", None),)
PRICED = Table("priced", "view", 60, "v1", (*SAME, *READ), (*SAME, *READ))
WINDOW = (Input("s", Reference.window(-2, 0)), *READ)
WIDE = Table("wide", "view", 60, "w1", WINDOW, WINDOW)
SOURCES = [Table("s", "source", 60, "s1")]


def defined(ledger: Ledger, *views: Table) -> Ledger:
    ledger.define(Graph.of([*SOURCES, PRICES, *views]), T)
    arrive(ledger, {0: "one"}, "prices")
    arrive(ledger, {p: f"s{p}" for p in range(6)})
    for view in views:
        build(ledger, view.name)
    assert not steps(ledger.plan(T))
    return ledger


def change(ledger: Ledger, digest: str, *times: tuple[int, int], known: bool = True) -> None:
    held = ledger.take("prices", "ingest", 60, T)
    told = tuple(Range(*time) for time in times) if known else None
    ledger.commit(held, Entry("prices", 0, "p1", None, parts={0: Content(1, digest)}, times=told), None, T)


def all_due_of(ledger: Ledger) -> dict[str, list[Due]]:
    with ledger.database.reading() as r:
        return all_due(r)


def test_only_parts_of_the_time_that_changed_are_due(ledger: Ledger) -> None:
    defined(ledger, PRICED, WIDE)
    change(ledger, "two", (130, 190))  # minutes 2 and 3
    assert steps(ledger.plan(T)) == {"priced": Parts.of((2, 3)), "wide": Parts.of((2, 5))}
    assert not ledger.audit()
    build(ledger, "priced", "y")
    build(ledger, "wide", "y")
    assert not steps(ledger.plan(T))
    assert not ledger.audit()
    change(ledger, "three", (-FOREVER, 59), (300, FOREVER))
    assert steps(ledger.plan(T)) == {"priced": Parts.single(0, 5), "wide": Parts.single(2, 5)}
    assert not ledger.audit()


def test_rows_of_own_earlier_parts_have_their_times_too(ledger: Ledger) -> None:
    """A part whose earlier part met a row that changed is due, though that one itself stays as it is."""
    own = Input("kept", Reference.window(-1, -1))
    kept = Table("kept", "view", 60, "k1", (own, *SAME, *READ), SAME, own_times=True)
    total = replace(kept, name="total", inputs=(replace(own, table="total"), *SAME, *READ), own_times=False)
    defined(ledger, kept, total)
    change(ledger, "two", (130, 190))  # minutes 2 and 3
    assert {name: Parts.of(*((d.lo, d.hi) for d in due)) for name, due in all_due_of(ledger).items()} == {
        "kept": Parts.of((2, 4)),
        "total": Parts.of((2, 3)),
    }
    assert not ledger.audit()
    build(ledger, "kept", "x")  # nothing comes out otherwise, and each of them was looked at
    build(ledger, "total", "x")
    assert not ledger.audit()
    assert not steps(ledger.plan(T))


def test_what_arrives_later_reads_the_newest_content(ledger: Ledger) -> None:
    """Of rows for a time of which no part exists yet nothing is due, and nothing is forgotten."""
    defined(ledger, PRICED)
    change(ledger, "two", (600, 700))
    assert not steps(ledger.plan(T))
    assert not ledger.audit()
    arrive(ledger, {6: "six"})
    assert steps(ledger.plan(T)) == {"priced": Parts.single(6)}
    assert not ledger.audit()


def test_where_nobody_knows_the_time_everything_is_due(ledger: Ledger) -> None:
    defined(ledger, PRICED)
    change(ledger, "two", known=False)
    assert steps(ledger.plan(T)) == {"priced": Parts.of((0, 5))}
    build(ledger, "priced", "y")
    change(ledger, "three")  # rows that are valid at no time at all
    assert not steps(ledger.plan(T))
    assert not ledger.audit()


def test_what_changes_while_a_step_runs_stays_due(ledger: Ledger) -> None:
    defined(ledger, PRICED)
    arrive(ledger, {1: "late", 4: "late"})
    held = ledger.take("priced", "step", 60, T)
    pin = ledger.pin(held, T)
    assert pin is not None
    change(ledger, "two", (60, 119))
    ledger.commit(held, pin.entry({j: Content(1, f"y{j}") for j in pin.walk()}), None, T)
    assert steps(ledger.plan(T)) == {"priced": Parts.single(1)}
    assert not ledger.audit()


def test_entries_of_orphans_know_the_times(ledger: Ledger) -> None:
    entry = Entry("prices", 0, "p1", None, parts={0: Content(1, "two")}, times=(Range(60, 119),))
    assert Entry.from_json(entry.to_json()) == entry
    assert (
        Entry.from_json({k: v for k, v in replace(entry, times=None).to_json().items() if k != "times"}).times is None
    )
    defined(ledger, PRICED)
    held = ledger.take("prices", "ingest", 60, T)
    ledger.adopt(held, [(0, entry)], T)
    ledger.release(held, T)
    assert steps(ledger.plan(T)) == {"priced": Parts.single(1)}
    with ledger.database.reading() as r:
        assert [(c.lo, c.hi) for c in changed_times(r, "prices", 0)] == [(-FOREVER, FOREVER), (60, 119)]


def test_a_dimension_that_is_no_longer_read_by_time(ledger: Ledger) -> None:
    """Views mean something else then, so that all of them are due; its changes count for everything again."""
    defined(ledger, PRICED)
    other = replace(PRICED, fingerprint="v2")
    ledger.define(Graph.of([*SOURCES, replace(PRICES, timed=False), other]), T)
    build(ledger, "priced", "y")
    arrive(ledger, {0: "two"}, "prices")
    assert steps(ledger.plan(T)) == {"priced": Parts.of((0, 5))}
    assert not ledger.audit()
