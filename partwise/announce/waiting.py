"""Whether everything is there, and the sentence that says what is not:

high_loss[2026-10-03T10:05] waits: measurements 3/4, missing 10:05
"""

from __future__ import annotations

from dataclasses import dataclass

from partwise.parts import FOREVER, Parts, Range, part_text, range_text
from partwise.plan.model import Facts
from partwise.plan.next import Need, needs_of_parts, through_helpers, waits_text
from partwise.plan.reach import first_part
from partwise.tables import Graph


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a part (or a range) still needs; `text` says it."""

    missing: bool
    text: str


def waiting_for(graph: Graph, facts: Facts, table: str, parts: Range, own: bool = False) -> Waiting:
    """What is missing of everything that these parts of a view require; with `own`, of these parts themselves.

    Earlier parts of the view itself are left aside: a run brings along those that are ready, and whoever
    waited for another run of the same view might keep it from starting.
    """
    this = graph[table]
    head = f"{table}[{range_text(parts, this.length)}]"
    day = part_text(parts.lo, this.length)[:10]
    if own or this.kind != "view":
        wanted = Parts.of(parts)
        needs = [Need(table, (), wanted, wanted & facts.existing(table, *parts))]
    else:
        start = facts.start(table)
        if start is None:
            start = first_part(this, facts)
        begin = -FOREVER if start is None else start
        needs = [need for need in needs_of_parts(facts, this, begin, parts) if need.table != table]
        needs = through_helpers(graph, facts, needs)
    absent = [need for need in needs if need.missing or not need.needed]
    if not absent:
        return Waiting(False, f"{head} has everything it needs" if not own else f"{head} exists")
    return Waiting(True, f"{head} waits: {'; '.join(waits_text(graph, need, day) for need in absent)}")
