"""How late the rows of a source come: shares by delay, from the arrivals that the ledger keeps, corrected for exposure."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from partwise.ledger.database import Reading
from partwise.ledger.schema import arrival
from partwise.sources.arrivals import arrivals_of
from partwise.sources.expected import StillToCome
from partwise.tables import Table

#: Upper bounds in seconds after the end of the part, with their words; the last one is open.
BOUNDS = (
    (0, "on time"),
    (60, "1 minute"),
    (300, "5 minutes"),
    (900, "15 minutes"),
    (3600, "1 hour"),
    (21600, "6 hours"),
    (86400, "1 day"),
    (604800, "1 week"),
    (None, "longer"),
)
_COUNTED = select(func.sum(arrival.c.rows), func.sum(arrival.c.rows).filter(arrival.c.late)).where(
    arrival.c.table == bindparam("t")
)


@dataclass(frozen=True, slots=True)
class Delay:
    """Rows that came within this delay after the end of their part (and not within the one before).

    `rows` were counted, `share` is of all rows of a part once all have come. `deliveries` can be expected for a part that
    is older than this. Of ages that no part has reached under watch, both are None.
    """

    within: str
    seconds: int | None
    rows: int
    share: float | None
    deliveries: float | None


@dataclass(frozen=True, slots=True)
class Lateness:
    """`late` are rows that came when their part existed already; only they cost a recomputation."""

    source: str
    rows: int
    late: int
    known: float  # seconds: nobody has seen parts at a greater age
    curve: tuple[Delay, ...]


def lateness(r: Reading, source: Table, horizon: float | None = None) -> Lateness:
    """`horizon`: the age from which on rows are refused."""
    rows, late = (int(n or 0) for n in r.on.execute(_COUNTED, {"t": source.name}).one())
    seen = arrivals_of(r, source.name, source.length)
    if seen is None:
        return Lateness(source.name, rows, late, 0.0, ())
    expected = StillToCome(seen, horizon)
    behind = sum(each.rows for each in seen.behind)
    curve, before = [], 1.0
    for at, (bound, words) in enumerate(BOUNDS):
        since = BOUNDS[at - 1][0] or 0
        counted = sum(e.rows for e in seen.behind if since < e.age and (bound is None or e.age <= bound))
        # A part watched for half of the time says nothing about the other half.
        known = since <= expected.known and expected.usual is not None
        after = (expected.share(bound) or 0.0) if bound is not None else 0.0
        curve.append(
            Delay(
                words,
                bound,
                counted if at else rows - behind,
                before - after if known else None,
                expected.deliveries(bound) if known and bound is not None else None,
            )
        )
        before = after
    return Lateness(source.name, rows, late, expected.known, tuple(curve))
