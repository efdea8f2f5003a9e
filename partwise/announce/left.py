"""What somebody requested and a step has left: a manual run must not end well without a word about it."""

from __future__ import annotations

from partwise.parts import Parts, Range, range_text
from partwise.plan.model import Facts, parts_of_due
from partwise.plan.next import parts_text
from partwise.plan.planner import look_around, waits_for
from partwise.tables import Graph


def not_computed(graph: Graph, facts: Facts, view: str, parts: Range, now: float) -> str | None:
    """The sentence that says which of these parts were requested, cannot be computed now, and what they wait for.

    Parts that failed say so themselves. What is ready is announced, and the next run computes it.
    """
    looks = look_around(graph, facts, now, [view])
    if (look := looks.get(view)) is None:
        return None
    asked = parts_of_due(row for row in look.due if row.cause.kind == "requested")
    left = (asked & Parts.of(parts)) - look.failed - look.ready
    if not left:
        return None
    reasons = []
    for found in waits_for(facts, look, looks, left.first):
        other = graph[found.table]
        where = "" if other.kind == "dimension" else f"[{range_text(found.parts, other.length)}]"
        reasons.append(f"{found.table}{where} is {found.state}")
    why = "; ".join(reasons) or "something further upstream is about to change"
    return f"{view}[{parts_text(left, graph[view].length)}] was requested and waits: {why}"
