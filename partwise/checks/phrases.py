"""What a check found, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def rows(elements: int, unexpected: int, what: str, phrase: str, mostly: float) -> str:
    share = "" if mostly >= 1 else f" for at least {mostly:.4g} of them"
    return f"{unexpected:,} of {elements:,} {what} fail the check: {phrase}{share}"


def value(what: str, found: Any, expected: str) -> str:
    return f"{what} is {'unknown (no values)' if found is None else plain(found)}, expected {expected}"


def bounds(arguments: Mapping[str, Any]) -> str:
    low, high = arguments.get("min_value"), arguments.get("max_value")
    above, below = bool(arguments.get("strict_min")), bool(arguments.get("strict_max"))
    if low is not None and low == high:
        return str(low)
    if low is not None and high is not None and not above and not below:
        return f"between {low} and {high}"
    words = []
    if low is not None:
        words.append(f"{'more than' if above else 'at least'} {low}")
    if high is not None:
        words.append(f"{'less than' if below else 'at most'} {high}")
    return " and ".join(words)


def members(values: Sequence[Any]) -> str:
    shown = ", ".join(str(value) for value in list(values)[:8])
    return shown if len(values) <= 8 else f"{shown} and {len(values) - 8} more"


def sets(column: str, foreign: int, missing: Sequence[Any], wanted: Sequence[Any]) -> str:
    said = []
    if foreign:
        said.append(f"{foreign:,} values of {column} are none of {members(wanted)}")
    if missing:
        said.append(f"{column} never has {members(missing)}")
    return " and ".join(said) or f"the values of {column} are as expected: {members(wanted)}"


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such numbers
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value
