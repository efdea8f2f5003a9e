"""The schema of a source's table from its declared columns, without asking Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from partwise.sql.types.declared import base, split
from partwise.sql.types.names import decimal, decimal_of, exists
from partwise.storage import schema as schemas

#: The column that says which file a row came from.
FILE = "_file"
_PLAIN = {
    "boolean": "boolean",
    "tinyint": "byte",
    "byte": "byte",
    "smallint": "short",
    "short": "short",
    "int": "integer",
    "integer": "integer",
    "bigint": "long",
    "long": "long",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
}
#: Quoted names may hold anything, commas and brackets too: those are left to Spark.
_NAME = re.compile(r"\s*(\w+)\s*(?::|\s)\s*(.+)", re.DOTALL)


def stored_type(kind: str) -> str:
    """A declared type as tables store it: every Delta reader knows it."""
    if base(kind) in ("timestamp_ntz", "timestamp_ltz"):
        return "timestamp"
    return "string" if base(kind) in ("char", "varchar") else kind


def plain_schema(columns: Mapping[str, str], parts: bool) -> str | None:
    """The schema as Spark would give it; None if only Spark can tell. Raises BadSchema."""
    named = {**(dict(schemas.PART_FIELDS) if parts else {}), **columns, FILE: "int"}
    fields = []
    for name, kind in named.items():
        found = type_of(stored_type(kind))
        if found is None:
            return None
        fields.append({"name": name, "type": found, "nullable": True, "metadata": {}})
    return schemas.normal(json.dumps({"type": "struct", "fields": fields}))


def type_of(text: str) -> Any:
    """A declared type as schemas write it: text for a plain one, else its JSON object. None if only Spark can tell."""
    text = text.strip()
    lower = text.lower()
    if lower in _PLAIN:
        return _PLAIN[lower]
    if (digits := decimal_of(lower)) is not None:
        return decimal(digits) if exists(digits) else None
    match = re.fullmatch(r"(array|map|struct)\s*<(.*)>", text, re.IGNORECASE | re.DOTALL)
    if match is None:
        return None
    kind, inner = match[1].lower(), split(match[2])
    if kind == "struct":
        return _struct(inner)
    types = [type_of(piece) for piece in inner]
    if None in types or len(types) != (1 if kind == "array" else 2):
        return None
    if kind == "array":
        return {"type": "array", "elementType": types[0], "containsNull": True}
    return {"type": "map", "keyType": types[0], "valueType": types[1], "valueContainsNull": True}


def _struct(pieces: list[str]) -> Any:
    fields = []
    for piece in pieces:
        match = _NAME.fullmatch(piece)
        found = type_of(match[2]) if match else None
        if match is None or found is None:
            return None
        fields.append({"name": match[1], "type": found, "nullable": True, "metadata": {}})
    return {"type": "struct", "fields": fields}
