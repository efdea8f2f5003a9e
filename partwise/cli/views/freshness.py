"""Views that are further behind than their `freshness` allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from partwise.cli.views.show import moment_json, moment_text
from partwise.parts import lasting

if TYPE_CHECKING:
    from partwise.ledger.read.reports import TableStatus


def late_lines(rows: Iterable[TableStatus], now: float, zone: str) -> Iterator[str]:
    """One line for each view behind its deadline, the latest first."""
    late = [(now - row.lag.deadline, row) for row in rows if row.lag is not None and row.table.helper_of is None]
    for seconds, row in sorted(late, key=lambda item: -item[0]):
        if seconds > 0 and row.lag is not None and row.table.freshness is not None:
            allowed, since = lasting(row.table.freshness), moment_text(row.lag.since, zone, short=True)
            yield f"{row.table.name} is {lasting(max(1, seconds))} past its deadline: freshness {allowed}, due since {since}."


def freshness_json(row: TableStatus, now: float) -> dict[str, Any] | None:
    """`late`: seconds past the deadline, 0 if there is time left or nothing is due."""
    if row.table.freshness is None:
        return None
    lag = row.lag
    return {
        "allowed": row.table.freshness,
        "since": None if lag is None else moment_json(lag.since),
        "deadline": None if lag is None else moment_json(lag.deadline),
        "late": 0.0 if lag is None else max(0.0, now - lag.deadline),
    }
