"""Everything that parts are computed from, up to the sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from partwise.parts import FOREVER, Parts, Range
from partwise.plan.reach import read_by
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
