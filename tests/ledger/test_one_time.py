"""One time for all writers, on both databases: the same moment gives the same answer, whenever it is asked."""

from __future__ import annotations

import threading
import time

import pytest
from sqlalchemy import insert, select, text

from partwise.ledger.database import Database
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger, upgrade
from partwise.ledger.read.as_of import Readable, readable
from partwise.ledger.read.promise import promise_from
from partwise.ledger.records.readers import NotYet, TooOld, enter, leave, pinned, reading
from partwise.ledger.schema import clock, reader, revision, version
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts, Reference
from partwise.tables import Graph, Input, Table

T = 1_000.0
SAME = (Input("s", Reference.same()),)
GRAPH = Graph.of([Table("s", "source", 60, "s"), Table("v", "view", 60, "v", SAME, SAME)])
BOTH = ("s", "v")


def put(ledger: Ledger, name: str, parts: dict[int, str], now: float) -> int:
    held = ledger.take(name, f"{name} {now}", 60, now)
    at = ledger.current(name)
    with ledger.database.reading() as r:
        seq = r.seq
    pin, start = (None, None) if name == "s" else (seq, min(parts))
    entry = Entry(name, at.generation, name, pin, start, {p: Content(1, digest) for p, digest in parts.items()}, "test")
    return ledger.commit(held, entry, 0 if at.version is None else at.version + 1, now).seq


def read(ledger: Ledger, moment: float, now: float | None = None) -> tuple[int, dict[str, Readable]]:
    found = pinned(ledger.database, moment if now is None else now, moment=moment)
    return found.seq, readable(ledger.database, BOTH, BOTH, found.seq)


