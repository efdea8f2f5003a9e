"""Short ways of computing that failed on real data. Every task of Airflow is a new process: the ledger remembers."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, insert, select

from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import careful

#: Seconds after which a short way is tried again: the data may be others by then.
FOR = 3600.0
_KNOWN = select(careful.c.way).where(
    careful.c.table == bindparam("t"), careful.c.fingerprint == bindparam("f"), careful.c.at > bindparam("a")
)
_DROP = delete(careful).where(careful.c.table == bindparam("t"), careful.c.way == bindparam("w"))


def not_to_be_tried(r: Reading, table: str, fingerprint: str, now: float) -> frozenset[str]:
    """Ways that failed for this very definition, and not long ago."""
    return frozenset(r.on.execute(_KNOWN, {"t": table, "f": fingerprint, "a": now - FOR}).scalars())


def remember(w: Writing, table: str, way: str, fingerprint: str, why: str) -> None:
    w.on.execute(_DROP, {"t": table, "w": way})
    row = {"table": table, "way": way, "fingerprint": fingerprint, "why": why[:500], "at": w.at}
    w.on.execute(insert(careful), row)
