"""Making a table again from what it was made from: a new generation that takes the place of the old one when it is whole.

Until then readers keep the old content. The parts are `lost` meanwhile: they do not exist for anyone who computes, but what
they held is remembered. A part that comes back with the same content is no revision, so nothing that reads it runs.
"""

from __future__ import annotations

from sqlalchemy import bindparam, delete, func, insert, select, update

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.runs import clear, due_rows, existing, paint
from partwise.ledger.schema import catalog, failure, file, have, held_file, intake, lost, open_part, part, quarantine
from partwise.ledger.schema import rebuild as rebuilds
from partwise.ledger.write.due_painting import frozen_below, paint_what_can_be_built
from partwise.parts import FOREVER, Parts
from partwise.plan.model import Cause
from partwise.plan.reach import EVERYTHING, fed, first_part, inputs_exist
from partwise.tables import Graph

_KEPT = ("table", "part", "revision", "changed_seq", "rows", "digest", "updated_at", "born", "born_at")
_LOST = select(lost.c.part).where(lost.c.table == bindparam("t")).order_by(lost.c.part)
_FOUND = delete(lost).where(lost.c.table == bindparam("t"), lost.c.part == bindparam("p"))
_SINCE = select(func.max(rebuilds.c.seq)).where(rebuilds.c.table.in_(bindparam("names", expanding=True)))


def lost_parts(r: Reading, table: str) -> Parts:
    """Parts that existed and are being made again."""
    return Parts.single(*r.on.execute(_LOST, {"t": table}).scalars())


def begin(w: Writing, graph: Graph, name: str) -> Parts:
    """A new generation of a table with all its parts to be made again; returns those that can be.

    What a view cannot be computed from any more (it has expired) does not come back: its floor says so.
    """
    table, now = graph[name], settled(w, name)
    columns = [getattr(part.c, column) for column in _KEPT]
    w.on.execute(insert(lost).from_select(_KEPT, select(*columns).where(part.c.table == name)))
    gone = [part, have, failure]
    if table.kind != "view":
        gone += [open_part, intake, quarantine, held_file]
        # What somebody took out stays out.
        w.on.execute(delete(file).where(file.c.table == name, file.c.state == "loaded"))
    for rows in gone:
        w.on.execute(delete(rows).where(rows.c.table == name))
    floor = now.floor
    if table.kind == "view" and (frozen := frozen_below(w, table, now)) > -FOREVER:
        floor = frozen if floor is None else max(floor, frozen)
    if floor is not None:
        w.on.execute(delete(lost).where(lost.c.table == name, lost.c.part < floor))
    w.on.execute(
        update(catalog).where(catalog.c.table == name).values(generation=catalog.c.generation + 1, floor=floor)
    )
    row = {"table": name, "generation": now.generation + 1, "seq": w.seq, "at": w.at}
    w.on.execute(insert(rebuilds), row | {"whole": None})
    if table.kind == "view":
        clear(w, name, EVERYTHING)
        paint_what_can_be_built(w, table, Cause("requested"))
    for reader in graph.consumers.get(name, ()):
        _without_inputs(w, graph, reader)
    become_whole(w, name)
    return lost_parts(w, name)


def _without_inputs(w: Writing, graph: Graph, reader: str) -> None:
    """What a reader could have built is not to be had just now; what it has built stays as it is."""
    facts, view = LedgerParts(w), graph[reader]
    begins = settled(w, reader).start
    begins = first_part(view, facts) if begins is None else begins
    able = Parts() if begins is None else inputs_exist(view, begins, EVERYTHING, facts)
    clear(w, reader, EVERYTHING - able - existing(w, reader))


def found_again(w: Writing, graph: Graph, name: str, parts: Parts) -> None:
    """Lost parts are there again: what was never built, and has all that it needs by now, is due."""
    if not parts:
        return
    w.on.execute(_FOUND, [{"t": name, "p": p} for p in parts])
    for reader in graph.consumers.get(name, ()):
        view, facts, now = graph[reader], LedgerParts(w), settled(w, reader)
        start = first_part(view, facts) if now.start is None else now.start
        if start is None:
            continue
        touched = fed(view, start, name, parts).within(max(start, frozen_below(w, view, now)), FOREVER)
        new = inputs_exist(view, start, touched, facts) - existing(w, reader) if touched else touched
        already = Parts.of(*((row.lo, row.hi) for row in due_rows(w, reader)))
        paint(w, reader, new - already, Cause("input", name))
    become_whole(w, name)


def become_whole(w: Writing, name: str) -> None:
    """Nothing is lost any more: from this sequence on readers see the new generation."""
    generation = settled(w, name).generation
    if not w.on.execute(_LOST, {"t": name}).first():
        mine = (rebuilds.c.table == name, rebuilds.c.generation == generation, rebuilds.c.whole.is_(None))
        w.on.execute(update(rebuilds).where(*mine).values(whole=w.seq))


def rebuilt_since(r: Reading, names: list[str], seq: int) -> bool:
    """Whether one of these tables began to be made again after a sequence."""
    found = r.on.execute(_SINCE, {"names": names}).scalar() if names else None
    return found is not None and found > seq
