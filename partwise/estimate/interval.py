"""Totals of a sample to a value with its interval, or to the reason why there is none.

Let d be what a key adds to a total: its fresh rows minus the rows they are compared with. Keys that are known exactly
count as they are, sampled ones stand for 1/ratio keys each:

    total    = base + sum of d over exact keys + (sum of d over sampled keys) / ratio
    variance = (1 - ratio) / ratio^2 * sum of d^2 over sampled keys

A key has the same hash in every part, so what it adds in all parts is summed before it is squared.

Whether to answer is decided by what is known of ALL keys, never by how the sample looks: a sample that missed the one
key that matters looks healthy. `largest` bounds |d| of every key that is not exact. If one such key outside the sample
could outweigh what the sample saw, there is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from partwise.estimate.formula import Formula, Valued, evaluate, used

#: Fewer differing keys than this in the sample say too little about the others.
FEWEST = 30
#: The sum of d^2 in the sample must be so many times the square of the largest d that a key may have.
MARGIN = 3.0
#: Sums of doubles in another order differ in the last digits.
_ROUNDING = 1e-12

Why = Literal["few-keys", "large-key", "no-bound", "undefined"]


@dataclass(frozen=True, slots=True)
class Totals:
    """What was added up for one cell, by number of the total.

    `base` is the published content (and stand-ins for missing parts), `exact` and `sampled` are sums of d, `products`
    the sums of d_a * d_b over sampled keys. `largest` bounds |d| of keys that are not exact, in each part that is
    estimated (None: there is no bound). `differing` counts sampled keys of which some d that matters here is not 0.
    `coupled` are pairs of a sum and a count of rows, of which the sum is 0 where the count is.
    """

    base: tuple[float, ...]
    exact: tuple[float, ...]
    sampled: tuple[float, ...]
    products: tuple[tuple[float, ...], ...]
    largest: tuple[tuple[float, ...] | None, ...]
    differing: int
    coupled: tuple[tuple[int, int], ...] = ()

    def fresh(self, ratio: float) -> list[float]:
        return [b + e + s / ratio for b, e, s in zip(self.base, self.exact, self.sampled, strict=True)]


@dataclass(frozen=True, slots=True)
class Interval:
    """`largest_unknown`: how much one key that is neither sampled nor exact may move the value."""

    value: float
    low: float
    high: float
    differing: int
    largest_unknown: float
    exact: bool = False


@dataclass(frozen=True, slots=True)
class NoEstimate:
    """`largest` is what one key may hold, where that is the reason."""

    why: Why
    differing: int = 0
    largest: float | None = None


def estimate(formula: Formula, totals: Totals, ratio: float, confidence: float = 0.95) -> Interval | NoEstimate:
    """The value of a formula over fresh totals. `ratio` is the share of keys in the sample, above 0 and at most 1."""
    fresh = totals.fresh(ratio)
    found = evaluate(formula, fresh)
    if found is None:
        return NoEstimate("undefined", totals.differing)
    if ratio >= 1:
        return _known(found, fresh, totals.differing)
    largest = _largest(found, totals, used(formula))
    if largest is None:
        return NoEstimate("no-bound", totals.differing)
    if largest == 0:
        return _known(found, fresh, totals.differing)
    if not math.isfinite(largest):
        return NoEstimate("large-key", totals.differing, largest)
    squares = _quadratic(found.gradient, totals.products)
    if totals.differing < FEWEST:
        return NoEstimate("few-keys", totals.differing, largest)
    if squares < MARGIN * largest * largest:
        return NoEstimate("large-key", totals.differing, largest)
    half = student(confidence, totals.differing - 1) * math.sqrt((1 - ratio) / ratio**2 * squares)
    half += _rounding(found, fresh)
    return Interval(found.value, found.value - half, found.value + half, totals.differing, largest)


def ratio_for(half: float, wanted: float, ratio: float) -> float:
    """The ratio of keys at which an interval of this half width would be `wanted` wide on either side."""
    return 1 / (1 + (1 - ratio) / ratio * (wanted / half) ** 2) if half > 0 else ratio


def student(confidence: float, degrees: int) -> float:
    """The two-sided quantile of Student's t, by its expansion around the normal one (good from 10 degrees on)."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    n = float(degrees)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3


def _known(found: Valued, fresh: Sequence[float], differing: int) -> Interval:
    slack = _rounding(found, fresh)
    return Interval(found.value, found.value - slack, found.value + slack, differing, 0.0, exact=True)


def _largest(found: Valued, totals: Totals, needed: frozenset[int]) -> float | None:
    """How much one unknown key can move the value, to first order, if it is as large as can be in every part."""
    slopes = {at: abs(found.gradient[at]) for at in needed if found.gradient[at]}
    bounds = {at: totals.largest[at] for at in slopes}
    if any(bound is None for bound in bounds.values()):
        return None
    moves = {at: [slope * b if b else 0.0 for b in bounds[at] or ()] for at, slope in slopes.items()}
    most = sum(sum(each) for each in moves.values())
    seen: set[int] = set()
    for a, b in totals.coupled:
        if a in moves and b in moves and found.gradient[a] * found.gradient[b] < 0 and not seen & {a, b}:
            seen |= {a, b}
            # A row moves an average by its distance from it: between -average and largest - average.
            one_row = [at for at, rows in enumerate(bounds[b] or ()) if rows == 1]
            most -= sum(min(moves[a][at], moves[b][at]) for at in one_row)
    return most


def _quadratic(gradient: Sequence[float], products: Sequence[Sequence[float]]) -> float:
    total = sum(
        g * h * products[a][b]
        for a, g in enumerate(gradient)
        if g
        for b, h in enumerate(gradient)
        if h and products[a][b]
    )
    return max(0.0, total)


def _rounding(found: Valued, fresh: Sequence[float]) -> float:
    return _ROUNDING * sum(abs(g * t) for g, t in zip(found.gradient, fresh, strict=True) if t)