def test_time_grows_with_the_sequence_whatever_the_clocks_say(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    for n, ahead in enumerate((0.0, 5.0, -5.0, 3.0, 0.0, -3600.0)):
        put(ledger, "s", {n: "a"}, T + n + ahead)
    with ledger.database.reading() as r:
        rows = r.on.execute(select(version.c.seq, version.c.at).order_by(version.c.seq)).all()
        assert r.at >= rows[-1].at
    times = [row.at for row in rows]
    assert times == sorted(set(times))


def test_a_moment_is_repeatable_while_others_hold_the_ledger(url: str, ledger: Ledger) -> None:
    """A writer takes the time, then waits for the lock. Whoever reads that moment meanwhile must get what it will be."""
    ledger.define(GRAPH, T)
    writer, asker = open_ledger(url, T), open_ledger(url, T)
    different = 0
    for n in range(20):
        now = T + 10 * (n + 1)
        answers: list[object] = []
        entry = Entry("s", 0, "s", None, parts={n: Content(1, "a")})
        held = ledger.take("s", "writer", 60, now - 1)
        waiting = threading.Thread(target=writer.commit, args=(held, entry, n, now))
        asking = threading.Thread(target=lambda now=now, to=answers: to.append(read(asker, now + 1)))
        with ledger.database.writing(now - 0.5):
            waiting.start()
            time.sleep(0.02)
            asking.start()
            time.sleep(0.02)
        waiting.join(60)
        asking.join(60)
        different += answers != [read(asker, now + 1, now + 2)]
    assert different == 0


def test_clocks_apart_do_not_mix_moments(ledger: Ledger) -> None:
    """The source's clock is five seconds ahead of the view's: no moment shows a part of the view without its source."""
    ledger.define(GRAPH, T)
    for n in range(3):
        put(ledger, "s", {n: "a"}, T + 20 * n + 5)
        put(ledger, "v", {n: "b"}, T + 20 * n + 1)
    for tenth in range(0, 700):
        _, found = read(ledger, T + tenth / 10, T + 1000)
        built = found["v"].version.version if "v" in found else -1
        there = found["s"].parts if "s" in found else None
        assert built is not None
        assert built < 0 or (there is not None and built in there)


def test_existence_goes_by_the_sequence(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    seqs = [put(ledger, "s", {n: "a"}, T + n) for n in range(5)]
    for n, seq in enumerate(seqs):
        assert readable(ledger.database, BOTH, BOTH, seq)["s"].parts == Parts.of((0, n))
    held = ledger.take("s", "retain", 60, T + 9)
    ledger.commit(held, Entry("s", 0, "", None, floor=3), 5, T + 9)
    for n, seq in enumerate(seqs):  # what has expired since was there then
        found = readable(ledger.database, BOTH, BOTH, seq)["s"].parts
        assert found is not None
        assert found.within(0, 9) == Parts.of((0, n))


def test_what_lies_ahead_or_is_gone_is_refused(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    for n in range(5):
        put(ledger, "s", {n: "a"}, T + 10 * n)
    with pytest.raises(NotYet):
        pinned(ledger.database, T + 50, moment=T + 51)
    with pytest.raises(NotYet):
        pinned(ledger.database, T + 50, seq=10_000)
    with ledger.database.writing(T + 60) as w:
        given = promise_from(w, T + 25)
    for wrong in ({"moment": T + 20}, {"seq": given.seq - 1}):
        with pytest.raises(TooOld):
            pinned(ledger.database, T + 70, **wrong)  # type: ignore[arg-type]
    assert pinned(ledger.database, T + 70, seq=given.seq).seq == given.seq


def test_a_reader_keeps_what_it_reads_until_it_is_done_or_dead(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    seqs = [put(ledger, "s", {0: f"a{n}"}, T + 10 * n) for n in range(5)]
    name, found = enter(ledger.database, T + 50, "a reader", seq=seqs[1], seconds=60)
    assert found.seq == seqs[1]
    with ledger.database.writing(T + 60) as w:
        assert promise_from(w, T + 35).seq == seqs[1]
    enter(ledger.database, T + 60, "one that dies", seq=seqs[2], seconds=60)
    leave(ledger.database, name)
    with ledger.database.writing(T + 119) as w:
        assert promise_from(w, T + 35).seq == seqs[2]
    with ledger.database.writing(T + 121) as w:
        assert promise_from(w, T + 35).seq == seqs[3]


def test_a_step_keeps_what_it_has_pinned(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    seqs = [put(ledger, "s", {0: f"a{n}"}, T + 10 * n) for n in range(3)]
    held = ledger.take("v", "a step", 60, T + 25)
    seqs += [put(ledger, "s", {0: f"b{n}"}, T + 30 + 10 * n) for n in range(3)]
    with ledger.database.writing(T + 60) as w:
        assert seqs[2] <= promise_from(w, T + 45).seq < seqs[3]
    ledger.release(held, T + 61)
    with ledger.database.writing(T + 62) as w:
        assert promise_from(w, T + 45).seq == seqs[4]


def test_a_living_reader_is_renewed_and_leaves(ledger: Ledger) -> None:
    ledger.define(GRAPH, T)
    put(ledger, "s", {0: "a"}, T)

    def rows() -> list[tuple[float, float]]:
        with ledger.database.reading() as r:
            return [(row.at, row.expires) for row in r.on.execute(select(reader))]

    with reading(ledger.database, time.time, "me", seconds=0.3):
        [(began, first)] = rows()
        until = time.monotonic() + 60
        while rows()[0][1] == first and time.monotonic() < until:
            time.sleep(0.05)
        assert rows()[0][1] > first
        assert began < first
    assert rows() == []


def test_old_ledgers_get_times_that_grow(empty_url: str) -> None:
    database = Database(empty_url)
    upgrade(database, head="0004")
    times = {1: 10.0, 2: 30.0, 3: 20.0, 4: 25.0, 5: 40.0, 6: 39.0}
    with database.changing_schema() as on:
        on.execute(text("UPDATE clock SET seq = 6, defined = 1"))
        for seq, at in times.items():
            on.execute(insert(version), {"table": "s", "seq": seq, "generation": 0, "version": seq, "at": at})
            row = {"table": "s", "part": seq, "seq": seq, "revision": 1, "rows": 1, "digest": "d", "at": at}
            on.execute(
                text(
                    'INSERT INTO revision ("table", part, seq, revision, rows, digest, at, reason) '
                    "VALUES (:table, :part, :seq, :revision, :rows, :digest, :at, '')"
                ),
                row,
            )
    database.close()
    ledger = open_ledger(empty_url, T)
    with ledger.database.reading() as r:
        for table in (version, revision):
            found = r.on.execute(select(table.c.seq, table.c.at).order_by(table.c.seq)).all()
            assert [row.at for row in found] == [10.0, 30.0, 30.0, 30.0, 40.0, 40.0]
        assert r.on.execute(select(clock)).one()._asdict() == {
            "id": 1, "seq": 6, "defined": 1, "at": 40.0, "watched": 6,
        }  # fmt: skip
    assert [ledger.sequence_at(at) for at in (9, 10, 29, 30, 39.5, 40)] == [0, 1, 1, 4, 4, 6]
    with ledger.database.writing(5.0) as w:
        assert w.at > 40.0
