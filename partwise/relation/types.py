"""Types as far as equality needs them: which values can be compared without one of them being converted."""

from __future__ import annotations

import re

_SYNONYMS = {
    "integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float", "bool": "boolean",
    "numeric": "decimal(10,0)", "dec": "decimal(10,0)", "decimal": "decimal(10,0)", "text": "string",
    "timestamp_ltz": "timestamp",
}  # fmt: skip
INTEGERS = frozenset(["tinyint", "smallint", "int", "bigint"])
_EXACT = frozenset(["string", "boolean", "date", "timestamp", "timestamp_ntz", "binary"])


def normal(kind: str | None) -> str | None:
    """One spelling for each type that is compared here; others come back as they are."""
    if kind is None:
        return None
    small = re.sub(r"\s+", "", kind.lower())
    if match := re.fullmatch(r"(?:decimal|dec|numeric)\((\d+)(?:,(\d+))?\)", small):
        return f"decimal({match[1]},{match[2] or 0})"
    return _SYNONYMS.get(small, small)


def is_exact(kind: str | None) -> bool:
    """Whether equal means identical: not for floating point, where -0.0 = 0.0, nor for collated or nested types."""
    return kind is not None and (kind in INTEGERS or kind in _EXACT or kind.startswith("decimal("))


def comparable(one: str | None, other: str | None) -> bool:
    """Whether `one = other` holds exactly if both are the same value: `1 = '01'` compares numbers."""
    return is_exact(one) and (one == other or {one, other} <= INTEGERS)


def is_summed_exactly(kind: str | None) -> bool:
    """Whether sums can be added and subtracted without rounding."""
    return kind is not None and (kind in INTEGERS or kind.startswith("decimal("))
