"""Checks that look beyond the part: against the part before it, and across tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from partwise.checks.phrases import bounds
from partwise.checks.question import Answer


def ratio(arguments: Mapping[str, Any], rows: int, previous: int | None) -> Answer:
    """Without a part before it there is nothing to compare with, which is fine."""
    low, high = arguments.get("min"), arguments.get("max")
    if previous is None:
        return Answer(True, "there is no part before it to compare with")
    found = rows / previous if previous else (1.0 if rows == 0 else math.inf)
    ok = (low is None or found >= low) and (high is None or found <= high)
    wanted = bounds({"min_value": low, "max_value": high})
    times = f"{found:.4g} times as many" if math.isfinite(found) else "more than none"
    message = f"{rows:,} rows, the part before it has {previous:,}: {times}, expected {wanted}"
    return Answer(ok, message, found if math.isfinite(found) else None)


def removed(share: float, rows: int, before: int | None) -> Answer:
    """How much of its rows a part that exists would lose."""
    if not before or rows >= before:
        return Answer(True, "no rows are taken out")
    gone = (before - rows) / before
    message = f"{before - rows:,} of {before:,} rows would be taken out ({gone:.1%}); max_removed is {share:.4g}"
    return Answer(gone <= share, message.replace(f"{share:.4g}", f"{100 * share:.4g} %"), gone)


def equals(table: str, rows: int, other: int | None) -> Answer:
    if other is None:
        return Answer(False, f"{table} has no part for the same time to compare with")
    return Answer(rows == other, f"{rows:,} rows, {table} has {other:,} for the same time; expected as many", other)
