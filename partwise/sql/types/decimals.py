"""Spark's rules for decimals: how many digits a result has, and how many of them after the point."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Digits in all, digits after the point.
Decimals = tuple[int, int]

MOST = 38
#: Digits after the point that are not given up for the sake of those before it.
_KEPT = 6


def as_decimal(text: str) -> Decimals | None:
    """Of a number that is written out."""
    match = re.fullmatch(r"(\d*)(?:\.(\d*))?", text)
    if match is None or not (match[1] or match[2]):
        return None
    scale = len(match[2] or "")
    digits = len((match[1] + (match[2] or "")).lstrip("0"))
    found = max(digits, scale, 1), scale
    return found if found[0] <= MOST else None


def added(left: Decimals, right: Decimals) -> Decimals:
    scale = max(left[1], right[1])
    return _bounded(max(left[0] - left[1], right[0] - right[1]) + scale + 1, scale)


def multiplied(left: Decimals, right: Decimals) -> Decimals:
    return _bounded(left[0] + right[0] + 1, left[1] + right[1])


def divided(left: Decimals, right: Decimals) -> Decimals:
    scale = max(_KEPT, left[1] + right[0] + 1)
    return _bounded(left[0] - left[1] + right[1] + scale, scale)


def remainder(left: Decimals, right: Decimals) -> Decimals:
    scale = max(left[1], right[1])
    return _bounded(min(left[0] - left[1], right[0] - right[1]) + scale, scale)


def wider(all_of: Iterable[Decimals]) -> Decimals | None:
    """What holds all of them; None where that has too many digits."""
    found = list(all_of)
    scale = max(s for _, s in found)
    precision = max(p - s for p, s in found) + scale
    return (precision, scale) if precision <= MOST else None


def _bounded(precision: int, scale: int) -> Decimals:
    """Too many digits: those after the point go first, down to six."""
    if precision <= MOST:
        return precision, scale
    return MOST, max(MOST - (precision - scale), min(scale, _KEPT))
