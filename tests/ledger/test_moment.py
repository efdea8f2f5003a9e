"""What readers see at one time, on both databases: versions of tables, and parts of sources that exist by then."""

from __future__ import annotations

import pytest

from partwise.ledger.ledger import Ledger
from partwise.ledger.read.as_of import Readable, readable
from partwise.ledger.read.pin import Version
from partwise.ledger.read.reports import tables
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records.readers import pinned
from partwise.ledger.write.closing import close
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts, Reference
from partwise.tables import Graph, Input, Table

T = 1_000.0
GRAPH = Graph.of(
    [
        Table("s", "source", 60, "s1"),
        Table("v", "view", 60, "v1", (Input("s", Reference.same()),), (Input("s", Reference.same()),)),
    ]
)
ROWS = Content(2, "2:a")


def seq_at(ledger: Ledger, moment: float) -> int:
    return pinned(ledger.database, moment, moment=moment).seq


@pytest.fixture
def source(ledger: Ledger) -> Ledger:
    """At T+10 parts 0, 1 and 7 close and 2 and 3 have rows; at T+20 part 2 closes manually; 3 gets no closer."""
    ledger.define(GRAPH, T)
    held = ledger.take("s", "ingest", 60, T)
    contents = dict.fromkeys((0, 1, 7), ROWS)
    entry = Entry(
        "s", 0, "s1", None, parts=contents, open={2: ROWS, 3: ROWS}, arrived=dict.fromkeys((0, 1, 2, 3, 7), 2)
    )
    ledger.commit(held, entry, 0, T + 10)
    close(ledger, "s", 2, "me", T + 20)
    return ledger


def test_open_parts_do_not_exist_for_readers(source: Ledger) -> None:
    first, both = Version(0, 0), ("s", "v")
    now = readable(source.database, both, both)
    assert now == {"s": Readable(first, Parts.of((0, 2), (7, 7)))}
    then = readable(source.database, both, both, seq_at(source, T + 15))
    assert then == {"s": Readable(first, Parts.of((0, 1), (7, 7)))}
    # Closing is no version, but part of the time.
    assert readable(source.database, both, both, seq_at(source, T + 21)) == now
    assert readable(source.database, both, both, seq_at(source, T + 9)) == {}
    assert readable(source.database, both, ("v",)) == {"s": Readable(first)}  # not read, so not looked up
    assert readable(source.database, ("v",), both) == {}


def test_late_rows_are_counted_per_source(source: Ledger) -> None:
    held = source.take("s", "ingest", 60, T + 30)
    entry = Entry("s", 0, "s1", None, parts={1: Content(5, "5:b")}, open={3: Content(4, "4:b")}, arrived={1: 3, 3: 2})
    source.commit(held, entry, 1, T + 30)
    with as_defined(source, GRAPH, T + 40) as snapshot:
        assert [(row.table.name, row.late, row.quarantined) for row in tables(snapshot)] == [("s", 3, 0), ("v", 0, 0)]


def test_a_view_with_other_columns_is_read_as_it_was_until_all_parts_are_there(source: Ledger) -> None:
    def build(new: int, at: float, most: int = 10) -> None:
        held = source.take("v", "step", 60, at)
        pin = source.pin(held, at, limit=most)
        assert pin is not None
        source.commit(held, pin.entry({j: Content(1, f"1:{j}") for j in pin.walk()}), new, at)

    def read(moment: float | None = None) -> Version:
        seq = None if moment is None else seq_at(source, moment)
        return readable(source.database, ("v",), ("v",), seq)["v"].version

    build(0, T + 30)
    assert read() == Version(0, 0)
    held = source.take("v", "step", 60, T + 40)
    source.rebuild(held, T + 40)
    assert read() == Version(0, 0)
    source.adopt(held, [(0, None)], T + 41)  # the new table is made, and empty
    source.release(held, T + 41)
    assert source.current("v") == Version(1, 0)
    assert read() == read(T + 42) == Version(0, 0)
    build(1, T + 50, most=2)
    assert read() == read(T + 51) == Version(0, 0)  # not half of the parts
    build(2, T + 60)
    assert read() == read(T + 61) == Version(1, 2)
    assert read(T + 31) == read(T + 51) == Version(0, 0)  # as it was seen then, also from now on
    close(source, "s", 3, "me", T + 70)  # a part that is due since then is no part of it
    assert read() == Version(1, 2)
