"""The order of work inside one step: parts go upwards, and the walk stops where content stays the same.

A part is computed if it was due when the step was pinned, or if an earlier part of the same view
that it reads changed in this step. A part that needs one which failed in this step is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from partwise.parts import Parts
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
            wanted = j in self.due or any(p in span for span in needs for p in self._changed)
            if not wanted:
                continue
            if any(p in span for span in needs for p in self._left):
                self._left.add(j)
                continue
            return j
        raise StopIteration

    def changed(self, j: int) -> None:
        self._changed.add(j)

    def failed(self, j: int) -> None:
        self._left.add(j)
