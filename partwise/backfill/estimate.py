"""How long work will take, from how long it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class StepTime:
    """A recorded step."""

    parts: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """`seconds` is None where the table has no history to go by."""

    rows: int
    seconds: float | None


def estimate(history: Sequence[StepTime], parts: int, rows: int | None = None, at_once: int = 1000) -> Estimate:
    """Rows and seconds for so many parts. A step costs something by itself, and something for every part.

    `rows` are those that the parts hold now, if they are known; `at_once` the parts of a step, at most (`chunk_parts`).
    """
    done = [item for item in history if item.parts]
    if rows is None:
        rows = round(parts * sum(i.rows for i in done) / sum(i.parts for i in done)) if done else 0
    if not done or not parts:
        return Estimate(rows, None if parts else 0.0)
    fixed, each = _line(done)
    steps = -(-parts // at_once)
    return Estimate(rows, steps * fixed + parts * each)


def _line(done: Sequence[StepTime]) -> tuple[float, float]:
    """Seconds of a step, and of each of its parts: a line through the recorded steps, by least squares."""
    count = len(done)
    x, y = sum(i.parts for i in done) / count, sum(i.seconds for i in done) / count
    spread = sum((i.parts - x) ** 2 for i in done)
    if spread:
        each = sum((i.parts - x) * (i.seconds - y) for i in done) / spread
        fixed = y - each * x
        if each >= 0 and fixed >= 0:
            return fixed, each
    return 0.0, median(i.seconds / i.parts for i in done)
