"""Spark's column types, as far as a typing mistake can be told from a type."""

from __future__ import annotations

import re

from partwise.spelling import did_you_mean
from partwise.sql.types.names import DECIMALS, decimal_of, exists

NUMBERS = frozenset(
    ["tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double", *DECIMALS]
)
SIMPLE = NUMBERS | {
    "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz", "timestamp_ltz", "variant",
}  # fmt: skip
#: What other databases call the types of Spark.
_ELSEWHERE = {
    **dict.fromkeys(["text", "str", "varchar", "char", "nvarchar", "clob", "uuid", "json", "jsonb", "enum"], "string"),
    **dict.fromkeys(["datetime", "timestamptz", "timestamp with time zone", "smalldatetime"], "timestamp"),
    **dict.fromkeys(["int64", "int8", "uint", "uint32", "unsigned", "serial", "signed"], "bigint"),
    **dict.fromkeys(["int4", "int32", "mediumint", "int2", "int16"], "int"),
    **dict.fromkeys(["float8", "float64", "double precision"], "double"),
    **dict.fromkeys(["float4", "float32"], "float"),
    **dict.fromkeys(["number", "money", "bignumeric", "hugeint", "uint64", "bigdecimal"], "decimal(38,2)"),
    **dict.fromkeys(["blob", "bytea", "bytes", "varbinary"], "binary"),
    "bit": "boolean",
}  # fmt: skip
_TEXT = re.compile(r"(?:var)?char\(\s*\d{1,9}\s*\)")
#: Nobody writes longer ones, and each level of nesting takes a call.
_LONGEST = 2_000


def base(text: str) -> str:
    """`decimal(10,2)` -> `decimal`."""
    return re.split(r"[(<\s]", text.strip().lower(), maxsplit=1)[0]


def scale_of(text: str) -> int:
    """The digits behind the point that a decimal keeps."""
    return (decimal_of(text) or (0, 0))[1]


def bad_type(text: str) -> str | None:
    """The piece of a type that Spark does not know, or None."""
    text = text.strip().lower()
    if len(text) > _LONGEST:
        return f"{text[:40]}..."
    if text in SIMPLE or _TEXT.fullmatch(text):
        return None
    if (digits := decimal_of(text)) is not None:
        return None if exists(digits) else text
    if text.startswith("array<") and text.endswith(">"):
        return bad_type(text[6:-1])
    if text.startswith("map<") and text.endswith(">"):
        parts = split(text[4:-1])
        return next(filter(None, map(bad_type, parts)), None) if len(parts) == 2 else text
    if text.startswith("struct<") and text.endswith(">"):
        for field in split(text[7:-1]):
            name, _, kind = field.strip().replace(":", " ", 1).partition(" ")
            if not name or (bad := bad_type(kind)) is not None:
                return bad if name and kind.strip() else field.strip() or text
        return None
    return text


def type_hint(bad: str) -> str:
    """What to write instead of a type that Spark does not have."""
    if bad.endswith("[]"):
        return f"write array<{bad[:-2]}>"
    if (meant := _ELSEWHERE.get(base(bad)) or _ELSEWHERE.get(bad)) is not None:
        return f"in Spark it is {meant}"
    return did_you_mean(bad, SIMPLE, "for example string, bigint, double, decimal(10,2), timestamp, array<string>")


def split(text: str) -> list[str]:
    """At commas outside of brackets."""
    out, depth, last = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            out.append(text[last:at])
            last = at + 1
    return [*out, text[last:]]
