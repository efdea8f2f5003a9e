"""References: which parts of a table a part of a view reads.

A bound is a linear function of the view's index, rounded down: floor((times * j + plus) / over).
`m[j-9..j]`, `m[60*j..60*j+59]` and `m[j/60]` are all of this form. A reference has two of them.

The two directions stand side by side here, and one law ties them together:

    p in reference.requires(j)   iff   j in reference.feeds(p)

Because both bounds grow with j, the parts fed by a range of parts are one range again. That is
what lets the ledger mark a year of affected parts with a single row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from partwise.parts.ranges import FOREVER, Parts, Range


@dataclass(frozen=True)
class Bound:
    """floor((times * j + plus) / over), with times >= 1 and over >= 1, in lowest terms."""

    times: int = 1
    plus: int = 0
    over: int = 1

    def __post_init__(self) -> None:
        if self.times < 1 or self.over < 1:
            raise ValueError(f"a bound must grow with the index: {self}")
        common = gcd(self.times, self.over)
        if common > 1:
            # floor((g*a*j + b) / (g*c)) = floor((a*j + floor(b/g)) / c)
            object.__setattr__(self, "times", self.times // common)
            object.__setattr__(self, "plus", self.plus // common)
            object.__setattr__(self, "over", self.over // common)

    def at(self, j: int) -> int:
        return (self.times * j + self.plus) // self.over

    def first_reaching(self, p: int) -> int:
        """The smallest j with at(j) >= p."""
        return -((self.plus - self.over * p) // self.times)

    def last_within(self, p: int) -> int:
        """The largest j with at(j) <= p."""
        return (self.over * (p + 1) - self.plus - 1) // self.times

    def text(self, index: str = "j") -> str:
        inner = index if self.times == 1 else f"{self.times}*{index}"
        inner += f"{self.plus:+d}" if self.plus else ""
        if self.over == 1:
            return inner
        return f"({inner})/{self.over}" if self.plus else f"{inner}/{self.over}"


@dataclass(frozen=True)
class Reference:
    """Parts lo(j) .. hi(j) of a table, for part j of a view."""

    lo: Bound
    hi: Bound

    @classmethod
    def same(cls, plus: int = 0) -> Reference:
        """`m[j+plus]`."""
        return cls.window(plus, plus)

    @classmethod
    def window(cls, first: int, last: int) -> Reference:
        """`m[j+first..j+last]`."""
        return cls(Bound(1, first), Bound(1, last))

    def requires(self, j: int) -> Range:
        """The parts that part j needs."""
        return Range(self.lo.at(j), self.hi.at(j))

    def feeds(self, p: int) -> Range:
        """The parts that part p touches. Empty (lo > hi) for a part that no view part reads."""
        return self.feeds_range(Range(p, p))

    def feeds_range(self, parts: Range) -> Range:
        """The parts that any of `parts` touches."""
        lo = self.hi.first_reaching(parts.lo)
        hi = FOREVER if parts.hi >= FOREVER else self.lo.last_within(parts.hi)
        return Range(lo, hi)

    def feeds_parts(self, parts: Parts) -> Parts:
        return Parts.of(*(self.feeds_range(r) for r in parts.ranges))

    def covered_by(self, existing: Parts) -> Parts:
        """The indexes j for which every required part is in `existing`."""
        return Parts.of(*(self._covered(r) for r in existing.ranges))

    def _covered(self, run: Range) -> Range:
        hi = FOREVER if run.hi >= FOREVER else self.hi.last_within(run.hi)
        return Range(self.lo.first_reaching(run.lo), hi)

    def always_forward(self) -> bool:
        """Whether lo(j) <= hi(j) for every j."""
        # In lowest terms, bounds of one slope differ in `plus` alone; and because times and over have no common
        # divisor, times * j takes every remainder, so that a larger `plus` shows for some j.
        return (self.lo.times, self.lo.over) == (self.hi.times, self.hi.over) and self.lo.plus <= self.hi.plus

    def text(self, index: str = "j") -> str:
        if self.lo == self.hi:
            return f"[{self.lo.text(index)}]"
        return f"[{self.lo.text(index)}..{self.hi.text(index)}]"
