"""Which parts of a view a row goes to, as SQL over the row's own part: `Reference.feeds`, written out."""

from __future__ import annotations

from dataclasses import dataclass

from partwise.parts import Bound, Reference


@dataclass(frozen=True, slots=True)
class Spread:
    """A row of part p goes to the parts `first` .. `last` of the view, if there are any.

    `single`: there is one at most, so that rows need not be multiplied. `gaps`: there may be none.
    """

    first: str
    last: str
    single: bool
    gaps: bool

    def column(self, name: str) -> str:
        """The select item; rows without any part must have been left out (`where`), for `sequence` counts down."""
        return f"{self.first} AS {name}" if self.single else f"explode(sequence({self.first}, {self.last})) AS {name}"

    @property
    def where(self) -> str:
        return f"{self.first} <= {self.last}" if self.gaps else "true"


def spread(reference: Reference, part: str = "part") -> Spread:
    lo, hi = reference.lo, reference.hi
    first, last = _first_reaching(hi, part), _last_within(lo, part)
    # One slope: the next part begins behind where this one ends.
    same = (lo.times, lo.over) == (hi.times, hi.over)
    single = same and lo.plus + lo.times >= hi.plus + hi.over
    # Windows that overlap or touch leave no part out.
    gaps = not (same and reference.always_forward() and lo.times + lo.plus <= hi.plus + 1 and lo.over == 1)
    return Spread(first, last, single, gaps)


def _first_reaching(bound: Bound, part: str) -> str:
    """Bound.first_reaching: -((plus - over * p) // times)."""
    if bound.times == 1:
        return _sum(_times(bound.over, part), -bound.plus)
    return f"-({_floor(_sum(_times(-bound.over, part), bound.plus), bound.times)})"


def _last_within(bound: Bound, part: str) -> str:
    """Bound.last_within: (over * (p + 1) - plus - 1) // times."""
    return _floor(_sum(_times(bound.over, part), bound.over - bound.plus - 1), bound.times)


def _times(factor: int, part: str) -> str:
    return part if factor == 1 else f"{factor} * {part}"


def _sum(text: str, plus: int) -> str:
    return text if plus == 0 else f"{text} {'+' if plus > 0 else '-'} {abs(plus)}"


def _floor(text: str, by: int) -> str:
    """DIV cuts towards zero, which is wrong before 1970: take the rest away first."""
    return text if by == 1 else f"({text} - pmod({text}, {by})) DIV {by}"
