"""What a table's columns may be, so that every Delta reader can read it.

Schemas travel as the JSON text that Spark and Delta share (`df.schema.json()`, the log's
`schemaString`). A table stays at reader version 1 and writer version 2: types that need a later
protocol are refused here, with a way out, instead of making tables that others cannot open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

#: The two columns that every partitioned table stores, so that any Delta reader can filter.
PART, PART_TIMESTAMP = "part", "part_timestamp"
PART_FIELDS: tuple[tuple[str, str], ...] = ((PART, "long"), (PART_TIMESTAMP, "timestamp"))

_PLAIN = {"string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp"}
_DECIMAL = re.compile(r"decimal\(\d+,\s*-?\d+\)")
_SPARK_NAMES = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}
#: Characters that Delta refuses in column names unless column mapping (a later protocol) is on.
_BAD_NAME = re.compile(r"[ ,;{}()\n\t=]")
_WAY_OUT = {
    "void": "CAST it to a type, for example CAST(NULL AS STRING)",
    "timestamp_ntz": "CAST it to TIMESTAMP (UTC)",
    "variant": "take fields out of it, or store it as text with to_json",
}


class BadSchema(ValueError):
    """Columns that cannot be stored; `problems` has one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


def normal(schema: str) -> str:
    """A schema as tables store it: no metadata, everything nullable. Raises BadSchema.

    Whether a column can be null is no part of a table's meaning: two runs of one query may differ in
    it, and that must not count as another schema.
    """
    fields = json.loads(schema)["fields"]
    problems = [p for field in fields for p in _problems(field["name"], field["type"])]
    problems += _name_problems([field["name"] for field in fields])
    if problems:
        raise BadSchema(problems)
    return json.dumps({"type": "struct", "fields": [_field(f) for f in fields]}, separators=(",", ":"))


def of(columns: dict[str, str], *, parts: bool = True) -> str:
    """The schema of a table with these plain columns (`{"src": "string"}`), part columns first."""
    named = {**(dict(PART_FIELDS) if parts else {}), **columns}
    fields = [{"name": n, "type": _SPARK_NAMES.get(t, t), "nullable": True, "metadata": {}} for n, t in named.items()]
    return normal(json.dumps({"type": "struct", "fields": fields}))


def names(schema: str) -> tuple[str, ...]:
    return tuple(field["name"] for field in json.loads(schema)["fields"])


def fields(schema: str) -> tuple[tuple[str, Any], ...]:
    """Names with types: text for plain types, the JSON object for nested ones."""
    return tuple((field["name"], field["type"]) for field in json.loads(schema)["fields"])


def part_fields() -> list[dict[str, Any]]:
    return [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in PART_FIELDS]


def without(schema: str, left_out: Collection[str]) -> str:
    """The schema but for these columns."""
    raw = json.loads(schema)
    return json.dumps({**raw, "fields": [field for field in raw["fields"] if field["name"] not in left_out]})


def sql_type(kind: Any) -> str:
    """A type as Spark SQL writes it."""
    if isinstance(kind, str):
        return {spark: sql for sql, spark in _SPARK_NAMES.items()}.get(kind, kind)
    if kind["type"] == "array":
        return f"array<{sql_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{sql_type(kind['keyType'])}, {sql_type(kind['valueType'])}>"
    return "struct<" + ", ".join(f"{quoted(f['name'])}: {sql_type(f['type'])}" for f in kind["fields"]) + ">"


def quoted(name: str) -> str:
    """A column's name as Spark SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _field(field: dict[str, Any]) -> dict[str, Any]:
    return {"name": field["name"], "type": _nullable(field["type"]), "nullable": True, "metadata": {}}


def _nullable(kind: Any) -> Any:
    if isinstance(kind, str):
        return "string" if kind.startswith("string ") else kind.replace(" ", "")
    if kind["type"] == "struct":
        return {"type": "struct", "fields": [_field(f) for f in kind["fields"]]}
    if kind["type"] == "array":
        return {"type": "array", "elementType": _nullable(kind["elementType"]), "containsNull": True}
    return {
        "type": "map",
        "keyType": _nullable(kind["keyType"]),
        "valueType": _nullable(kind["valueType"]),
        "valueContainsNull": True,
    }


def _problems(where: str, kind: Any) -> Iterator[str]:
    if isinstance(kind, str):
        if kind not in _PLAIN and not _DECIMAL.fullmatch(kind) and not kind.startswith("string "):
            how = _WAY_OUT.get(kind, "CAST it to a number, STRING, DATE or TIMESTAMP")
            yield f"column '{where}' has the type {kind}, which not every Delta reader knows: {how}"
    elif kind["type"] == "struct":
        for field in kind["fields"]:
            yield from _problems(f"{where}.{field['name']}", field["type"])
        yield from _name_problems([field["name"] for field in kind["fields"]], f"{where}.")
    elif kind["type"] == "array":
        yield from _problems(f"{where}[]", kind["elementType"])
    elif kind["type"] == "map":
        yield from _problems(f"{where}.key", kind["keyType"])
        yield from _problems(f"{where}.value", kind["valueType"])
    else:
        yield f"column '{where}' has the type {kind['type']}, which not every Delta reader knows"


def _name_problems(found: list[str], prefix: str = "") -> Iterator[str]:
    seen: set[str] = set()
    for name in found:
        if _BAD_NAME.search(name) or not name:
            yield f"column '{prefix}{name}' has a name that Delta refuses: give it another with AS, for example AS n"
        if name.lower() in seen:
            yield f"column '{prefix}{name}' is there twice: give one of them another name with AS"
        seen.add(name.lower())
