"""A plan with what people want to know around it: what follows, and what each view waits for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from partwise.backfill import served
from partwise.ledger.read.snapshot import Snapshot
from partwise.ledger.write.define import Changes
from partwise.parts import Parts
from partwise.plan.model import Plan
from partwise.plan.next import Next, look_ahead, next_part
from partwise.plan.planner import make_plan
from partwise.tables import Graph


@dataclass(frozen=True)
class Planned:
    """`next` tells of each view (helpers aside) the part it builds after all of this.

    `repair`: a view and those of its parts that repair the first of the steps that are left to people.
    """

    graph: Graph
    plan: Plan
    follows: Mapping[str, Parts]
    next: tuple[Next, ...]
    changes: Changes
    repair: tuple[str, Parts] | None = None
    zone: str = "UTC"


def planned(snapshot: Snapshot, only: Collection[str] | None = None, zone: str = "UTC") -> Planned:
    graph, facts = snapshot.graph, snapshot.facts
    scope = None if only is None else graph.upstream(only)
    plan = make_plan(graph, facts, snapshot.now, scope)
    ready: dict[str, Parts] = {}
    for step in plan.steps:
        ready[step.table] = ready.get(step.table, Parts()) | Parts.of(step.parts)
    stuck: dict[str, Parts] = {}
    for item in plan.blocked:
        stuck[item.table] = stuck.get(item.table, Parts()) | Parts.of(item.parts)
    waited_for = {name: parts - plan.held.get(name, Parts()) for name, parts in stuck.items()}
    ahead = look_ahead(graph, facts, ready, waited_for, snapshot.lowest)
    views = [name for name in graph.order if graph[name].kind == "view" and (scope is None or name in scope)]
    nexts = tuple(
        next_part(graph, ahead, name, facts.start(name), snapshot.lowest(name), stuck.get(name, Parts()))
        for name in views
        if graph[name].helper_of is None
    )
    follows = {name: parts for name, parts in ahead.follows.items() if scope is None or name in scope}
    return Planned(graph, plan, follows, nexts, snapshot.changes, _repair(snapshot, plan), zone)


def _repair(snapshot: Snapshot, plan: Plan) -> tuple[str, Parts] | None:
    for step in plan.manual:
        if snapshot.graph[step.table].helper_of is None:
            return step.table, Parts.of(step.parts)
        view, parts = served(snapshot.graph, snapshot.facts, step.table, step.parts)
        if parts:
            return view, parts
    return None
