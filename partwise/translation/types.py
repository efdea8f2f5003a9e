"""Spark's types, as far as sums and helpers need them. None stands for a type that is not known here."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from partwise.translation.text import plain

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_SYNONYMS = {
    "integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float", "bool": "boolean",
    "numeric": "decimal(10,0)", "dec": "decimal(10,0)", "decimal": "decimal(10,0)",
    "text": "string", "timestamp_ltz": "timestamp",
}  # fmt: skip
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\((\d+)(?:,(\d+))?\)")

Columns = Mapping[str, str | None]


def normal(text: str | None) -> str | None:
    if text is None:
        return None
    small = re.sub(r"\s+", "", text.lower())
    if match := _DECIMAL.fullmatch(small):
        return f"decimal({match[1]},{match[2] or 0})"
    return _SYNONYMS.get(small, text.strip().lower() if " " in text.strip() else small)


def decimal_of(kind: str | None) -> tuple[int, int] | None:
    match = _DECIMAL.fullmatch(kind or "")
    return (int(match[1]), int(match[2] or 0)) if match else None


def is_integer(kind: str | None) -> bool:
    return kind in _INTEGERS


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
        return f"decimal({min(38, found[0] + 10)},{found[1]})"
    return None


def average_type(kind: str | None) -> str | None:
    if (found := decimal_of(kind)) is not None:
        return f"decimal({min(38, found[0] + 4)},{min(38, found[1] + 4)})"
    return "double" if is_number(kind) else None


def type_of(tree: exp.Expression, columns: Columns | None) -> str | None:
    """The type of an expression where it is certain; decimal arithmetic is left to a CAST by the writer."""
    if isinstance(tree, exp.Paren | exp.Neg | exp.Abs):
        return type_of(tree.this, columns)
    if isinstance(tree, exp.Column):
        names = {plain(name): kind for name, kind in (columns or {}).items()}
        parts = [plain(part.name) for part in tree.parts]
        is_field = len(parts) > 2 or (len(parts) == 2 and parts[0] in names)
        return None if is_field else normal(names.get(parts[-1]))
    if isinstance(tree, exp.Cast):
        return normal(tree.to.sql("spark"))
    if isinstance(tree, exp.Literal):
        if tree.is_string:
            return "string"
        return "int" if tree.this.isdigit() and int(tree.this) < 2**31 else None
    if isinstance(tree, exp.Boolean | exp.Predicate | exp.Not | exp.Connector):
        return "boolean"
    if isinstance(tree, exp.Add | exp.Sub | exp.Mul):
        return _arithmetic([tree.this, tree.expression], columns)
    if isinstance(tree, exp.Div):
        kinds = [type_of(tree.this, columns), type_of(tree.expression, columns)]
        return "double" if all(is_integer(k) or is_float(k) for k in kinds) else None
    if isinstance(tree, exp.Coalesce | exp.Greatest | exp.Least):
        kinds = [type_of(arg, columns) for arg in (tree.this, *tree.expressions)]
        return kinds[0] if len(set(kinds)) == 1 else None
    if isinstance(tree, exp.Case | exp.If):
        return _branches(tree, columns)
    if isinstance(tree, exp.Length):
        return "int"
    return None


def _arithmetic(args: list[exp.Expression], columns: Columns | None) -> str | None:
    kinds = [type_of(arg, columns) for arg in args]
    if any(is_float(kind) for kind in kinds):
        literal = [isinstance(arg, exp.Literal) and not arg.is_string for arg in args]
        both_float = kinds == ["float", "float"]
        known = all(is_number(kind) or lit for kind, lit in zip(kinds, literal, strict=True))
        return ("float" if both_float else "double") if known else None
    if all(is_integer(kind) for kind in kinds):
        return max((kind for kind in kinds if kind), key=_INTEGERS.index)
    return None


def _branches(tree: exp.Case | exp.If, columns: Columns | None) -> str | None:
    if isinstance(tree, exp.If):
        values = [tree.args.get("true"), tree.args.get("false")]
    else:
        values = [branch.args.get("true") for branch in tree.args.get("ifs", [])] + [tree.args.get("default")]
    kinds = {type_of(value, columns) for value in values if value is not None and not isinstance(value, exp.Null)}
    return kinds.pop() if len(kinds) == 1 else None
