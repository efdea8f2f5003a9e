"""A view that began too early, because of one wrong event time, begins again where the rows are.

A row of 1969 lets a view that reads its own past start in 1969, and so far from the next rows it never gets to
them. When the row is corrected or retracted, its part becomes empty: then the start moves on, unless the view has
reached the rows already.
"""

from __future__ import annotations

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
    """What is known, but without the parts of one table before `first`."""

    def __init__(self, r: Reading, table: str, first: int) -> None:
        super().__init__(r)
        self._table, self._first = table, first

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        return super().existing(table, max(lo, self._first) if table == self._table else lo, hi)


def move_on(w: Writing, graph: Graph, table: str, emptied: Parts) -> None:
    """Parts of `table` lost their rows. Views that read themselves and began there begin where its rows begin now."""
    start = settled(w, table).start
    if start is None or start not in emptied:
        return
    first = first_with_rows(w, table)
    if first is None or first - start < FAR:
        return
    for name in graph.consumers.get(table, ()):
        view, now = graph[name], settled(w, name)
        if not view.self_references or view.start.rule != "earliest" or now.start is None:
            continue
        begins = first_part(view, _From(w, table, first))
        if begins is not None and begins > now.start and not existing(w, name, begins, FOREVER):
            begin_at(w, graph, name, begins)


def first_with_rows(r: Reading, table: str) -> int | None:
    """The first part that has rows, whether it is closed or not."""
    closed = select(func.min(part.c.part)).where(part.c.table == table, part.c.rows > 0)
    opened = select(func.min(open_part.c.part)).where(open_part.c.table == table)
    found = [p for query in (closed, opened) if (p := r.on.execute(query).scalar()) is not None]
    return min(found, default=None)
