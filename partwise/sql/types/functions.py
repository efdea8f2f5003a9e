"""What functions of Spark give: the type of a call, from the types of its arguments.

Only functions that give the same type in every setting of Spark, or one that follows from the types given.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError

from partwise.sql.types.decimals import Decimals

#: By the name that Spark has, where sqlglot has no class of its own for it.
_NAMED = {
    "weekday": "int", "octet_length": "int", "cardinality": "int", "hash": "int", "find_in_set": "int", "crc32": "bigint",
    "xxhash64": "bigint", "bigint": "bigint", "smallint": "smallint", "tinyint": "tinyint", "hypot": "double", "e": "double",
    "isnull": "boolean", "isnotnull": "boolean",
}  # fmt: skip
_CALLS: dict[str, tuple[type[exp.Expr], ...]] = {
    "int": (
        exp.Length, exp.ArraySize, exp.BitLength, exp.StrPosition, exp.Ascii, exp.Levenshtein, exp.UnixDate, exp.Year,
        exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear, exp.Quarter, exp.Hour, exp.Minute,
        exp.Second, exp.RegexpCount, exp.BitwiseCount,
    ),
    "bigint": (
        exp.StrToUnix, exp.UnixSeconds, exp.UnixMillis, exp.UnixMicros, exp.ArrayPosition, exp.Factorial, exp.WidthBucket,
        exp.TimestampDiff,
    ),
    "double": (
        exp.Pow, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Cbrt, exp.Sign, exp.Sin, exp.Cos, exp.Tan, exp.Atan2, exp.Radians,
        exp.Degrees, exp.Pi, exp.Rint, exp.MonthsBetween,
    ),
    "boolean": (exp.IsNan, exp.StartsWith, exp.EndsWith, exp.Contains, exp.ArrayContains),
    "date": (exp.TsOrDsToDate,),
}  # fmt: skip
_CLASSES = {kind: name for name, kinds in _CALLS.items() for kind in kinds}


def of_function(tree: exp.Expr) -> str | None:
    """The type where it is the same whatever the arguments are."""
    if isinstance(tree, exp.Anonymous):
        return _NAMED.get(str(tree.this).lower())
    if isinstance(tree, exp.DateDiff):
        return "bigint" if tree.args.get("unit") else "int"
    if isinstance(tree, exp.Extract):
        return "decimal(8,6)" if tree.this.name.lower() in ("second", "seconds", "s", "sec", "secs") else "int"
    return _CLASSES.get(type(tree))


def rounded(given: Decimals, tree: exp.Round) -> Decimals | None:
    """ROUND(x, places) of a decimal; one digit more than before, since 9.9 becomes 10."""
    places = tree.args.get("decimals") or exp.Literal.number(0)
    minus = isinstance(places, exp.Neg)
    text = (places.this if minus else places).name
    if not text.isdigit():
        return None
    whole, wanted = given[0] - given[1] + 1, -int(text) if minus else int(text)
    if wanted < 0:
        return min(38, max(whole, 1 - wanted)), 0
    return min(38, whole + min(given[1], wanted)), min(given[1], wanted)


def whole(given: Decimals) -> Decimals:
    """FLOOR and CEIL of a decimal."""
    return given if given[1] == 0 else (min(38, given[0] - given[1] + 1), 0)


def inside(kind: str | None, path: list[str]) -> str | None:
    """The type of a field of a struct, or of the field of a field; None where it is not declared."""
    try:
        found = exp.DataType.build(kind, dialect="spark") if kind and "<" in kind else None
    except SqlglotError:
        return None
    for name in path:
        fields = found.expressions if found is not None and found.is_type("struct") else []
        kinds = [field.args.get("kind") for field in fields if field.name.lower() == name.lower()]
        found = kinds[0] if len(kinds) == 1 else None
    return None if found is None else found.sql("spark")


def element(kind: str | None) -> str | None:
    """The type of the elements of an array, of the values of a map."""
    try:
        found = exp.DataType.build(kind, dialect="spark") if kind and "<" in kind else None
    except SqlglotError:
        return None
    if found is None or not found.is_type("array", "map"):
        return None
    return str(found.expressions[-1].sql("spark"))
