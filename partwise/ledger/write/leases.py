"""One writer at a time per table.

A lease has a fence, a number that only grows. Whoever holds an older one may still be running (a
zombie), but the ledger refuses its commits; the data are guarded by compare-and-swap on the
table's Delta version. The expiry time only says when others may take over: it refuses nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import bindparam, select, update

from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import lease

_READ = select(lease.c.fence, lease.c.holder, lease.c.expires).where(lease.c.table == bindparam("t"))
_TAKE = (
    update(lease)
    .where(lease.c.table == bindparam("t"))
    .values(fence=bindparam("f"), holder=bindparam("h"), expires=bindparam("e"))
)
_HELD = select(lease.c.table, lease.c.holder, lease.c.expires).where(
    lease.c.holder.is_not(None), lease.c.expires > bindparam("now")
)
_TAKEN = update(lease).where(lease.c.table == bindparam("t")).values(seq=bindparam("s"))


class Busy(Exception):
    """Another step holds the table's lease."""

    def __init__(self, table: str, holder: str, until: float) -> None:
        super().__init__(f"{table} is being written by {holder}")
        self.table, self.holder, self.until = table, holder, until


class Fenced(Exception):
    """This step no longer holds the lease of its table; what it did is not recorded."""


@dataclass(frozen=True, slots=True)
class Lease:
    table: str
    fence: int
    holder: str


def must_be_free(w: Writing, names: Collection[str], dead: Callable[[str], bool]) -> None:
    """Raises Busy if somebody who lives has the lease of one of these tables."""
    for row in w.on.execute(_HELD, {"now": w.now}):
        if row.table in names and not dead(row.holder):
            raise Busy(row.table, row.holder, row.expires)


def take(w: Writing, table: str, holder: str, seconds: float, dead: str | None = None) -> Lease:
    """Take a lease that is free or has expired. One whose holder is known to be dead need not expire."""
    fence, other, expires = w.on.execute(_READ, {"t": table}).one()
    if other is not None and expires > w.now and other != dead:
        raise Busy(table, other, expires)
    w.on.execute(_TAKE, {"t": table, "f": fence + 1, "h": holder, "e": w.now + seconds})
    w.on.execute(_TAKEN, {"t": table, "s": w.seq})
    return Lease(table, fence + 1, holder)


def take_free(
    w: Writing, tables: Iterable[str], holder: str, seconds: float, dead: Callable[[str], bool]
) -> tuple[Lease, ...]:
    """Take these leases in the order of their names, but for those that somebody who is not `dead` has."""
    found = []
    for table in sorted(tables):
        try:
            found.append(take(w, table, holder, seconds))
        except Busy as busy:
            if dead(busy.holder):
                found.append(take(w, table, holder, seconds, dead=busy.holder))
    return tuple(found)


def not_lost(r: Reading, held: Iterable[Lease]) -> list[Lease]:
    """Those of these leases that nobody has taken since."""
    return [lease for lease in held if r.on.execute(_READ, {"t": lease.table}).one().fence == lease.fence]


def check(r: Reading, held: Lease) -> None:
    fence, _, _ = r.on.execute(_READ, {"t": held.table}).one()
    if fence != held.fence:
        raise Fenced(f"{held.holder} lost {held.table}: fence {held.fence}, now {fence}")


def renew(w: Writing, held: Lease, seconds: float) -> None:
    check(w, held)
    w.on.execute(_TAKE, {"t": held.table, "f": held.fence, "h": held.holder, "e": w.now + seconds})


def release(w: Writing, held: Lease) -> None:
    check(w, held)
    w.on.execute(_TAKE, {"t": held.table, "f": held.fence, "h": None, "e": 0.0})
