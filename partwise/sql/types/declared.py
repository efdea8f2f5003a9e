"""Spark's column types, as far as a typing mistake can be told from a type."""

from __future__ import annotations

import re

from partwise.sql.types.names import DECIMALS, decimal_of, exists

NUMBERS = frozenset(
    ["tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double", *DECIMALS]
)
SIMPLE = NUMBERS | {
    "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz", "timestamp_ltz", "variant",
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


def split(text: str) -> list[str]:
    """At commas outside of brackets."""
    out, depth, last = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            out.append(text[last:at])
            last = at + 1
    return [*out, text[last:]]
