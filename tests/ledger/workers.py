"""What the processes of the tests do. Kept apart from the tests: a process imports only what it needs."""

from __future__ import annotations

import os
import time
from multiprocessing.synchronize import Event

from sqlalchemy import func, insert, select

from partwise.ledger.open import open_ledger
from partwise.ledger.read.pin import version_of
from partwise.ledger.schema import version
from partwise.ledger.write.commit import Content, Entry
from partwise.ledger.write.leases import Busy

NOW = 1_000.0


def open_and_tick(url: str) -> int:
    ledger = open_ledger(url, NOW)
    with ledger.database.writing(NOW) as w:
        return w.seq


# -- c1, c2: transactions that overlap -------------------------------------------------------------


def hold_transaction(url: str, began: Event, go_on: Event) -> int:
    """Take a sequence and keep the transaction open until told."""
    with open_ledger(url, NOW).database.writing(NOW) as w:
        began.set()
        assert go_on.wait(60)
        return w.seq


def tick(url: str) -> tuple[int, float]:
    with open_ledger(url, NOW).database.writing(NOW) as w:
        seq = w.seq
    return seq, time.monotonic()


def ingest(url: str, table: str, parts: list[int], digest: str = "d") -> int:
    """A source's part arrives: lease, ledger commit."""
    ledger = open_ledger(url, NOW)
    held = ledger.take(table, f"{table}-{os.getpid()}", 60, NOW)
    entry = Entry(table, 0, "f", None, parts={p: Content(1, digest) for p in parts})
    return ledger.commit(held, entry, None, NOW).seq


def ingest_each(url: str, table: str, parts: list[int]) -> None:
    for p in parts:
        ingest(url, table, [p])


def take_lease(url: str, table: str) -> int | None:
    try:
        return open_ledger(url, NOW).take(table, f"p{os.getpid()}", 60, NOW).fence
    except Busy:
        return None


# -- readers during writes -------------------------------------------------------------------------


def write_together(url: str, tables: list[str], until: Event, seconds: float) -> int:
    """Every transaction moves all tables to the same version."""
    ledger, end, n = open_ledger(url, NOW), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with ledger.database.writing(NOW) as w:
            for table in tables:
                row = {"table": table, "seq": w.seq, "generation": 0, "version": n, "at": NOW}
                w.on.execute(insert(version), row)
        n += 1
    until.set()
    return n


def read_together(url: str, tables: list[str], until: Event) -> tuple[int, list[object]]:
    """Reads every table by a statement of its own; all must be of the same version, that of the clock."""
    ledger, reads, torn = open_ledger(url, NOW), 0, []
    while not until.is_set() or reads == 0:
        with ledger.database.reading() as r:
            found = [version_of(r, table).version for table in tables]
            newest = r.on.execute(select(func.max(version.c.seq))).scalar()
        reads += 1
        if len(set(found)) != 1 or (newest is not None and newest > r.seq):
            torn.append((found, newest, r.seq))
    return reads, torn
