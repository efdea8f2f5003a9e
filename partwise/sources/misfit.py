"""Which value of a row it is that does not fit its column: Spark says only that one does."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from partwise.sql.types.declared import base
from partwise.sql.types.names import DECIMALS

_WHOLE = {
    "tinyint": 8, "byte": 8, "smallint": 16, "short": 16, "int": 32, "integer": 32, "bigint": 64, "long": 64,
}  # fmt: skip
_FLOATS = frozenset(["float", "real", "double"])
_WORDS = frozenset(["nan", "inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"])
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ].*)?")
_SHOWN = 40


def misfit(text: str, header: Sequence[str] | None, columns: Mapping[str, str]) -> str | None:
    """The first value that does not fit, in words: column, value, type. `header`: of a line of CSV; None: it is JSON."""
    if header is None:
        try:
            row = json.loads(text)
        except ValueError:
            return "it is not a JSON object"
        if not isinstance(row, dict):
            return "it is not a JSON object"
        values = {str(name).lower(): value for name, value in row.items()}
    else:
        cells = next(csv.reader([text]), [])
        if len(cells) != len(header):
            return f"it has {len(cells)} values, the header has {len(header)}"
        values = dict(zip((name.lower() for name in header), cells, strict=True))
    return next(_wrong(values, columns), None)


def _wrong(values: Mapping[str, Any], columns: Mapping[str, str]) -> Iterator[str]:
    for name, kind in columns.items():
        value = values.get(name.lower())
        if value is not None and value != "" and not fits(value, kind):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
            yield f"{name} is '{shown}', which is not a valid {kind}"


def fits(value: Any, kind: str) -> bool:
    """Whether a value, as written, can be of a type. Where in doubt it can: this only explains what was refused."""
    name = base(kind)
    if isinstance(value, dict | list):
        return name in ("struct", "map", "array", "string", "variant")
    text = str(value).strip()
    if name in _WHOLE:
        limit = 2 ** (_WHOLE[name] - 1)
        return re.fullmatch(r"[+-]?\d+", text) is not None and -limit <= int(text) < limit
    if name in _FLOATS:
        return text.lower() in _WORDS or re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?", text) is not None
    if name in DECIMALS:
        return _is_decimal(text.replace(",", ""), kind)
    if name == "boolean":
        return text.lower() in ("true", "false")
    if name in ("date", "timestamp", "timestamp_ntz", "timestamp_ltz"):
        return _is_date(text)
    return True


def _is_decimal(text: str, kind: str) -> bool:
    sizes = re.findall(r"\d+", kind)
    whole = int(sizes[0]) - int(sizes[1] if len(sizes) > 1 else 0) if sizes else 10
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    return number.is_finite() and abs(number) < Decimal(10) ** whole


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    try:
        date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return False
    return True
