"""Values and columns as Spark SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

from partwise.storage.schema import quoted

__all__ = ["all_of", "any_of", "between", "in_list", "like", "literal", "quoted"]


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}L" if -(2**63) <= value < 2**63 else f"{value}BD"
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"double('{value}')"
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return f"TIMESTAMP '{moment.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is neither text, a number, a time, true nor false")
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def in_list(column: str, values: Iterable[Any]) -> str:
    known = ", ".join(literal(value) for value in values if value is not None)
    return f"({column} IN ({known}))" if known else "false"


def between(value: str, low: Any, high: Any, strict_low: bool = False, strict_high: bool = False) -> str:
    parts = []
    if low is not None:
        parts.append(f"{value} {'>' if strict_low else '>='} {literal(low)}")
    if high is not None:
        parts.append(f"{value} {'<' if strict_high else '<='} {literal(high)}")
    return all_of(parts)


def like(column: str, pattern: str, escape: str | None) -> str:
    return f"({column} LIKE {literal(pattern)}" + (f" ESCAPE {literal(escape)})" if escape else ")")


def all_of(conditions: Iterable[str]) -> str:
    return " AND ".join(f"({c})" for c in conditions) or "true"


def any_of(conditions: Iterable[str]) -> str:
    return " OR ".join(f"({c})" for c in conditions) or "false"
