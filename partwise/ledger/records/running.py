"""Steps that run now, and how far they have come: for people who watch.

A note counts while the lease that it was written under is held, so nobody has to take it back, however its writer ends.
Notes are no history: they take no sequence.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, delete, insert, select

from partwise.ledger.database import Database, Reading
from partwise.ledger.schema import lease, running
from partwise.ledger.write.leases import Lease
from partwise.parts import Range

_DROP = delete(running).where(running.c.table == bindparam("t"))
_RUNNING = (
    select(running)
    .join(lease, (lease.c.table == running.c.table) & (lease.c.fence == running.c.fence))
    .where(lease.c.holder.is_not(None), lease.c.expires > bindparam("now"))
    .order_by(running.c.since, running.c.table)
)


@dataclass(frozen=True, slots=True)
class Running:
    """A step: the span of its parts, how many of them are computed, and since when it runs."""

    table: str
    parts: Range
    done: int
    of: int
    since: float


def note(database: Database, held: Lease, step: Running) -> None:
    row = {"table": held.table, "fence": held.fence, "lo": step.parts.lo, "hi": step.parts.hi}
    with database.aside() as on:
        on.execute(_DROP, {"t": held.table})
        on.execute(insert(running), row | {"done": step.done, "of": step.of, "since": step.since})


def running_steps(r: Reading, now: float) -> list[Running]:
    """The longest running first."""
    rows = r.on.execute(_RUNNING, {"now": now})
    return [Running(row.table, Range(row.lo, row.hi), row.done, row.of, row.since) for row in rows]
