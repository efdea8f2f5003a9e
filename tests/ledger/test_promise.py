"""What the ledger forgets, on both databases: never what a promised read, an estimate or a report needs."""

from __future__ import annotations

from sqlalchemy import func, select

from partwise.backfill import Asked
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.as_of import readable
from partwise.ledger.read.pin import Version
from partwise.ledger.read.promise import oldest, promise_from, promised, trim
from partwise.ledger.records import backfills
from partwise.ledger.records.writers import Writer
from partwise.ledger.schema import arrival, backfill, revision, step, version, written
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts, Range, Reference
from partwise.tables import Graph, Input, Table
from tests.ledger.conftest import NOW

SAME = (Input("s", Reference.same()),)
GRAPH = Graph.of([Table("s", "source", 60, "s"), Table("v", "view", 60, "v", SAME, SAME)])


def put(ledger: Ledger, name: str, contents: dict[int, str], now: float) -> int:
    held = ledger.take(name, "test", 60, now)
    at = ledger.current(name)
    with ledger.database.reading() as r:
        seq = r.seq
    pin, start = (None, None) if name == "s" else (seq, min(contents))
    parts = {p: Content(1, digest) for p, digest in contents.items()}
    entry = Entry(
        name, at.generation, name, pin, start, parts, "test", arrived=dict.fromkeys(parts, 1) if name == "s" else {}
    )
    new = 0 if at.version is None else at.version + 1
    return ledger.commit(held, entry, new, now, seconds=1.0).seq


def count(ledger: Ledger, table: object) -> int:
    with ledger.database.reading() as r:
        return int(r.on.execute(select(func.count()).select_from(table)).scalar() or 0)  # type: ignore[arg-type]


def test_only_what_nothing_promised_needs_goes(ledger: Ledger) -> None:
    ledger.define(GRAPH, NOW)
    ledger.writer = Writer("s", "a run", "load")
    for n in range(30):
        put(ledger, "s", {0: f"a{n}", n + 1: "b"}, NOW + n)
    ledger.writer = None
    put(ledger, "v", {0: "x", 1: "y"}, NOW + 29.5)
    for n in range(5):
        put(ledger, "s", {0: f"c{n}"}, NOW + 100 + n)

    def read(moment: float) -> object:
        return readable(ledger.database, GRAPH.tables, ["s"], ledger.sequence_at(NOW + moment))

    then = {moment: read(moment) for moment in (29.2, 99, 102.5)}
    with ledger.database.writing(NOW + 200) as w:
        given = promise_from(w, NOW + 29.2)
        assert promised(w) == given
    with ledger.database.writing(NOW + 200) as w:
        gone = trim(w, ["s", "v"], given)
        assert oldest(w, "s") == Version(0, 29)
        assert oldest(w, "v") == Version(0, 0)
    assert {moment: read(moment) for moment in then} == then
    assert count(ledger, version) == 1 + 5 + 1
    assert count(ledger, revision) == 30 + 1 + 5 + 2  # one for every part of s, then each change since
    assert count(ledger, step) == 1 + 20
    assert count(ledger, written) == 30  # as long as there is a revision that each of them wrote
    assert count(ledger, arrival) == 65  # lateness is looked at over a longer time
    assert gone == 29 + 29 + 15
    assert ledger.audit() == {}
    with ledger.database.writing(NOW + 100 * 86400) as w:
        trim(w, ["s", "v"], promise_from(w, NOW + 99 * 86400))
    assert count(ledger, arrival) == 0
    assert count(ledger, version) == 2


def test_backfills_are_remembered_until_they_are_done_and_old(ledger: Ledger) -> None:
    ledger.define(GRAPH, NOW)
    put(ledger, "s", {0: "a", 1: "b", 2: "c"}, NOW)
    put(ledger, "v", {0: "x", 1: "y", 2: "z"}, NOW)
    asked = Asked("v", Range(0, 1), {"v": Parts.of((0, 1))})
    with ledger.database.writing(NOW) as w:
        found = backfills.begin(w, GRAPH, asked, True, "here:1:a", lambda _: False)
    assert [(s.table, s.parts, s.kind) for s in ledger.plan(NOW).steps] == [("v", (0, 1), "requested")]
    put(ledger, "s", {1: "late"}, NOW + 1)  # late rows do not take the request back
    assert {(s.parts, s.kind) for s in ledger.plan(NOW).steps} == {((0, 1), "requested")}
    put(ledger, "v", {0: "x", 1: "new"}, NOW + 2)
    with ledger.database.reading() as r:
        done = backfills.progress(r, GRAPH, found)["v"]
        assert (done.recomputed, done.changed, done.left) == (Parts.of((0, 1)), Parts.single(1), Parts())
        assert [b.number for b in backfills.unfinished(r)] == [found.number]
        assert [t.parts for t in backfills.times(r, "v")] == [2, 3]
        assert backfills.rows_of(r, "v", Parts.of((0, 2))) == 3
    with ledger.database.writing(NOW + 3) as w:
        backfills.finish(w, found.number, True)
        trim(w, ["v"], promise_from(w, NOW + 2))
    assert count(ledger, backfill) == 1
    with ledger.database.writing(NOW + 9) as w:
        trim(w, ["v"], promise_from(w, NOW + 8))
    assert count(ledger, backfill) == 0


def test_backfills_that_were_stopped_or_died_are_forgotten_with_the_revisions_that_tell_of_them(ledger: Ledger) -> None:
    ledger.define(GRAPH, NOW)
    put(ledger, "s", dict.fromkeys(range(4), "a"), NOW)
    put(ledger, "v", dict.fromkeys(range(4), "x"), NOW)
    numbers = []
    for p in range(3):
        with ledger.database.writing(NOW + p) as w:
            asked = Asked("v", Range(p, p), {"v": Parts.single(p)})
            numbers.append(backfills.begin(w, GRAPH, asked, True, f"here:{p}:a", lambda _: False).number)
    with ledger.database.writing(NOW + 10) as w:
        backfills.finish(w, numbers[0], False)
    with ledger.database.writing(NOW + 100) as w:  # others are running, for all that is known
        trim(w, ["v"], promise_from(w, NOW + 50))
        assert [b.number for b in backfills.unfinished(w)] == numbers[1:]
    with ledger.database.writing(NOW + 86400 + 1.5) as w:
        trim(w, ["v"], promise_from(w, NOW + 60))
        assert [b.number for b in backfills.unfinished(w)] == numbers[2:]
