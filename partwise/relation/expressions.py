"""Expressions of a query as far as rules follow them: columns, constants and functions that never fail.

Everything else is `Other`. Whether a function is total depends on the types of its arguments: LOWER takes anything,
COALESCE converts unless its arguments have one type, and a conversion of text fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from partwise.relation.scope import Scope
from partwise.relation.tree import COALESCE, Conjunct, Const, Equal, Expr, Other, Ref, TreeCall, columns_of, is_total
from partwise.relation.types import comparable, is_exact
from partwise.sql.functions import AGGREGATES
from partwise.sql.types.names import BY_WIDTH, INTEGERS, normal

if TYPE_CHECKING:
    from sqlglot import exp

#: Something that has its own column here: a group's key, an aggregate, a window. None: look inside.
Known = Callable[["exp.Expr"], Expr | None]

_TIMES = ("timestamp", "timestamp_ntz", "date")


def no_others(_: exp.Expr) -> Expr | None:
    return None


def expression(e: exp.Expr, scope: Scope, known: Known = no_others) -> Expr:
    """Never wrong: what is not followed is Other."""
    from sqlglot import exp

    if (found := known(e)) is not None:
        return found
    if isinstance(e, exp.Paren | exp.Alias):
        return expression(e.this, scope, known)
    if isinstance(e, exp.Column):
        found = scope.find(e) if not isinstance(e.this, exp.Star) else None
        return found if found is not None else Other(frozenset(), _text(e), sure=False)
    if isinstance(e, exp.Literal) and not set(e.this) & set("\\'\""):  # escapes are Spark's business
        return Const(_text(e), "string" if e.is_string else "int" if e.this.isdigit() and len(e.this) < 10 else None)
    if isinstance(e, exp.Null | exp.Boolean):
        return Const(_text(e), "boolean" if isinstance(e, exp.Boolean) else None)
    made = _call(e, scope, known)
    return made if made is not None else other(e, scope, known)


def other(e: exp.Expr, scope: Scope, known: Known = no_others) -> Other:
    from sqlglot import exp

    columns: frozenset[int] = frozenset()
    sure = e.find(exp.Query) is None
    for inner in e.walk(prune=lambda n: isinstance(n, exp.Query) or known(n) is not None):
        found = known(inner)
        if found is None and isinstance(inner, exp.Column):
            found = scope.find(inner)
            sure = sure and found is not None
        if found is not None:
            columns |= columns_of(found)
            sure = sure and not (isinstance(found, Other) and not found.sure)
    return Other(columns, _text(e), sure, _type(e, scope) if sure and known is no_others else None)


def _type(e: exp.Expr, scope: Scope) -> str | None:
    """Spark's type of an expression, where it is certain: exact sums need it."""
    from partwise.sql.types.known import type_of

    return normal(type_of(e, scope.types()))


def conjuncts(condition: exp.Expr | None, scope: Scope, known: Known = no_others) -> tuple[Conjunct, ...]:
    return tuple(conjunct(e, scope, known) for e in split(condition))


