"""Everything that parts are computed from, up to the sources; and what may differ from what the sources give."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from partwise.parts import FOREVER, Parts, Range
from partwise.plan.model import Facts
from partwise.plan.reach import fed, read_by, self_closure
from partwise.tables import DIMENSION_PART, Graph, Table


def computed_from(graph: Graph, start: Callable[[str], int | None], wanted: Mapping[str, Parts]) -> dict[str, Parts]:
    """These parts, and those of every table upstream that they depend on, whether they exist or not."""
    found = {name: parts for name, parts in wanted.items() if parts and name in graph.tables}
    for name in reversed(graph.order):
        if name not in found or graph[name].kind != "view":
            continue
        view, first = graph[name], start(name)
        found[name] = parts = _own(view, found[name], -FOREVER if first is None else first)
        for item in (
            view.inputs if parts and first not in parts and first is not None else (*view.initial, *view.inputs)
        ):
            if item.table == name or not parts:
                continue
            spans = (
                [Range(DIMENSION_PART, DIMENSION_PART)]
                if item.reference is None
                else [read_by(item, lo, hi) for lo, hi in parts.ranges]
            )
            found[item.table] = found.get(item.table, Parts()) | Parts.of(*spans)
    return {name: parts for name, parts in found.items() if parts}


def _own(view: Table, parts: Parts, start: int) -> Parts:
    """A part that reads earlier parts of its own table depends on all of them that lie on the way to the first."""
    parts = parts.within(start, FOREVER)
    return Parts.of((start, parts.last)) if parts and view.self_references else parts


def not_up_to_date(graph: Graph, facts: Facts, only: Collection[str]) -> dict[str, Parts]:
    """Parts of these tables and of all upstream that may not be what the sources give now.

    They are due, whether anybody will compute them or not, or computed from such parts.
    """
    due, found, scope = facts.due(), dict[str, Parts](), graph.upstream(only)
    for name in graph.order:
        if name in scope and graph[name].kind == "view":
            own = Parts.of(*((row.lo, row.hi) for row in due.get(name, ())))
            if parts := _with_readers(graph[name], facts, own, found):
                found[name] = parts
    return found


def _with_readers(view: Table, facts: Facts, own: Parts, upstream: Mapping[str, Parts]) -> Parts:
    start = facts.start(view.name)
    for name in view.input_names:
        if name in upstream:
            own |= fed(view, -FOREVER if start is None else start, name, upstream[name])
    if own and view.self_references:
        newest = facts.newest(view.name)
        own |= self_closure(view, own, max(own.last if own.last < FOREVER else own.first, newest or own.first))
    return own
