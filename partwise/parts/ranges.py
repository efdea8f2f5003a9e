"""Ranges of part indexes, and sets of parts kept as ranges.

A year of minutes is one range, not half a million numbers. Both ends of a range are included,
as in the SQL references `m[a..b]` and in what people type (`10:00..10:05`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

#: Stands for "and all later parts". Large enough for any index, small enough for a BIGINT.
FOREVER = 2**62


class Range(NamedTuple):
    """Consecutive parts lo, lo+1, ..., hi."""

    lo: int
    hi: int

    def __contains__(self, part: object) -> bool:
        return isinstance(part, int) and self.lo <= part <= self.hi

    @property
    def size(self) -> int:
        return self.hi - self.lo + 1


@dataclass(frozen=True, slots=True)
class Parts:
    """An immutable set of parts. `ranges` is sorted, disjoint, and no two ranges touch."""

    ranges: tuple[Range, ...] = ()

    @classmethod
    def of(cls, *ranges: tuple[int, int]) -> Parts:
        """The union of any ranges, in any order; a range with lo > hi is empty."""
        return cls(tuple(_merge(sorted(ranges))))

    @classmethod
    def single(cls, *parts: int) -> Parts:
        return cls.of(*((part, part) for part in parts))

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __iter__(self) -> Iterator[int]:
        for lo, hi in self.ranges:
            yield from range(lo, hi + 1)

    def __contains__(self, part: object) -> bool:
        if not isinstance(part, int):
            return False
        at = bisect_right(self.ranges, (part, FOREVER * 4)) - 1
        return at >= 0 and part <= self.ranges[at].hi

    @property
    def count(self) -> int:
        return sum(r.size for r in self.ranges)

    @property
    def first(self) -> int:
        return self.ranges[0].lo

    @property
    def last(self) -> int:
        return self.ranges[-1].hi

    def __or__(self, other: Parts) -> Parts:
        if not other.ranges:
            return self
        if not self.ranges:
            return other
        return Parts(tuple(_merge(sorted(self.ranges + other.ranges))))

    def __and__(self, other: Parts) -> Parts:
        out: list[Range] = []
        mine, theirs = self.ranges, other.ranges
        i = j = 0
        while i < len(mine) and j < len(theirs):
            lo, hi = max(mine[i].lo, theirs[j].lo), min(mine[i].hi, theirs[j].hi)
            if lo <= hi:
                out.append(Range(lo, hi))
            if mine[i].hi < theirs[j].hi:
                i += 1
            else:
                j += 1
        return Parts(tuple(out))

    def __sub__(self, other: Parts) -> Parts:
        if not self.ranges or not other.ranges:
            return self
        out: list[Range] = []
        cuts = other.ranges
        for lo, hi in self.ranges:
            at = max(0, bisect_left(cuts, (lo, lo)) - 1)
            while at < len(cuts) and cuts[at].lo <= hi:
                if cuts[at].lo > lo:
                    out.append(Range(lo, cuts[at].lo - 1))
                lo = max(lo, cuts[at].hi + 1)
                at += 1
            if lo <= hi:
                out.append(Range(lo, hi))
        return Parts(tuple(out))

    def within(self, lo: int, hi: int) -> Parts:
        """The parts of this set between lo and hi, both included."""
        return self & Parts.of((lo, hi))

    def covers(self, lo: int, hi: int) -> bool:
        """Whether every part from lo to hi is in the set; true for an empty range."""
        if lo > hi:
            return True
        at = bisect_right(self.ranges, (lo, FOREVER * 4)) - 1
        return at >= 0 and hi <= self.ranges[at].hi


def _merge(ordered: Iterable[tuple[int, int]]) -> Iterator[Range]:
    current: Range | None = None
    for lo, hi in ordered:
        if lo > hi:
            continue
        if current is None:
            current = Range(lo, hi)
        elif lo <= current.hi + 1:
            current = Range(current.lo, max(current.hi, hi))
        else:
            yield current
            current = Range(lo, hi)
    if current is not None:
        yield current
