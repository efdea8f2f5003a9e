"""How far a table's old parts may be removed."""

from __future__ import annotations

from partwise.parts import FOREVER, Parts
from partwise.plan.model import Facts
from partwise.plan.planner import look_around
from partwise.tables import Graph


def expirable(graph: Graph, facts: Facts, now: float, table: str) -> int:
    """The highest floor for which nothing that is pending or not built yet loses a part it requires.

    A view without any part yet may still start anywhere: nothing that it reads expires.
    """
    newest = facts.newest(table)
    if newest is None:
        return -FOREVER
    affected = (table, *graph.consumers.get(table, ()))
    facts.expect(affected)
    looks = look_around(graph, facts, now, affected)
    floor = newest
    for name in affected:
        view = graph[name]
        if view.kind != "view":
            continue
        run = facts.first_run(name)
        if run is None:
            return -FOREVER
        # What failed and is held is not pending, but is to be computed again one day.
        open_parts = looks[name].pending | looks[name].failed if name in looks else Parts()
        # The first run ends with the newest part, or before a hole that is still to be filled.
        first = min([run.hi + 1, *(p.first for p in [open_parts] if p)])
        for item in view.inputs:
            if item.table == table and item.reference is not None:
                floor = min(floor, item.reference.lo.at(first))
        if name == table:
            floor = min(floor, first)
    return floor
