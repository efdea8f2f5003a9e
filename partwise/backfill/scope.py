"""How far a backfill reaches: what may follow, before it runs; what does follow, from what has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from partwise.parts import FOREVER, Parts
from partwise.plan.reach import fed, fed_self, self_closure
from partwise.tables import Graph

#: The settled start of a view; None before its first part.
Starts = Callable[[str], int | None]
#: The existing parts of a table between two indexes.
Existing = Callable[[str, int, int], Parts]


def grown(
    graph: Graph, start: Starts, asked: Mapping[str, Parts], changed: Mapping[str, Parts], downstream: bool
) -> dict[str, Parts]:
    """The parts that belong to a backfill by now: those requested, and what changes of those touched, transitively.

    Without `downstream` only later parts of the same views follow.
    """
    scope = {name: parts for name, parts in asked.items() if parts}
    for name in graph.order:
        view = graph[name]
        if view.kind != "view":
            continue
        if downstream:
            for other in view.input_names:
                if touched := scope.get(other, Parts()) & changed.get(other, Parts()):
                    scope[name] = scope.get(name, Parts()) | _fed(graph, start, name, other, touched)
        own = scope.get(name)
        if own and view.self_references:
            for p in changed.get(name, Parts()):  # upwards: what follows a part comes after it
                if p in own:
                    own |= fed_self(view, Parts.single(p))
            scope[name] = own
    return {name: parts for name, parts in scope.items() if parts}


def closure(
    graph: Graph, start: Starts, existing: Existing, asked: Mapping[str, Parts], downstream: bool = True
) -> dict[str, Parts]:
    """Existing parts beside those requested that would follow if everything changed.

    Without `downstream` only later parts of the same views, as in `grown`.
    """
    reached = {name: parts for name, parts in asked.items() if parts}
    for name in graph.order:
        view = graph[name]
        if view.kind != "view":
            continue
        more = reached.get(name, Parts())
        for other in view.input_names if downstream else ():
            if other in reached:
                touched = _fed(graph, start, name, other, reached[other])
                more |= touched & existing(name, touched.first, touched.last) if touched else touched
        if more and view.self_references:
            last = existing(name, more.first, FOREVER)
            more |= self_closure(view, more, last.last) & last if last else Parts()
        if more:
            reached[name] = more
    return {name: left for name, parts in reached.items() if (left := parts - asked.get(name, Parts()))}


def _fed(graph: Graph, start: Starts, name: str, other: str, touched: Parts) -> Parts:
    begins = start(name)
    return fed(graph[name], -FOREVER if begins is None else begins, other, touched)
