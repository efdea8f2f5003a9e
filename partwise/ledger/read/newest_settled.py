"""The newest sequence at which nothing that a query may read was stale.

    parts that it may read -> everything they are computed from -> when none of that was due

What was due at any time is on record (`due` and `was_due`), as ranges. The search goes back from now and looks only
at what was due since then: it costs as much as has happened since the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.read.as_of import readable_at
from partwise.ledger.read.promise import promised
from partwise.ledger.runs import due_rows
from partwise.ledger.schema import catalog, clock, was_due
from partwise.parts import Parts
from partwise.plan.closure import computed_from
from partwise.plan.model import Due
from partwise.tables import Graph

_PAST = select(was_due.c.lo, was_due.c.hi, was_due.c.since_seq).where(
    was_due.c.table == bindparam("t"),
    was_due.c.until_seq > bindparam("s"),
    was_due.c.until_seq <= bindparam("before"),
)
_WATCHED = select(clock.c.watched)
_DEFINED = select(func.max(catalog.c.defined_seq)).where(catalog.c.table.in_(bindparam("names", expanding=True)))


@dataclass(frozen=True, slots=True)
class InTheWay:
    """Parts that are due now, and the cause."""

    table: str
    parts: Parts
    due: Due


@dataclass(frozen=True, slots=True)
class Found:
    """`seq` is None if there is no such moment. `in_the_way`: what keeps the present from being it."""

    seq: int | None
    in_the_way: tuple[InTheWay, ...]
    missing: tuple[str, ...] = ()  # tables without any content at the last moment that was looked at


def newest_settled(r: Reading, graph: Graph, wanted: Mapping[str, Parts]) -> Found:
    """By parts: late rows for others are none of its business."""
    closure = computed_from(graph, lambda name: settled(r, name).start, wanted)
    now = tuple(_in_the_way(r, graph, closure))
    lowest = on_record(r, closure)
    before, seq = r.seq, min([r.seq, *(item.due.since_seq - 1 for item in now)])
    while seq < before and seq >= lowest:
        before, seq = seq, min([seq, *(since - 1 for since in _since(r, closure, seq, before))])
    if seq < lowest:
        return Found(None, now)
    there = readable_at(r, wanted, wanted, seq)
    missing = tuple(name for name in wanted if name not in there or there[name].rebuilding)
    return Found(None if missing else seq, now, missing)


def on_record(r: Reading, closure: Collection[str]) -> int:
    """Before it nobody knows: it is not promised, was not written down, or other definitions held."""
    given = promised(r)
    defined = r.on.execute(_DEFINED, {"names": list(closure)}).scalar() or 0
    return max(given.seq if given else 0, r.on.execute(_WATCHED).scalar() or 0, defined)


def _in_the_way(r: Reading, graph: Graph, closure: Mapping[str, Parts]) -> Iterator[InTheWay]:
    for name in (n for n in graph.order if n in closure):
        for row in due_rows(r, name, closure[name].first, closure[name].last):
            if parts := row.parts & closure[name]:
                yield InTheWay(name, parts, row)


def _since(r: Reading, closure: Mapping[str, Parts], seq: int, before: int) -> Iterator[int]:
    """Since when those parts were due that were due at `seq`, and no longer at `before`."""
    for name, parts in closure.items():
        for lo, hi, since in r.on.execute(_PAST, {"t": name, "s": seq, "before": before}):
            if since <= seq and Parts.of((lo, hi)) & parts:
                yield since
