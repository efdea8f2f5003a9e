"""Types of columns as checks see them, by the names of Delta, Spark SQL and Great Expectations alike."""

from __future__ import annotations

from typing import Any

_NUMBERS = {"byte", "short", "integer", "long", "float", "double"}
#: Delta's name -> other names of the same type.
_NAMES = {
    "string": {"string", "stringtype", "text", "varchar"},
    "long": {"long", "bigint", "longtype"},
    "integer": {"integer", "int", "integertype"},
    "short": {"short", "smallint", "shorttype"},
    "byte": {"byte", "tinyint", "bytetype"},
    "float": {"float", "real", "floattype"},
    "double": {"double", "doubletype"},
    "boolean": {"boolean", "bool", "booleantype"},
    "binary": {"binary", "binarytype"},
    "date": {"date", "datetype"},
    "timestamp": {"timestamp", "timestamptype", "timestamp_ltz"},
    "timestamp_ntz": {"timestamp_ntz", "timestampntztype"},
}


def is_number(kind: Any) -> bool:
    return isinstance(kind, str) and (kind in _NUMBERS or kind.startswith("decimal"))


def is_text(kind: Any) -> bool:
    return bool(kind == "string")


def shown_type(kind: Any) -> str:
    if isinstance(kind, dict):
        return str(kind["type"])
    return {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}.get(kind, str(kind))


def same_type(kind: Any, wanted: str) -> bool:
    word = wanted.strip().lower().removesuffix("()")
    if isinstance(kind, dict):
        return word in (kind["type"], f"{kind['type']}type")
    if kind.startswith("decimal"):
        return word in ("decimal", "decimaltype", kind)
    return word == kind or word in _NAMES.get(kind, ())
