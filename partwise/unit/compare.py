"""Rows that were expected against rows that were found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any


def difference(expected: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines that tell what differs: `-` was expected and is not there, `+` is there. Empty: the same rows, as often.

    Only columns that the expected rows name are compared; one that a row leaves out is NULL there. Order means nothing.
    """
    names = list(dict.fromkeys(name for row in expected for name in row)) or (list(found[0]) if found else [])
    spelled = [{name.lower(): value for name, value in row.items()} for row in found]
    known = {name for row in spelled for name in row}
    if spelled and (missing := [name for name in names if name.lower() not in known]):
        return [f"there is no column {name}; there are {', '.join(sorted(known))}" for name in missing]
    want = Counter(tuple(_plain(row.get(name)) for name in names) for row in expected)
    have = Counter(tuple(_plain(row.get(name.lower())) for name in names) for row in spelled)
    lines = [("-", row) for row in (want - have).elements()] + [("+", row) for row in (have - want).elements()]
    same = sum((want & have).values())
    if not lines:
        return []
    rest = [f"  {same} more {'rows' if same != 1 else 'row'} as expected"] if same else []
    return [*_table(names, lines), *rest]


def _table(names: Sequence[str], lines: Iterable[tuple[str, tuple[Any, ...]]]) -> list[str]:
    texts = [(sign, [_text(value) for value in row]) for sign, row in sorted(lines, key=lambda line: repr(line[1]))]
    widths = [max(len(name), *(len(row[at]) for _, row in texts)) for at, name in enumerate(names)]
    return [f"  {_padded(names, widths)}", *(f"{sign} {_padded(row, widths)}" for sign, row in texts)]


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _plain(value: Any) -> Any:
    """Values that mean the same are the same: floats to nine digits, whole floats as whole numbers, times in UTC."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        number = float(value)
        if number != number:
            return "NaN"
        return int(number) if number.is_integer() and abs(number) < 2**53 else float(f"{number:.9g}")
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return tuple(sorted((key, _plain(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    return value


def _text(value: Any) -> str:
    return "NULL" if value is None else str(value)
