"""Letting a view begin earlier: from where on what it reads exists, its own helpers included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from partwise.parts import Parts
from partwise.plan.reach import PartFacts, buildable, can_begin, inputs_exist, not_before_inputs
from partwise.tables import Graph, Table


@dataclass
class Earlier:
    """New starts by view, in the order of computing, and the parts that can be built because of them."""

    starts: dict[str, int] = field(default_factory=dict)
    built: dict[str, Parts] = field(default_factory=dict)
    old: dict[str, int] = field(default_factory=dict)

    def follows(self, name: str) -> Parts:
        """What has to be computed: the new parts, and the old first part, which was made by INITIALIZE."""
        return self.built[name] | Parts.single(self.old[name]) if name in self.built else Parts()


@dataclass(frozen=True)
class _Then:
    """What will be there once the views found so far have begun earlier."""

    now: PartFacts
    moved: Earlier

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        there = self.now.existing(table, lo, hi)
        return there | self.moved.built[table].within(lo, hi) if table in self.moved.built else there

    def start(self, table: str) -> int | None:
        return self.moved.starts.get(table, self.now.start(table))

    def lost(self, table: str) -> Parts:
        return self.now.lost(table)


def earlier(
    graph: Graph,
    facts: PartFacts,
    floor: Callable[[str], int | None],
    name: str,
    lo: int,
    upstream: bool,
    found: Earlier | None = None,
) -> Earlier:
    """Move the start of a view as near to `lo` as its inputs allow; with `upstream` those of the views it reads, too.

    Helpers that were generated for the view always move along, but not if other views would hold something else by it.
    """
    found = Earlier() if found is None else found
    view, begins = graph[name], facts.start(name)
    if begins is None or begins <= lo or view.start.rule == "at" or floor(name) is not None or _matters(graph, view):
        return found
    for item in dict.fromkeys((*view.initial, *view.inputs)):
        other = graph[item.table]
        if item.reference is None or other.kind != "view" or other.name == name:
            continue
        if upstream or not set(other.serves).isdisjoint(view.for_views):
            earlier(graph, facts, floor, other.name, item.reference.lo.at(lo), upstream, found)

    then = _Then(facts, found)
    possible = not_before_inputs(view, can_begin(view, Parts.of((lo, begins - 1)), then), then)
    new = _first_fitting(view, possible, lo, begins, then)
    if new is not None and (name not in found.starts or new < found.starts[name]):
        found.starts[name] = new
        found.old[name] = begins
        found.built[name] = buildable(view, new, Parts.of((new, begins - 1)), Parts(), then)
    return found


def _matters(graph: Graph, helper: Table) -> bool:
    """Whether other views see where this shared helper begins: in what follows from its first part, or in what is not there
    before it."""
    readers = (graph[name] for name in graph.consumers.get(helper.name, ()))
    return bool(helper.also) and (bool(helper.self_references) or any(helper.name in each.optional for each in readers))


def _first_fitting(view: Table, possible: Parts, lo: int, begins: int, facts: PartFacts) -> int | None:
    """The first of the possible starts with which every part that exists can still be built.

    The old first part becomes an update, and parts after it that read nothing before the start now read
    what is there: over a gap in what the view reads the start cannot move.
    """
    last = max([begins, *(r.lo.first_reaching(begins) - 1 for r in view.self_references)])
    built = facts.existing(view.name, begins, last)
    gaps = Parts.of((lo, last)) - inputs_exist(view, lo - 1, Parts.of((lo, last)), facts)
    beginnings = {span.lo for span in possible.ranges} | {p for gap in gaps.ranges for p in (gap.hi, gap.hi + 1)}
    for new in sorted(p for p in beginnings if p in possible):
        if not built - buildable(view, new, Parts.of((new, begins - 1)) | built, Parts(), facts):
            return new
    return None
