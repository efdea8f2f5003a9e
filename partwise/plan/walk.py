"""The order of work inside one step: parts go upwards, and the walk stops where content stays the same.

A part is computed if it was due when the step was pinned, or if an earlier part of the same view
that it reads changed in this step. A part that needs one which failed in this step is left alone.
"""

from __future__ import annotations

from bisect import bisect_left
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
    _order: list[int] = field(init=False)
    _at: int = 0

    def __post_init__(self) -> None:
        self._order = list(self.due | self.reach)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        while self._at < len(self._order):
            j = self._order[self._at]
            self._at += 1
            needs = [r.requires(j) for r in self.table.self_references]
            wanted = j in self.due or any(_meets(span, self._changed) for span in needs)
            if not wanted:
                continue
            if any(_meets(span, self._left) for span in needs):
                self._left.add(j)
                continue
            return j
        raise StopIteration

    def ahead(self, count: int) -> list[int]:
        """At most so many parts right behind the last one, without a gap, whether they turn out to be wanted or not.

        For queries that compute many parts as quickly as one: what was computed in vain is found unchanged.
        """
        found: list[int] = []
        while len(found) < count and 0 < self._at < len(self._order):
            j = self._order[self._at]
            if j != self._order[self._at - 1] + 1 or any(
                _meets(r.requires(j), self._left) for r in self.table.self_references
            ):
                break
            found.append(j)
            self._at += 1
        return found

    def back(self, count: int) -> None:
        """The last so many parts are handed out again, if they are wanted."""
        self._at -= count

    def again_from(self, j: int) -> None:
        """Part j, which was handed out, and those behind it are handed out again, if they are wanted."""
        self._at = min(self._at, bisect_left(self._order, j))

    def changed(self, j: int) -> None:
        self._changed.add(j)

    def failed(self, j: int) -> None:
        self._left.add(j)


def _meets(span: Range, parts: set[int]) -> bool:
    """Whether any of the parts is in the span; by whichever is fewer, as both may be thousands."""
    if len(parts) < span.hi - span.lo:
        return any(p in span for p in parts)
    return any(p in parts for p in range(span.lo, span.hi + 1))
