"""A table's lease for as long as some work takes: renewed meanwhile, given back at the end."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from partwise.ledger.heartbeat import heartbeat
from partwise.ledger.ledger import Ledger
from partwise.ledger.write.leases import Busy, Fenced, Lease
from partwise.ledger.write.orphans import adopt_orphans

#: A holder that dies keeps its table for so long; one that lives renews three times as often.
SECONDS = 60.0


def who() -> str:
    """Names this process, so that others can tell whether it still lives."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def is_dead(holder: str) -> bool:
    """Whether the holder, named by `who`, was a process of this machine that is gone. If in doubt it lives.

    A wrong guess would cost time, no data.
    """
    host, _, process = holder.rpartition(":")[0].rpartition(":")
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


@contextmanager
def leased(
    ledger: Ledger, table: str, holder: str, now: Callable[[], float], seconds: float = SECONDS
) -> Iterator[Lease]:
    """Raises Busy while somebody else who lives has the table.

    Whoever leaves without having committed gives the lease back; a lost one is lost.
    """
    try:
        held = ledger.take(table, holder, seconds, now())
    except Busy as busy:
        if not is_dead(busy.holder):
            raise
        held = ledger.take(table, holder, seconds, now(), dead=busy.holder)

    def renew() -> bool:
        try:
            ledger.renew(held, seconds, now())
        except Fenced:
            return False
        return True

    try:
        with heartbeat(seconds / 3, renew):
            yield held
    finally:
        try:
            ledger.release(held, now())
        except Fenced:
            pass


@contextmanager
def leased_together(
    ledger: Ledger, tables: Collection[str], holder: str, now: Callable[[], float], seconds: float = SECONDS
) -> Iterator[tuple[Lease, ...]]:
    """The leases of these tables that are free, renewed and given back together."""
    held = ledger.take_free(tables, holder, seconds, now(), is_dead)

    def renew() -> bool:
        ledger.renew_each(held, seconds, now())
        return True

    try:
        with heartbeat(seconds / 3, renew):
            yield held
    finally:
        ledger.release_each(held, now())


@contextmanager
def holding(ledger: Ledger, warehouse: str, table: str, now: Callable[[], float]) -> Iterator[Lease]:
    """The lease of a table of which the ledger knows every commit: orphans are adopted first."""
    with leased(ledger, table, who(), now) as held:
        adopt_orphans(ledger, held, warehouse, now())
        yield held
