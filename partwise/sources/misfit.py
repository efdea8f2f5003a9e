"""Which value of a row it is that does not fit its column: Spark says only that one does."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from partwise.sql.types.declared import base, split
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
        wrong = (found for name, kind in columns.items() for found in _in_json(name, values.get(name.lower()), kind))
    else:
        cells = next(csv.reader([text]), [])
        if len(cells) != len(header):
            return f"it has {len(cells)} values, the header has {len(header)}"
        values = dict(zip((name.lower() for name in header), cells, strict=True))
        wrong = (
            (name, values[name.lower()], kind)
            for name, kind in columns.items()
            if values.get(name.lower()) and not fits(values[name.lower()], kind)
        )
    return next((_said(*found) for found in wrong), None)


def _said(name: str, value: Any, kind: str) -> str:
    shown = f"'{value}'" if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..." + ("'" if isinstance(value, str) else "")
    if isinstance(value, dict | list):
        shown = f"'{shown}'"
    quoted = isinstance(value, str) and (base(kind) in _WHOLE or base(kind) in _FLOATS) and fits(value, kind)
    return f"{name} is {shown}, which is not a valid {kind}" + (": numbers have no quotes in JSON" if quoted else "")


def _in_json(name: str, value: Any, kind: str) -> Iterator[tuple[str, Any, str]]:
    """Values that Spark does not take for this type, each with the path to it: JSON has types of its own."""
    about = base(kind)
    if value is None or about in ("string", "variant"):
        return
    if about in ("struct", "map", "array"):
        if not isinstance(value, list if about == "array" else dict):
            yield name, value, kind
        else:
            yield from _nested(name, value, kind.strip()[len(about) + 1 : -1], about)
    elif isinstance(value, dict | list) or isinstance(value, bool) != (about == "boolean"):
        yield name, value, kind
    elif isinstance(value, str):
        is_word = about in _FLOATS and value.lower() in _WORDS
        is_text = about in DECIMALS or about.startswith(("date", "timestamp"))
        if not is_word and not (is_text and fits(value, kind)):
            yield name, value, kind
    elif (about in _WHOLE and isinstance(value, float)) or (about in (*_WHOLE, *DECIMALS) and not fits(value, kind)):
        yield name, value, kind


def _nested(name: str, value: Any, inside: str, about: str) -> Iterator[tuple[str, Any, str]]:
    if about == "array":
        for at, item in enumerate(value):
            yield from _in_json(f"{name}[{at}]", item, inside)
        return
    if about == "map":
        for key, item in value.items():
            yield from _in_json(f"{name}.{key}", item, split(inside)[-1].strip())
        return
    for field in split(inside):
        own, _, kind = field.strip().replace(":", " ", 1).partition(" ")
        yield from _in_json(f"{name}.{own}", value.get(own), kind.strip())


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
