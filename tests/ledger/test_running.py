"""What runs now is told as long as its lease is held, and by nobody else's."""

from __future__ import annotations

from partwise.ledger.ledger import Ledger
from partwise.ledger.records.running import Running, note, running_steps
from partwise.parts import Range
from partwise.tables import Graph, Table


def test_a_note_counts_while_its_lease_is_held(ledger: Ledger) -> None:
    ledger.define(Graph.of((Table("v", "view", 60, "f"), Table("w", "view", 60, "f"))), 0.0)

    def seen(now: float) -> list[Running]:
        with ledger.database.reading() as r:
            return running_steps(r, now)

    before = ledger.take("v", "a", 60, 0.0)
    with ledger.database.reading() as r:
        seq = r.seq
    note(ledger.database, before, Running("v", Range(1, 9), 2, 9, 5.0))
    note(ledger.database, before, step := Running("v", Range(1, 9), 3, 9, 5.0))
    assert seen(10.0) == [step]
    assert seen(61.0) == []  # its writer has not renewed the lease: it died
    after = ledger.take("v", "b", 60, 100.0)
    assert seen(101.0) == []  # the note is not that of the one who holds the lease now
    note(ledger.database, after, later := Running("v", Range(4, 9), 0, 6, 100.0))
    assert seen(101.0) == [later]
    ledger.release(after, 102.0)
    assert seen(103.0) == []
    with ledger.database.reading() as r:
        assert r.seq == seq + 2  # only the leases took a number
