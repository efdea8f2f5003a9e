"""Really concurrent transactions: processes of their own, on a SQLite file and on PostgreSQL."""

from __future__ import annotations

import time

import pytest

from partwise.ledger.ledger import Ledger
from partwise.ledger.write.commit import Content, Entry
from partwise.ledger.write.leases import Busy, Fenced
from partwise.parts import Parts, Reference
from partwise.tables import Graph, Input, Table
from tests.ledger.conftest import NOW
from tests.ledger.processes import CONTEXT, Process, run_together
from tests.ledger.workers import hold_transaction, ingest_each, read_together, take_lease, tick, write_together

BOTH_INPUTS = (Input("s", Reference.same()), Input("u", Reference.same()))
GRAPH = Graph.of(
    [
        Table("s", "source", 60, "f"),
        Table("u", "source", 60, "f"),
        Table("v", "view", 60, "f", BOTH_INPUTS, BOTH_INPUTS),
    ]
)


def test_a_later_transaction_waits_for_an_earlier_sequence(ledger: Ledger, url: str) -> None:
    """c1: nobody can see sequence n + 1 without n."""
    began, go_on = CONTEXT.Event(), CONTEXT.Event()
    first = Process(hold_transaction, url, began, go_on)
    assert began.wait(60)
    second = Process(tick, url)
    time.sleep(1.5)
    with ledger.database.reading() as r:  # a reader does not wait, and sees neither
        assert r.seq == 0
    released = time.monotonic()
    go_on.set()
    assert first.result() == 1
    seq, at = second.result()
    assert seq == 2
    assert at > released


def test_a_killed_transaction_leaves_no_sequence_behind(ledger: Ledger, url: str) -> None:
    began, go_on = CONTEXT.Event(), CONTEXT.Event()
    first = Process(hold_transaction, url, began, go_on)
    assert began.wait(60)
    first.kill()
    with ledger.database.writing(NOW) as w:
        assert w.seq == 1


def test_inputs_that_arrive_at_once_make_their_reader_due(ledger: Ledger, url: str) -> None:
    """c2: each transaction alone sees the other input missing."""
    ledger.define(GRAPH, NOW)
    parts = list(range(40))
    run_together([(ingest_each, (url, "s", parts)), (ingest_each, (url, "u", parts))])
    steps = ledger.plan(NOW).steps
    assert Parts.of(*(step.parts for step in steps)) == Parts.of((0, 39))
    assert ledger.audit() == {}


def test_one_of_many_gets_the_lease(ledger: Ledger, url: str) -> None:
    ledger.define(GRAPH, NOW)
    fences = run_together([(take_lease, (url, "v"))] * 6)
    assert sorted(fences, key=str) == [1, None, None, None, None, None]


def test_a_holder_killed_is_followed_after_expiry_and_a_zombie_is_refused(ledger: Ledger, url: str) -> None:
    ledger.define(GRAPH, NOW)
    assert Process(take_lease, url, "s").result() == 1
    with pytest.raises(Busy):
        ledger.take("s", "next", 60, NOW + 59)
    zombie = ledger.take("s", "zombie", 60, NOW + 61)
    held = ledger.take("s", "next", 60, NOW + 200)
    assert (zombie.fence, held.fence) == (2, 3)
    entry = Entry("s", 0, "f", None, parts={0: Content(1, "x")})
    with pytest.raises(Fenced):
        ledger.commit(zombie, entry, None, NOW + 201)
    assert ledger.commit(held, entry, None, NOW + 202).changed == Parts.single(0)


def test_readers_see_one_moment_while_others_write(ledger: Ledger, url: str) -> None:
    ledger.define(GRAPH, NOW)
    tables, until = list(GRAPH.tables), CONTEXT.Event()
    reader = (read_together, (url, tables, until))
    written, *seen = run_together([(write_together, (url, tables, until, 2.0)), reader, reader])
    assert written > 20
    for reads, torn in seen:
        assert reads > 20
        assert torn == []
