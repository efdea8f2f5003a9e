"""What is still to come for a part of a source, by its age: from the arrivals seen so far, corrected for exposure.

Age counts in event time, as `close.delay` and `late.accept` do: how far the newest event time had got past the end of the part
when the rows came. After an outage of the loader nothing is late that comes in order.

Young parts have not had the time to receive what comes late, and parts that were old when the ledger began received it unseen.
So a delivery at age a counts as 1 / (parts that were watched at age a), and what is to come after an age is the sum of the later
ones: Nelson's mean cumulative function, unbiased at every age that any part was watched at. Shares of arrivals are not: they
are as much too low as most parts are too young.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

#: Complete parts that must have come under watch before those of the first load are left out of the usual number of rows.
ENOUGH = 10


@dataclass(frozen=True, slots=True)
class Behind:
    """Rows of one delivery that came when event time was `age` seconds past the end of their part."""

    age: float
    rows: int


@dataclass(frozen=True, slots=True)
class OnTime:
    """Rows that came before event time had passed the end of their part, for so many complete parts."""

    rows: int = 0
    parts: int = 0


@dataclass(frozen=True)
class Arrivals:
    """The arrivals of a source. `begun` and `now` are event times: when the first load was in, and by now.

    The first load is no observation: nobody knows when its rows could have come. `first` is the oldest part known.
    """

    length: int
    first: int
    begun: float
    now: float
    behind: tuple[Behind, ...] = ()
    new: OnTime = OnTime()  # parts that began after the first load
    all: OnTime = OnTime()  # with those of the first load

    def parts_at(self, age: float) -> int:
        """How many parts were watched when they were this old."""
        length = self.length
        # The end of part p is (p + 1) * length; it was this old while event time passed its end + age.
        lowest = max(self.first, -int(-(self.begun - age) // length) - 1)
        highest = int((self.now - age) // length) - 1
        return max(0, highest - lowest + 1)

    @property
    def longest(self) -> float:
        """The greatest age at which a part was watched."""
        return max(0.0, self.now - (self.first + 1) * self.length)


class StillToCome:
    """Deliveries and rows that a part can expect after an age. Ages beyond `known` nobody has seen."""

    def __init__(self, watched: Arrivals, horizon: float | None = None) -> None:
        """`horizon`: rows that are older are refused, so that nothing comes after it."""
        self.watched = watched
        self.known = watched.longest if horizon is None else min(watched.longest, horizon)
        accepted = [each for each in watched.behind if horizon is None or each.age <= horizon]
        self._behind = sorted(accepted, key=lambda each: each.age)
        self._ages = [each.age for each in self._behind]

    @cached_property
    def _to_come(self) -> list[tuple[float, float]]:
        """Deliveries and rows from the nth late arrival on."""
        sums = [(0.0, 0.0)]
        for each in reversed(self._behind):
            weight = 1 / max(1, self.watched.parts_at(each.age))
            count, rows = sums[-1]
            sums.append((count + weight, rows + weight * each.rows))
        return sums[::-1]

    def deliveries(self, age: float) -> float:
        """Deliveries that a part can still expect when it is this old."""
        return self._to_come[bisect_right(self._ages, age)][0]

    def rows(self, age: float) -> float:
        """Rows that a part can still expect when it is this old."""
        return self._to_come[bisect_right(self._ages, age)][1]

    def seen(self, age: float) -> int:
        """Deliveries that were seen after this age: how much the figures rest on."""
        return len(self._ages) - bisect_right(self._ages, age)

    @cached_property
    def usual(self) -> float | None:
        """Rows of a part when all have come. None: no part is complete yet."""
        counted = self.watched.new if self.watched.new.parts >= ENOUGH else self.watched.all
        return counted.rows / counted.parts + self.rows(0) if counted.parts else None

    def share(self, age: float) -> float | None:
        """Of all rows of a part, those that come after this age."""
        return self.rows(age) / self.usual if self.usual else None