def split(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """What AND connects."""
    from sqlglot import exp

    if isinstance(condition, exp.Paren):
        yield from split(condition.this)
    elif isinstance(condition, exp.And):
        yield from split(condition.this)
        yield from split(condition.expression)
    elif condition is not None:
        yield condition


def conjunct(e: exp.Expr, scope: Scope, known: Known = no_others) -> Conjunct:
    from sqlglot import exp

    if isinstance(e, exp.EQ | exp.NullSafeEQ):
        sides = expression(e.this, scope, known), expression(e.expression, scope, known)
        if (found := equal(*sides, null_safe=isinstance(e, exp.NullSafeEQ))) is not None:
            return found
    return other(e, scope, known)


def equal(left: Expr, right: Expr, *, null_safe: bool = False) -> Equal | None:
    """None where equal values may still be told apart: of different types, as in 1 = '01'."""
    if not (is_total(left) and is_total(right) and comparable(left.type, right.type)):
        return None
    return Equal(left, right, null_safe)


def _call(e: exp.Expr, scope: Scope, known: Known) -> Expr | None:
    from sqlglot import exp

    def of(inner: exp.Expr) -> Expr:
        return expression(inner, scope, known)

    if isinstance(e, exp.Coalesce):
        args = [of(inner) for inner in (e.this, *e.expressions)]
        return coalesce(args)
    if isinstance(e, exp.Lower | exp.Upper):
        return _total(f"{e.key}({{}})", of(e.this), "string")
    if isinstance(e, exp.Trim) and not any(e.args.get(k) for k in ("expression", "position", "collation")):
        return _total("trim({})", of(e.this), "string")
    if isinstance(e, exp.Cast):
        return _cast(of(e.this), normal(e.to.sql("spark")))
    if isinstance(e, exp.TsOrDsToDate) and not e.args.get("format"):
        return _cast(of(e.this), "date")
    if isinstance(e, exp.TimestampTrunc | exp.DateTrunc) and not e.args.get("zone"):
        inner = of(e.this)
        unit = e.args["unit"].name.upper() if e.args.get("unit") is not None else ""
        known_unit = unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
        if known_unit and isinstance(e, exp.TimestampTrunc) and inner.type == "timestamp":
            return _total(f"date_trunc('{unit}', {{}})", inner, "timestamp")
    if isinstance(e, exp.Year | exp.Month | exp.Day | exp.Hour | exp.Minute):
        inner = of(e.this)
        inner = inner.args[0] if isinstance(inner, TreeCall) and inner.sql == "CAST({} AS DATE)" else inner
        return _total(f"{e.key}({{}})", inner, "int") if inner.type in _TIMES else None
    return None


def coalesce(args: list[Expr]) -> Expr | None:
    """Nested pairs, so that rules know one form. Every argument has the same type: nothing is converted."""
    kind = next((a.type for a in args if a.type is not None), None)
    if not all(is_total(a) and (a.type == kind or a == Const("NULL")) for a in args) or not is_exact(kind):
        return None
    found = args[0]
    for arg in args[1:]:
        found = TreeCall(COALESCE, (found, arg), kind)
    return found


def _total(sql: str, arg: Expr, kind: str) -> Expr | None:
    # A value of a nested type is converted to text as well, but not by rules that are followed here.
    return TreeCall(sql, (arg,), kind) if is_total(arg) and is_exact(arg.type) else None


def _cast(arg: Expr, to: str | None) -> Expr | None:
    if not is_total(arg) or arg.type is None or to is None:
        return None
    if arg.type == to and is_exact(to):
        return arg
    widened = {arg.type, to} <= INTEGERS and BY_WIDTH.index(arg.type) < BY_WIDTH.index(to)
    as_text = to == "string" and is_exact(arg.type) and arg.type != "binary"
    as_date = to == "date" and arg.type in ("timestamp", "timestamp_ntz")
    return TreeCall(f"CAST({{}} AS {to.upper()})", (arg,), to) if widened or as_text or as_date else None


def is_aggregate(e: exp.Expr) -> bool:
    """A call of an aggregate function; whether it is one or a window's, its surroundings tell."""
    from sqlglot import exp

    if isinstance(e, exp.Any):
        return e.find(exp.Query) is None
    return isinstance(e, exp.AggFunc) or (isinstance(e, exp.Anonymous) and str(e.this).lower() in AGGREGATES)


def render(expr: Expr, names: dict[int, str]) -> str:
    """Spark SQL over columns of these names."""
    if isinstance(expr, Ref):
        return f"`{names[expr.column].replace('`', '``')}`"
    if isinstance(expr, TreeCall):
        return expr.sql.format(*(render(arg, names) for arg in expr.args))
    assert isinstance(expr, Const)
    return expr.sql


def _text(e: exp.Expr) -> str:
    return str(e.sql("spark", comments=False))
