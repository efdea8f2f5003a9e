"""Types as far as equality needs them: which values can be compared without one of them being converted."""

from __future__ import annotations

from partwise.sql.types.names import INTEGERS

_EXACT = frozenset(["string", "boolean", "date", "timestamp", "timestamp_ntz", "binary"])


def is_exact(kind: str | None) -> bool:
    """Whether equal means identical: not for floating point, where -0.0 = 0.0, nor for collated or nested types."""
    return kind is not None and (kind in INTEGERS or kind in _EXACT or kind.startswith("decimal("))


def comparable(one: str | None, other: str | None) -> bool:
    """Whether `one = other` holds exactly if both are the same value: `1 = '01'` compares numbers."""
    return is_exact(one) and (one == other or {one, other} <= INTEGERS)


def is_summed_exactly(kind: str | None) -> bool:
    """Whether sums can be added and subtracted without rounding."""
    return kind is not None and (kind in INTEGERS or kind.startswith("decimal("))
