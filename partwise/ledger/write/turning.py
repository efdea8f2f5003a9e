"""Definitions that change which version of a dimension counts: a dimension turns forward or back, a view begins to matter."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import bindparam, delete, select, update

from partwise.ledger.catalog import settled
from partwise.ledger.database import Writing
from partwise.ledger.read.born import borns, to_store
from partwise.ledger.records.dimension_changes import note_change
from partwise.ledger.schema import catalog, lost, part, repin
from partwise.ledger.write.due_painting import spread
from partwise.parts import FOREVER, Parts
from partwise.tables import DIMENSION_PART, Graph

_PARTS = tuple(select(rows.c.part).where(rows.c.table == bindparam("t")) for rows in (part, lost))
_BORN = tuple(
    update(rows)
    .where(rows.c.table == bindparam("t"), rows.c.part == bindparam("p"))
    .values(born=bindparam("b"), born_at=bindparam("a"))
    for rows in (part, lost)
)
_CHANGED = tuple(
    update(rows).where(rows.c.table == bindparam("t")).values(changed_seq=bindparam("s")) for rows in (part, lost)
)
_REPINS_DROP = delete(repin).where(repin.c.table == bindparam("t"))
_SINCE = update(catalog).where(catalog.c.table == bindparam("t")).values(forward_since=bindparam("s"))


def turn(w: Writing, old: Graph, new: Graph, restarted: Collection[str]) -> None:
    """Take over which dimensions count forward. What exists keeps its content when one turns forward; when one turns
    back, its newest version counts for everything, so all that reads it is due."""
    for name in new.order:
        before = old.tables.get(name)
        if new[name].forward and (before is None or not before.forward or name in restarted):
            w.on.execute(_SINCE, {"t": name, "s": w.seq})
            w.on.execute(_REPINS_DROP, {"t": name})
        elif before is not None and before.forward and not new[name].forward:
            w.on.execute(_SINCE, {"t": name, "s": None})
            for query in _CHANGED:
                w.on.execute(query, {"t": name, "s": w.seq})
            note_change(w, name)
            spread(w, new, name, Parts.single(DIMENSION_PART))
    for name in new.order:
        if name in new.bearing and name not in old.bearing:
            find_out(w, new, name)


def find_out(w: Writing, graph: Graph, name: str) -> None:
    """When the parts of a view were born, now that somebody needs to know."""
    start = settled(w, name).start
    there = [p for query in _PARTS for p in w.on.execute(query, {"t": name}).scalars()]
    found = borns(w, graph[name], -FOREVER if start is None else start, there)
    for query in _BORN if found else ():
        rows = [(p, to_store(born)) for p, born in found.items()]
        w.on.execute(query, [{"t": name, "p": p, "b": values["born"], "a": values["born_at"]} for p, values in rows])
