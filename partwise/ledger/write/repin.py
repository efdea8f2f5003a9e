"""`partwise repin`: another version of a forward dimension counts for a time range.

One row a dimension and range, never a view: whatever is computed from the same source parts reads the same version. Due is
what reads another version by it than before, and nothing else. What is being computed meanwhile is due as well: it was
pinned before.
"""

from __future__ import annotations

from sqlalchemy import bindparam, insert, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Writing
from partwise.ledger.read.born import borns, versions
from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.runs import due_rows, existing, paint
from partwise.ledger.schema import part
from partwise.ledger.schema import repin as repins
from partwise.ledger.write.due_painting import frozen_below
from partwise.ledger.write.turning import find_out
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.model import Cause, parts_of_due
from partwise.plan.reach import first_part
from partwise.tables import Graph, Table

_NOT_KNOWN = (
    select(part.c.part)
    .where(part.c.table == bindparam("t"), part.c.born.is_not(None), part.c.born_at.is_(None))
    .limit(1)
)


def repin(w: Writing, graph: Graph, dimension: str, span: Range, version: int | None, who: str) -> dict[str, Parts]:
    """From now on the version with this sequence counts for source parts that begin within `span` (seconds since 1970);
    None: again the one that was current when they came to exist. Returns what is due by it, by view."""
    for name in graph.order:
        if name in graph.bearing and w.on.execute(_NOT_KNOWN, {"t": name}).first() is not None:
            find_out(w, graph, name)
    row = {"table": dimension, "seq": w.seq, "lo": span.lo, "hi": span.hi, "version": version}
    w.on.execute(insert(repins), row | {"who": who[:255], "at": w.at})
    found = {name: _touched(w, graph[name], dimension) for name in graph.consumers.get(dimension, ())}
    for name, parts in found.items():
        paint(w, name, parts, Cause("repin", dimension))
    return {name: parts for name, parts in found.items() if parts}


def _touched(w: Writing, view: Table, dimension: str) -> Parts:
    now, known = settled(w, view.name), versions(w, dimension)
    start = now.start if now.start is not None else first_part(view, LedgerParts(w))
    if start is None or not known.contents:
        return Parts()
    there = existing(w, view.name) | parts_of_due(due_rows(w, view.name))
    there = there.within(max(start, frozen_below(w, view, now)), FOREVER)
    first, later = (dimension in {item.table for item in items} for items in (view.initial, view.inputs))
    return Parts.single(
        *(
            j
            for j, born in borns(w, view, start, there).items()
            if (first if j == start else later) and known.changed(born, w.seq - 1) == w.seq
        )
    )
