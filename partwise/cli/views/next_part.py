"""NEXT of views, for people and for programs: the part after what exists and what is due, and what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partwise.parts import Parts, part_text, range_text
from partwise.plan.model import parts_of_due
from partwise.plan.next import next_part

if TYPE_CHECKING:
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.plan.next import Need, Next
    from partwise.tables import Graph

_BITMAP = 120


def next_of(snapshot: Snapshot, name: str) -> Next:
    """The first part of a view that neither exists nor is due."""
    look, facts = snapshot.looks.get(name), snapshot.facts
    due = parts_of_due(look.due) if look else Parts()
    return next_part(snapshot.graph, facts, name, facts.start(name), snapshot.lowest(name), due)


def next_json(graph: Graph, item: Next) -> dict[str, Any]:
    def missing(need: Need) -> list[str]:
        table = graph[need.table]
        spans = need.missing.ranges
        return [table.name if table.kind == "dimension" else range_text(span, table.length) for span in spans]

    return {
        "view": item.table,
        "part": None if item.part is None else part_text(item.part, graph[item.table].length),
        "waits": item.waits,
        "requires": [{"table": n.table, "bitmap": n.bitmap(), "missing": missing(n)} for n in item.needs],
    }


def bits(need: Need) -> str:
    """The bitmap for people: a filled square is a part that is there."""
    return need.bitmap(_BITMAP).replace("1", "■").replace("0", "□")
