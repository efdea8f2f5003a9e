"""Spark's types, as far as sums and helpers need them. None stands for a type that is not known here."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from partwise.sql.text import plain
from partwise.sql.types.decimals import Decimals, added, as_decimal, divided, multiplied, remainder, wider
from partwise.sql.types.functions import element, inside, of_function, rounded, whole
from partwise.sql.types.names import BY_WIDTH, decimal, decimal_of, is_integer, normal

#: The decimals that hold all values of these types.
_AS_DECIMAL: dict[str, Decimals] = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (20, 0)}

Columns = Mapping[str, str | None]


def is_float(kind: str | None) -> bool:
    return kind in ("float", "double")


def is_number(kind: str | None) -> bool:
    return is_integer(kind) or is_float(kind) or decimal_of(kind) is not None


def sum_type(kind: str | None) -> str | None:
    """The type of SUM over a column of this type."""
    if is_integer(kind):
        return "bigint"
    if is_float(kind):
        return "double"
    if (found := decimal_of(kind)) is not None:
        return decimal((min(38, found[0] + 10), found[1]))
    return None


def average_type(kind: str | None) -> str | None:
    if (found := decimal_of(kind)) is not None:
        return decimal((min(38, found[0] + 4), min(38, found[1] + 4)))
    return "double" if is_number(kind) else None


def type_of(tree: exp.Expr, columns: Columns | None) -> str | None:
    """The type of an expression where it is certain: what Spark says of the same text, or None."""
    if isinstance(tree, exp.Paren):
        return type_of(tree.this, columns)
    if isinstance(tree, exp.Neg | exp.Abs | exp.Negative):
        kind = type_of(tree.this, columns)
        return kind if is_number(kind) else None  # of text Spark makes a number
    if isinstance(tree, exp.Column):
        return _column(tree, columns)
    if isinstance(tree, exp.Dot):
        return normal(inside(type_of(tree.this, columns), [tree.name]))
    if isinstance(tree, exp.Bracket):
        return normal(element(type_of(tree.this, columns)))
    if isinstance(tree, exp.Cast):
        return normal(tree.to.sql("spark"))
    if isinstance(tree, exp.Literal):
        return "string" if tree.is_string else _number(tree.this)
    if isinstance(tree, exp.Boolean | exp.Predicate | exp.Not | exp.Connector):
        return "boolean"
    if isinstance(tree, exp.IntDiv):
        return "bigint" if all(_exact(type_of(side, columns)) for side in (tree.this, tree.expression)) else None
    if isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Mod | exp.Div):
        return _arithmetic(tree, columns)
    if isinstance(tree, exp.Coalesce | exp.Greatest | exp.Least):
        return _common([type_of(arg, columns) for arg in (tree.this, *tree.expressions) if not _is_null(arg)])
    if isinstance(tree, exp.Case | exp.If):
        return _common([type_of(value, columns) for value in _branches(tree) if not _is_null(value)])
    if isinstance(tree, exp.Round | exp.Floor | exp.Ceil):
        return _rounded(tree, columns)
    if isinstance(tree, exp.AggFunc | exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.Nullif):
        return _aggregate(tree, columns)
    return of_function(tree)


def _column(tree: exp.Column, columns: Columns | None) -> str | None:
    """Of `x`, `m.x`, and of fields: `info.a`, `m.info.a`. Whether m is a table or a column, only the names tell."""
    names = {plain(name): kind for name, kind in (columns or {}).items()}
    parts = [plain(part.name) for part in tree.parts]
    if len(parts) == 1 or (len(parts) == 2 and parts[0] not in names):
        return normal(names.get(parts[-1]))
    kinds = set()
    for at, name in enumerate(parts[:2]):  # the column stands first, or behind its table
        if name in names:
            path = parts[at + 1 :]
            kinds.add(normal(inside(names[name], path) if path else names[name]))
    return kinds.pop() if len(kinds) == 1 else None


def _rounded(tree: exp.Expr, columns: Columns | None) -> str | None:
    kind = type_of(tree.this, columns)
    found = decimal_of(kind)
    if isinstance(tree, exp.Round):
        return decimal(rounded(found, tree)) if found is not None else kind if is_number(kind) else None
    if tree.args.get("decimals") is not None:
        return None
    return decimal(whole(found)) if found is not None else "bigint" if is_number(kind) else None


def _is_null(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Null)


def _exact(kind: str | None) -> bool:
    return is_integer(kind) or decimal_of(kind) is not None


def _number(text: str) -> str | None:
    if text.isdigit():
        value = int(text)
        return "int" if value < 2**31 else "bigint" if value < 2**63 else decimal(as_decimal(text))
    return "double" if "e" in text.lower() else decimal(as_decimal(text))


def _arithmetic(tree: exp.Binary, columns: Columns | None) -> str | None:
    sides = (tree.this, tree.expression)
    kinds = [type_of(side, columns) for side in sides]
    if not all(is_number(kind) for kind in kinds):
        return None
    is_division = isinstance(tree, exp.Div)
    if any(is_float(kind) for kind in kinds):
        return "float" if kinds == ["float", "float"] and not is_division else "double"
    if all(is_integer(kind) for kind in kinds):
        return "double" if is_division else max((kind for kind in kinds if kind), key=BY_WIDTH.index)
    # Beside a decimal a whole number is one, too: of as many digits as it has where it is written out.
    if any(
        isinstance(side, exp.Cast) and isinstance(side.this, exp.Literal) and is_integer(kind)
        for side, kind in zip(sides, kinds, strict=True)
    ):
        return None  # 12L and CAST(12 AS BIGINT) look alike here, but not to Spark
    left, right = (
        decimal_of(kind) or as_decimal(_digits(side)) or _AS_DECIMAL[kind or ""]
        for side, kind in zip(sides, kinds, strict=True)
    )
    if is_division:
        return decimal(divided(left, right))
    if isinstance(tree, exp.Mul):
        return decimal(multiplied(left, right))
    return decimal(remainder(left, right) if isinstance(tree, exp.Mod) else added(left, right))


def _digits(tree: exp.Expr) -> str:
    """Of a literal, with or without a sign."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    tree = tree.this if isinstance(tree, exp.Neg) else tree
    return tree.this if isinstance(tree, exp.Literal) and not tree.is_string else ""


