"""What becomes due when parts change: the same transaction that records a revision paints its direct feeds.

Only direct feeds are painted. What they feed in turn is painted when, and only if, they change:
propagation stops by itself where content stays the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from sqlalchemy import bindparam, insert, update

from partwise.ledger.catalog import Settled, settled
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.read.validity import ALWAYS, fed_by_times
from partwise.ledger.records.dimension_changes import touched as with_changed_keys
from partwise.ledger.runs import clear, due_rows, existing, paint
from partwise.ledger.schema import catalog, validity_change
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.model import Cause, parts_of_due
from partwise.plan.reach import EVERYTHING, fed, fed_self, first_part, inputs_exist
from partwise.tables import Graph, Table

_FROZEN = (
    update(catalog).where(catalog.c.table == bindparam("t")).values(frozen_hits=catalog.c.frozen_hits + bindparam("n"))
)


def spread(
    w: Writing,
    graph: Graph,
    table: str,
    changed: Parts,
    skip: Parts = Parts(),
    times: Collection[Range] | None = None,
    met: Mapping[str, Parts] = MappingProxyType({}),
) -> None:
    """Paint what `changed` parts of `table` feed. `skip`: its own parts that read the change already. `times`: of a
    dimension whose rows are valid for a time those of the change, where they are known. `met`: of another dimension the
    parts of other tables with changed keys (see `dimension_changes`)."""
    if not changed:
        return
    cause = Cause("input", table, Range(changed.first, changed.last))
    if table in graph.timed:
        times = Parts.of(*([ALWAYS] if times is None else times)).ranges
        rows = [{"table": table, "seq": w.seq, "lo": time.lo, "hi": time.hi} for time in times]
        if rows:
            w.on.execute(insert(validity_change), rows)
    for name in graph.consumers.get(table, ()):
        only = with_changed_keys(graph[name], table, met)
        _spread_to(w, graph, graph[name], table, changed, cause, times if table in graph.timed else None, only)
    if table in graph.tables and graph[table].self_references:
        _spread_self(w, graph[table], changed, skip, cause)


def _spread_to(
    w: Writing,
    graph: Graph,
    view: Table,
    table: str,
    changed: Parts,
    cause: Cause,
    times: Collection[Range] | None,
    only: Parts | None,
) -> None:
    """`only`: no other parts of the view can be meant."""
    now, facts = settled(w, view.name), LedgerParts(w)
    start = now.start if now.start is not None else first_part(view, facts)
    if start is None:
        clear(w, view.name, EVERYTHING)  # an input that has just appeared may rule out where it would have begun
        return
    touched = fed(view, start, table, changed) if times is None else fed_by_times(graph, view, start, table, times)
    touched = touched if only is None else touched & only
    if now.start is None:
        _repaint_unsettled(w, view, start, touched, cause)
        return
    floor = frozen_below(w, view, now)
    frozen = existing(w, view.name, start, floor - 1) & touched
    if view.rolling:
        frozen = Parts()  # what a rolling table no longer shows is missed by nobody
    elif (
        now.floor is not None and touched and touched.last < FOREVER and only is None
    ):  # late rows, not another dimension
        frozen |= touched.within(start, now.floor - 1)
    if frozen:
        w.on.execute(_FROZEN, {"t": view.name, "n": frozen.count})
    touched = touched.within(max(start, floor), FOREVER)
    if touched:
        built = existing(w, view.name, touched.first, touched.last)
        paint(w, view.name, touched & (built | inputs_exist(view, start, touched, facts)), cause)


def _spread_self(w: Writing, own: Table, changed: Parts, skip: Parts, cause: Cause) -> None:
    """Later parts of the table itself: those never built are due already, by their other inputs."""
    now = settled(w, own.name)
    first = max((now.start if now.start is not None else -FOREVER) + 1, frozen_below(w, own, now))
    touched = (fed_self(own, changed) - skip).within(first, FOREVER)
    if touched:
        paint(w, own.name, touched & existing(w, own.name, touched.first, touched.last), cause)


def _repaint_unsettled(w: Writing, view: Table, start: int, touched: Parts, cause: Cause) -> None:
    """Nothing of the view is built yet: what is due follows from its first part, which may still move.

    What stays due keeps its sequence: moving the start changes none of its inputs.
    """
    wanted = inputs_exist(view, start, EVERYTHING, LedgerParts(w))
    old = parts_of_due(due_rows(w, view.name))
    clear(w, view.name, old - wanted)
    paint(w, view.name, (wanted - old) | (wanted & touched), cause)


def look_at_readers(w: Writing, graph: Graph, table: str) -> None:
    """The start of a table was settled or has moved: views to which it is optional may have other parts to build.

    Parts before the start are not waited for, those after it are. What was built stays until what it reads changes.
    """
    for view in (graph[name] for name in graph.consumers.get(table, ()) if table in graph[name].optional):
        now, facts = settled(w, view.name), LedgerParts(w)
        start = now.start if now.start is not None else first_part(view, facts)
        able = Parts() if start is None else inputs_exist(view, start, EVERYTHING, facts)
        able = able.within(frozen_below(w, view, now), FOREVER)
        built = existing(w, view.name)
        old = parts_of_due(due_rows(w, view.name))
        clear(w, view.name, old - able - built)
        paint(w, view.name, able - built - old, Cause("input", table))


def paint_what_can_be_built(w: Writing, view: Table, cause: Cause) -> None:
    """Every part that exists or could be built is due, and nothing else."""
    now = settled(w, view.name)
    start = now.start if now.start is not None else first_part(view, LedgerParts(w))
    wanted = Parts()
    if start is not None:
        lowest = max(start, frozen_below(w, view, now))
        able = existing(w, view.name) | inputs_exist(view, start, EVERYTHING, LedgerParts(w))
        wanted = able.within(lowest, FOREVER)
    clear(w, view.name, EVERYTHING - wanted)
    paint(w, view.name, wanted, cause)


def frozen_below(r: Reading, view: Table, now: Settled) -> int:
    """Parts below this are frozen: expired, or in need of an expired part. They are never due.

    The first kept part of a self-reference is frozen as well: its predecessor is gone, and building
    it from nothing would be wrong.
    """
    limit = -FOREVER if now.floor is None else now.floor
    for item in view.inputs:
        if item.reference is None:
            continue
        theirs = now if item.table == view.name else settled(r, item.table)
        bounded = item.table == view.name or item.table in view.optional  # reads nothing before the start
        if theirs.floor is not None and (not bounded or theirs.start is None or theirs.floor > theirs.start):
            limit = max(limit, item.reference.lo.first_reaching(theirs.floor))
    if now.start is not None and limit <= now.start:
        for item in view.initial:
            theirs = settled(r, item.table)
            lowest = theirs.start if item.table in view.optional and theirs.start is not None else -FOREVER
            if (
                item.reference
                and theirs.floor is not None
                and max(item.reference.lo.at(now.start), lowest) < theirs.floor
            ):
                limit = now.start + 1
    return limit
