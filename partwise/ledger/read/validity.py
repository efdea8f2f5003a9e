"""Dimensions whose rows are valid for a time: which times have changed, and which parts of views that concerns.

A change of such a dimension touches only what is computed from rows of that time: parts of a view whose inputs with parts
overlap it. So its changes are kept as ranges of time, which the parts of its readers are compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import bindparam, select

from partwise.ledger.database import Reading
from partwise.ledger.schema import validity_change
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.reach import fed
from partwise.tables import Graph, Table

#: Every time: of the first content, and of changes that nobody has followed.
ALWAYS = Range(-FOREVER, FOREVER)
_CHANGES = (
    select(validity_change.c.seq, validity_change.c.lo, validity_change.c.hi)
    .where(validity_change.c.table == bindparam("t"), validity_change.c.seq > bindparam("s"))
    .order_by(validity_change.c.seq)
)


class ChangedTime(NamedTuple):
    """What was valid from `lo` to `hi` (seconds since 1970) changed at a sequence."""

    seq: int
    lo: int
    hi: int


def changed_times(r: Reading, dimension: str, after: int) -> list[ChangedTime]:
    return [ChangedTime(*row) for row in r.on.execute(_CHANGES, {"t": dimension, "s": after})]


def fed_by_times(graph: Graph, view: Table, start: int, dimension: str, times: Iterable[Range]) -> Parts:
    """Parts of a view that read rows of these times beside the dimension."""
    found = Parts()
    inputs = {i.table for i in (*view.initial, *view.inputs) if i.reference is not None}
    if not view.own_times:
        inputs.discard(view.name)
    for time in times:
        for name in inputs:
            found |= fed(view, start, name, _overlapping(time, graph[name].length))
    first, later = (any(i.table == dimension for i in items) for items in (view.initial, view.inputs))
    return found.within(start if first else start + 1, FOREVER if later else start)


def changed_since(r: Reading, graph: Graph, dimension: str, view: Table, start: int, j: int, seq: int) -> int:
    """The last sequence after `seq` at which times changed that a part of a view reads; -1 if there is none."""
    changes = changed_times(r, dimension, seq)
    hits = [c.seq for c in changes if j in fed_by_times(graph, view, start, dimension, [Range(c.lo, c.hi)])]
    return max(hits, default=-1)


def _overlapping(time: Range, length: int) -> Parts:
    lo = -FOREVER if time.lo <= -FOREVER else time.lo // length
    hi = FOREVER if time.hi >= FOREVER else time.hi // length
    return Parts.of((lo, hi))
