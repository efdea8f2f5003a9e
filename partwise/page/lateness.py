"""How late the rows of a source come: shares by delay, from the arrivals that the ledger keeps."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select

from partwise.ledger.database import Reading
from partwise.ledger.schema import arrival
from partwise.tables import Table

#: Arrivals that are looked at, of the newest parts.
LOOKED_AT = 5_000
#: Upper bounds in seconds after the end of the part, with their words; the last one is open.
BOUNDS = (
    (0, "before its end"),
    (60, "1 minute"),
    (300, "5 minutes"),
    (900, "15 minutes"),
    (3600, "1 hour"),
    (21600, "6 hours"),
    (86400, "1 day"),
    (604800, "1 week"),
    (None, "longer"),
)
_ARRIVALS = (
    select(arrival.c.part, arrival.c.at, arrival.c.rows, arrival.c.late)
    .where(arrival.c.table == bindparam("t"))
    .order_by(arrival.c.part.desc(), arrival.c.seq.desc())
    .limit(LOOKED_AT)
)


@dataclass(frozen=True, slots=True)
class Delay:
    """Rows that came within this delay after the end of their part (and not within the one before)."""

    within: str
    seconds: int | None
    rows: int
    share: float


@dataclass(frozen=True, slots=True)
class Lateness:
    """`late` are rows that came when their part existed already; only they cost a recomputation."""

    source: str
    rows: int
    late: int
    curve: tuple[Delay, ...]


def lateness(r: Reading, source: Table) -> Lateness:
    counts, total, late = [0] * len(BOUNDS), 0, 0
    for part, at, rows, was_late in r.on.execute(_ARRIVALS, {"t": source.name}):
        delay = at - (part + 1) * source.length
        slot = next(n for n, (bound, _) in enumerate(BOUNDS) if bound is None or delay <= bound)
        counts[slot] += rows
        total += rows
        late += rows if was_late else 0
    curve = tuple(
        Delay(words, bound, count, count / total if total else 0.0)
        for (bound, words), count in zip(BOUNDS, counts, strict=True)
    )
    return Lateness(source.name, total, late, curve)
