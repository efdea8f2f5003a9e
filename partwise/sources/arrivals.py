"""The arrivals of a source that the ledger keeps, with the age of the part at each.

The ledger does not keep the newest event time of every load, but which parts it brought and when. Before a load, event time stood
within the newest part seen until then; there the clock of the load before says where, as it does for a source that is live.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Float, bindparam, case, cast, func, select

from partwise.ledger.database import Reading
from partwise.ledger.schema import arrival
from partwise.sources.expected import Arrivals, Behind, OnTime

_LENGTH: ColumnElement[Any] = bindparam("length")
_LOADS = (
    select(arrival.c.seq, func.max(arrival.c.at).label("at"), func.max(arrival.c.part).label("newest"))
    .where(arrival.c.table == bindparam("t"))
    .group_by(arrival.c.seq)
    .cte("loads")
)
_BEFORE = {"order_by": _LOADS.c.seq, "rows": (None, -1)}
_KNOWN = select(
    _LOADS.c.seq,
    func.max(_LOADS.c.at).over(**_BEFORE).label("at"),  # type: ignore[arg-type]
    func.max(_LOADS.c.newest).over(**_BEFORE).label("newest"),  # type: ignore[arg-type]
).cte("known")
_FIRST = select(_LOADS.c.at, _LOADS.c.newest).order_by(_LOADS.c.seq).limit(1)
_LAST = select(func.max(_LOADS.c.at), func.max(_LOADS.c.newest))
_OLDEST = select(func.min(arrival.c.part)).where(arrival.c.table == bindparam("t"))


def _event_time(clock: Any, newest: Any) -> ColumnElement[Any]:
    """The clock, but within the newest part."""
    begin, end = cast(newest * _LENGTH, Float), cast((newest + 1) * _LENGTH, Float)
    return case((clock < begin, begin), (clock > end, end), else_=clock)


_END = cast((arrival.c.part + 1) * _LENGTH, Float)
# Before the first load there is no event time: all of it counts as on time.
_AGE = func.coalesce(_event_time(_KNOWN.c.at, _KNOWN.c.newest) - _END, 0.0)
_ARRIVED = arrival.join(_KNOWN, _KNOWN.c.seq == arrival.c.seq)
_BEHIND = (
    select(_AGE.label("age"), arrival.c.rows).select_from(_ARRIVED).where(arrival.c.table == bindparam("t"), _AGE > 0)
)
_ON_TIME = (
    select(
        func.sum(arrival.c.rows),
        func.sum(case((arrival.c.part > bindparam("newest"), arrival.c.rows), else_=0)),
    )
    .select_from(_ARRIVED)
    .where(arrival.c.table == bindparam("t"), _AGE <= 0, arrival.c.part <= bindparam("complete"))
)


def arrivals_of(r: Reading, source: str, length: int) -> Arrivals | None:
    """None: nothing has arrived yet."""
    at = {"t": source, "length": length}
    first = r.on.execute(_FIRST, at).first()
    if first is None:
        return None
    clock, newest = r.on.execute(_LAST, at).one()
    oldest = int(r.on.execute(_OLDEST, at).scalar_one())
    begun, now = _within(first.at, first.newest, length), _within(clock, newest, length)
    complete = int(now // length) - 1
    rows, new = r.on.execute(_ON_TIME, {**at, "newest": first.newest, "complete": complete}).one()
    return Arrivals(
        length,
        oldest,
        begun,
        now,
        behind=tuple(Behind(float(age), int(n)) for age, n in r.on.execute(_BEHIND, at)),
        new=OnTime(int(new or 0), max(0, complete - first.newest)),
        all=OnTime(int(rows or 0), max(0, complete - oldest + 1)),
    )


def _within(clock: float, newest: int, length: int) -> float:
    return min(max(clock, newest * length), (newest + 1) * length)
