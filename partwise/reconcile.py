"""Completes the ledger after a crash: leases of dead holders are freed, their commits adopted.

Steps do the same for their own table; this is for tables that no step comes to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import select

from partwise.ledger.ledger import Ledger
from partwise.ledger.schema import lease
from partwise.ledger.write.lease_holding import SECONDS, is_dead
from partwise.ledger.write.leases import Busy, Fenced
from partwise.ledger.write.orphans import adopt_orphans

_HELD = select(lease.c.table, lease.c.holder, lease.c.expires).where(lease.c.holder.is_not(None))


@dataclass(frozen=True)
class Reconciled:
    """Holders that were dead, and commits that the ledger did not know, by table."""

    freed: dict[str, str] = field(default_factory=dict)
    adopted: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.freed or self.adopted)


def free_dead(
    ledger: Ledger, warehouse: str, holder: str, now: float, dead: Callable[[str], bool] = is_dead
) -> Reconciled:
    """Free leases that have expired or whose holder is dead; what it committed without telling is adopted."""
    found = Reconciled()
    with ledger.database.reading() as r:
        held = list(r.on.execute(_HELD))
    for table, other, expires in held:
        if expires > now and not dead(other):
            continue
        try:
            mine = ledger.take(table, holder, SECONDS, now, dead=other)
        except Busy:
            continue  # somebody was quicker
        found.freed[table] = other
        try:
            if count := adopt_orphans(ledger, mine, warehouse, now):
                found.adopted[table] = count
        finally:
            try:
                ledger.release(mine, now)
            except Fenced:
                pass
    return found
