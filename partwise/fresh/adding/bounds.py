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
    if isinstance(e, exp.Null):
        return _Bound(0.0, True)
    if isinstance(e, exp.Paren) or (isinstance(e, exp.Cast) and e.to.is_type("double")):
        return _bound(e.this, sizes)
    if isinstance(e, exp.Case | exp.If | exp.Coalesce):
        return _one_of(_choices(e), sizes)
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


def _choices(e: exp.Expression) -> list[exp.Expression]:
    """One of these is the value of a row; of none it is NULL."""
    if isinstance(e, exp.Coalesce):
        return [e.this, *e.expressions]
    if isinstance(e, exp.Case):
        found = [branch.args["true"] for branch in e.args["ifs"]] + [e.args.get("default")]
    else:
        found = [e.args["true"], e.args.get("false")]
    return [each for each in found if each is not None]


def _one_of(choices: list[exp.Expression], sizes: Sizes) -> _Bound | None:
    """Some rows of a key may choose one, some another."""
    found = [_bound(each, sizes) for each in dict.fromkeys(choices)]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return _Bound(sum(each.most for each in known), all(each.positive for each in known))


def _scaled(e: exp.Expression, sizes: Sizes) -> _Bound | None:
    """A product with a number, or a quotient by one. A product of columns of one row has no bound that is worth having; of
    joined rows it has one."""
    left, right = e.this.unnest(), e.expression.unnest()
    if isinstance(e, exp.Mul) and isinstance(left, exp.Column) and isinstance(right, exp.Column):
        names = frozenset([left.name.lower(), right.name.lower()])
        return _Bound(sizes.products[names], names <= sizes.positive) if names in sizes.products else None
    (by, of), divides = (_number(right), left), isinstance(e, exp.Div)
    if by is None and not divides:
        by, of = _number(left), right
    inner = _bound(of, sizes) if by else None
    if inner is None or not by:
        return None
    return _Bound(inner.most / abs(by) if divides else inner.most * abs(by), inner.positive and by > 0)


def _number(e: exp.Expression) -> float | None:
    if isinstance(e, exp.Neg | exp.Paren):
        inner = _number(e.this)
        return -inner if inner is not None and isinstance(e, exp.Neg) else inner
    return float(e.name) if isinstance(e, exp.Literal) and not e.is_string else None