def _common(kinds: list[str | None]) -> str | None:
    """Of values that stand for each other: branches of CASE, arguments of COALESCE."""
    known = [kind for kind in kinds if kind is not None]
    if not known or len(known) < len(kinds):
        return None
    if len(set(known)) == 1:
        return known[0]
    if not all(is_number(kind) for kind in known):
        return None
    if any(is_float(kind) for kind in known):
        return "double"
    if all(is_integer(kind) for kind in known):
        return max(known, key=BY_WIDTH.index)
    return decimal(wider([decimal_of(kind) or _AS_DECIMAL[kind] for kind in known]))


def _branches(tree: exp.Case | exp.If) -> list[exp.Expr]:
    if isinstance(tree, exp.If):
        values = [tree.args.get("true"), tree.args.get("false")]
    else:
        values = [branch.args.get("true") for branch in tree.args.get("ifs", [])] + [tree.args.get("default")]
    return [value for value in values if value is not None]


def _aggregate(tree: exp.Expr, columns: Columns | None) -> str | None:
    if isinstance(tree, exp.Count | exp.CountIf | exp.ApproxDistinct):
        return "bigint"
    if isinstance(tree, exp.LogicalAnd | exp.LogicalOr):
        return "boolean"
    if isinstance(tree, exp.Stddev | exp.StddevPop | exp.StddevSamp | exp.Variance | exp.VariancePop | exp.Corr):
        return "double"
    if isinstance(tree, exp.CovarPop | exp.CovarSamp):
        return "double"
    inner = type_of(tree.this, columns) if isinstance(tree.this, exp.Expr) else None
    if isinstance(tree, exp.Sum):
        return sum_type(inner)
    if isinstance(tree, exp.Avg):
        return average_type(inner)
    passed = exp.Min | exp.Max | exp.First | exp.Last | exp.FirstValue | exp.LastValue | exp.ArgMax | exp.ArgMin
    return inner if isinstance(tree, passed | exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.Nullif) else None
