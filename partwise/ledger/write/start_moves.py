"""A view that began too early, because of one wrong event time, begins again where the rows are.

A row of 1969 lets a view that reads its own past start in 1969, and so far from the next rows it never gets to
them. When the row is corrected or retracted, its part becomes empty: then the start moves on, unless the view has
reached the rows already.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import func, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.runs import existing
from partwise.ledger.schema import open_part, part
from partwise.ledger.write.define import begin_at
from partwise.parts import FOREVER, Parts
from partwise.plan.reach import FAR, first_part
from partwise.tables import Graph


class _From(LedgerParts):
    """What is known, but without the parts of some tables before a first one."""

    def __init__(self, r: Reading, first: Mapping[str, int]) -> None:
        super().__init__(r)
        self._first = first

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        return super().existing(table, max(lo, self._first.get(table, lo)), hi)


def move_on(w: Writing, graph: Graph, table: str, emptied: Parts) -> None:
    """Parts of `table` were written, and some of them lost their rows. Views that read themselves and began where its
    rows began by mistake begin where they begin now; views between them and the table keep their parts."""
    start = settled(w, table).start
    if start is None:
        return
    if start in emptied:
        affected = graph.downstream([table])
    elif _begins_empty(w, graph, table, start):
        affected = frozenset(graph.consumers.get(table, ()))
    else:
        return
    first = first_with_rows(w, table)
    if first is None or first - start < FAR:
        return
    hidden = {table: first}
    for name in (n for n in graph.order if n in affected and n != table):
        view, now = graph[name], settled(w, name)
        if view.kind != "view" or view.start.rule != "earliest" or now.start is None:
            continue
        begins = first_part(view, _From(w, hidden))
        if begins is None or begins <= now.start:
            continue
        if not view.self_references:
            hidden[name] = begins
        elif not existing(w, name, begins, FOREVER):
            begin_at(w, graph, name, begins)


def _begins_empty(w: Writing, graph: Graph, table: str, start: int) -> bool:
    """Whether a view that is no mistake itself began with a part without rows, and with a gap behind it: the views between
    a corrected row and those that read themselves are computed after the correction."""
    readers = [graph[name] for name in graph.consumers.get(table, ())]
    if graph[table].kind != "view" or not any(reader.self_references for reader in readers):
        return False
    rows = w.on.execute(select(part.c.rows).where(part.c.table == table, part.c.part == start)).scalar()
    return rows == 0 and len(existing(w, table, start, FOREVER).ranges) > 1


def first_with_rows(r: Reading, table: str) -> int | None:
    """The first part that has rows, whether it is closed or not."""
    closed = select(part.c.part).where(part.c.table == table, part.c.rows > 0).order_by(part.c.part).limit(1)
    opened = select(func.min(open_part.c.part)).where(open_part.c.table == table)
    found = [p for query in (closed, opened) if (p := r.on.execute(query).scalar()) is not None]
    return min(found, default=None)
