"""How much one key that is neither sampled nor exact can add to a total, part by part.

Known for sure: sizes of all keys are added up whenever the inputs change, and published rows can be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from partwise.fresh.asked.results import Total

#: At or above this there is no bound: some value has too many digits, or is no number.
_HUGE = 1e23
#: Sizes are decimals with six digits: what rounding may have lost, by row, and in the sum.
_LOST, _SLACK = 1e-6, 1 + 1e-9


@dataclass(frozen=True)
class Sizes:
    """Of keys that are not exact, in one part: most rows, and by column the largest sum of absolute values.

    `positive`: columns of which no value is negative, neither among the fresh rows nor among the published ones.
    `products`: the same of two columns of joined views, one of each.
    """

    rows: float
    columns: Mapping[str, float]
    positive: frozenset[str] = frozenset()
    products: Mapping[frozenset[str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Bound:
    most: float
    positive: bool


def column_bound(size: float | None, rows: float) -> float:
    if size is None or not math.isfinite(size) or size >= _HUGE:
        return math.inf
    return size * _SLACK + rows * _LOST if rows else 0.0


def largest(total: Total, sizes: Sizes) -> float | None:
    """A bound of |fresh - compared| for one key; None if the expression has none."""
    if total.row is None or sizes.rows == 0:
        return sizes.rows
    found = _bound(total.row, sizes)
    if found is None:
        return None
    if total.squared:
        return found.most**2
    # Two sums between 0 and the bound differ by the bound at most, of any sign by twice as much.
    return found.most if found.positive else 2 * found.most


def columns_in(row: exp.Expression) -> set[str]:
    return {c.name.lower() for c in row.find_all(exp.Column)}


def most_of(row: exp.Expression, sizes: Sizes) -> float:
    """No single value of a key that is not exact is larger, in one part; infinite if nothing is known."""
    found = _bound(row, sizes)
    return 0.0 if sizes.rows == 0 else math.inf if found is None else found.most


def _bound(e: exp.Expression, sizes: Sizes) -> _Bound | None:
    """Of the sum of absolute values over all rows of a key."""
    if isinstance(e, exp.Column):
        name = e.name.lower()
        return _Bound(sizes.columns[name], name in sizes.positive) if name in sizes.columns else None
    if isinstance(e, exp.Literal) and not e.is_string:
        return _Bound(abs(float(e.name)) * sizes.rows, float(e.name) >= 0)
    if isinstance(e, exp.Paren):
        return _bound(e.this, sizes)
    if isinstance(e, exp.Abs):
        inner = _bound(e.this, sizes)
        return None if inner is None else _Bound(inner.most, True)
    if isinstance(e, exp.Neg):
        inner = _bound(e.this, sizes)
        return None if inner is None else _Bound(inner.most, False)
    if isinstance(e, exp.Add | exp.Sub):
        left, right = _bound(e.this, sizes), _bound(e.expression, sizes)
        if left is None or right is None:
            return None
        return _Bound(left.most + right.most, isinstance(e, exp.Add) and left.positive and right.positive)
    if isinstance(e, exp.Mul | exp.Div):
        return _scaled(e, sizes)
    return None


def _scaled(e: exp.Expression, sizes: Sizes) -> _Bound | None:
    """A product with a number, or a quotient by one. A product of columns of one row has no bound that is worth having; of
    joined rows it has one."""
    left, right = e.this.unnest(), e.expression.unnest()
    if isinstance(e, exp.Mul) and isinstance(left, exp.Column) and isinstance(right, exp.Column):
        names = frozenset([left.name.lower(), right.name.lower()])
        return _Bound(sizes.products[names], names <= sizes.positive) if names in sizes.products else None
    factor, of = (right, left) if _is_number(right) else (left, right)
    if not _is_number(factor) or (isinstance(e, exp.Div) and factor is not right) or float(factor.name) == 0:
        return None
    inner = _bound(of, sizes)
    by = float(factor.name)
    return (
        None
        if inner is None
        else _Bound(inner.most / by if isinstance(e, exp.Div) else inner.most * by, inner.positive)
    )


def _is_number(e: exp.Expression) -> bool:
    return isinstance(e, exp.Literal) and not e.is_string
