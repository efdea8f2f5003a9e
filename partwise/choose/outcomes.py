"""What repairs really took: it corrects what the next ones are foreseen to take, and says how good choices were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from partwise.ledger.records.repairs import NEWEST, By, MeasuredRepair

#: What a repair took is at most so many times what the constants say, or was disturbed.
_FARTHEST = 5.0
#: Another way than computing again must be foreseen to be quicker by so much: near the break-even both are as good.
MARGIN = 1.15


@dataclass(frozen=True, slots=True)
class Score:
    """How choices turned out. `judged`: those of which other ways were measured, too; `right` of them were quickest."""

    repairs: int
    close: int
    judged: int
    right: int


def learned(past: Sequence[MeasuredRepair]) -> dict[By, float]:
    """By what the constants are off for this view, by what its newest repairs took; a way that was not taken is as far
    off as the others are."""
    newest = past[-NEWEST:]
    found: dict[By, list[float]] = {}
    for outcome in newest:
        found.setdefault(outcome.by, []).append(_off(outcome.seconds / outcome.costs[outcome.by]))
    usual = median([off for each in found.values() for off in each]) if found else 1.0
    ways: tuple[By, ...] = ("recompute", "keys", "merge")
    return {by: median(found[by]) if by in found else usual for by in ways}


def _off(factor: float) -> float:
    return min(_FARTHEST, max(1 / _FARTHEST, factor))


def score(past: Sequence[MeasuredRepair]) -> Score:
    factors, ways = learned(past), {outcome.by for outcome in past}
    judged = right = 0
    for outcome in past:
        others = [factors[by] * cost for by, cost in outcome.costs.items() if by in ways and by != outcome.by]
        if others:
            judged += 1
            right += outcome.seconds <= MARGIN * min(others)
    return Score(len(past), sum(outcome.is_close for outcome in past), judged, right)
