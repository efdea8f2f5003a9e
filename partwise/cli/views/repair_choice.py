"""Which repair a late row would lead to, by what the ledger has counted: what `explain` and `plan` show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from partwise.compile.program import Program, Runnable

if TYPE_CHECKING:
    from partwise.choose.repair import RepairDecision
    from partwise.compile.relations import Relation
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.plan.model import Step


def one_late_row(snapshot: Snapshot, view: Runnable, relation: Relation, part: int) -> RepairDecision | None:
    """None where nothing was counted yet, or nothing but computing parts again is exact."""
    from partwise.choose.repair import foreseen
    from partwise.ledger.records.repairs import outcomes
    from partwise.ledger.records.strategies import usual_rows

    def usual(name: str) -> int | None:
        table = next((t for t in snapshot.graph.tables if t.lower() == name.lower()), name)
        return usual_rows(snapshot.r, table)

    if relation.begins:
        return None
    past = outcomes(snapshot.r, view.name)
    return foreseen(relation, usual, view.name, part, view.written.repair_by, past)


def of_steps(snapshot: Snapshot, program: Program, steps: Iterable[Step]) -> dict[str, RepairDecision]:
    """The same for the views of stale steps."""
    from partwise.compile.relations import Relations

    relations = Relations(program)
    found: dict[str, RepairDecision] = {}
    for step in steps:
        view = program.usable.get(step.table)
        if step.kind != "stale" or step.table in found or not isinstance(view, Runnable):
            continue
        decision = one_late_row(snapshot, view, relations.of(view), step.parts.hi)
        if decision is not None:
            found[step.table] = decision
    return found
