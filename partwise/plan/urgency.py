"""Which step comes first: the one whose parts have been due the longest.

In a fixed order the last views would never be computed while data keep landing for the first ones. By waiting time
nobody starves: what became due later, however often, comes later. Steps that have waited equally long (one arrival
makes many views due) stay in the order of the plan, inputs before what reads them.
"""

from __future__ import annotations

from collections.abc import Iterable

from partwise.plan.model import Step


def first_of_each(steps: Iterable[Step]) -> list[Step]:
    """One step a table, the longest waiting first."""
    found: dict[str, Step] = {}
    for step in sorted(steps, key=lambda step: step.since):
        found.setdefault(step.table, step)
    return list(found.values())
