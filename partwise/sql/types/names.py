"""The names of Spark's types: one spelling for each, and the digits of a decimal. None stands for an unknown type."""

from __future__ import annotations

import re

from partwise.sql.types.decimals import Decimals

#: Whole numbers, from the narrowest to the widest.
BY_WIDTH = ("tinyint", "smallint", "int", "bigint")
INTEGERS = frozenset(BY_WIDTH)
DECIMALS = frozenset(["decimal", "dec", "numeric"])
#: The most digits that a decimal of Spark has.
MOST_DIGITS = 38
_UNSCALED: Decimals = (10, 0)  # a decimal that says nothing of its digits
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_SYNONYMS = {
    "integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float", "bool": "boolean",
    "text": "string", "timestamp_ltz": "timestamp",
}  # fmt: skip


def decimal_of(kind: str | None) -> Decimals | None:
    """The digits of a decimal, in all and behind the point, as they are written: also of one that cannot exist."""
    match = _DECIMAL.fullmatch((kind or "").strip().lower())
    if match is None:
        return None
    return (int(match[1]), int(match[2] or 0)) if match[1] else _UNSCALED


def exists(digits: Decimals) -> bool:
    """Whether Spark has such a decimal: at most 38 digits, and not more of them behind the point than in all."""
    return 1 <= digits[0] <= MOST_DIGITS and digits[1] <= digits[0]


def decimal(found: Decimals | None) -> str | None:
    return None if found is None else f"decimal({found[0]},{found[1]})"


def normal(kind: str | None) -> str | None:
    """One spelling for each type; nested ones come back as they are, since fields keep the names they were given."""
    if kind is None or "<" in kind:
        return kind and kind.strip()
    if (found := decimal_of(kind)) is not None:
        return decimal(found)
    small = re.sub(r"\s+", "", kind.lower())
    return _SYNONYMS.get(small, kind.strip().lower() if " " in kind.strip() else small)


def is_integer(kind: str | None) -> bool:
    return kind in INTEGERS
