"""The order of work inside one step: parts go upwards, and the walk stops where content stays the same.

A part is computed if it was due when the step was pinned, or if an earlier part of the same view
that it reads changed in this step. A part that needs one which failed in this step is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from partwise.parts import Parts, Range
from partwise.tables import Table


@dataclass
class Walk:
    """Ask for the next part with `next(walk)`, then say what came of it: `changed`, `unchanged` or `failed`."""

    table: Table
    due: Parts
    reach: Parts  # existing parts after the first due one that may have to follow
    _changed: set[int] = field(default_factory=set)
    _left: set[int] = field(default_factory=set)
    _parts: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self._parts = iter(self.due | self.reach)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        for j in self._parts:
            needs = [r.requires(j) for r in self.table.self_references]
            wanted = j in self.due or any(_meets(span, self._changed) for span in needs)
            if not wanted:
                continue
            if any(_meets(span, self._left) for span in needs):
                self._left.add(j)
                continue
            return j
        raise StopIteration

    def changed(self, j: int) -> None:
        self._changed.add(j)

    def failed(self, j: int) -> None:
        self._left.add(j)


def _meets(span: Range, parts: set[int]) -> bool:
    """Whether any of the parts is in the span; by whichever is fewer, as both may be thousands."""
    if len(parts) < span.hi - span.lo:
        return any(p in span for p in parts)
    return any(p in parts for p in range(span.lo, span.hi + 1))
