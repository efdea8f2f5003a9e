"""What no table can hold: intervals, NULL without a type, and decimals that Spark does not have.

Silent where a type is not certain: a false error would stop a view that is right, and Spark finds what is missed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from partwise.sql.columns import place
from partwise.sql.parse import SqlProblem
from partwise.sql.types.names import DECIMALS, MOST_DIGITS, exists

if TYPE_CHECKING:
    from sqlglot import exp

    from partwise.sql.tokens import Token

#: Columns, lower case -> type as Spark writes it, or "instant", "interval" or "void" where that is what is known.
Types = Mapping[str, str | None]
_INSTANT = ("instant", "timestamp_ntz")
#: Types that not every Delta reader knows, and what to do about them; `partwise.storage.schema` refuses them as well.
_OTHERS = {
    "timestamp_ntz": "CAST it to TIMESTAMP (UTC)",
    "time": "CAST it to STRING",
    "variant": "take fields out of it, or store it as text with to_json",
}
_INTERVALS = frozenset(["make_dt_interval", "make_ym_interval", "try_make_interval"])
_INSTANTS = frozenset(
    ["timestamp_seconds", "timestamp_millis", "timestamp_micros", "make_date", "make_timestamp_ltz", "try_to_timestamp",
     "try_to_date", "to_timestamp_ltz", "date_from_unix_date", "window_time"]
)  # fmt: skip
_NAMED = {
    **dict.fromkeys(_INTERVALS, "interval"), **dict.fromkeys(_INSTANTS, "instant"),
    **dict.fromkeys(["to_timestamp_ntz", "make_timestamp_ntz", "try_make_timestamp_ntz"], "timestamp_ntz"),
    **dict.fromkeys(["parse_json", "try_parse_json", "to_variant_object"], "variant"),
    **dict.fromkeys(["make_time", "to_time", "try_to_time"], "time"),
}  # fmt: skip
#: What may stand before the name of a type; before the name of a function stands something else.
_BEFORE_TYPE = frozenset(["ALIAS", "DCOLON", "LT", "COLON", "VAR"])


def bad_decimals(tokens: tuple[Token, ...]) -> Iterator[SqlProblem]:
    """`CAST(x AS decimal(39, 2))`: Spark has 38 digits, and no more of them behind the point than in all."""
    for at in range(1, len(tokens) - 3):
        name = tokens[at]
        if name.text.lower() not in DECIMALS or tokens[at - 1].token_type.name not in _BEFORE_TYPE:
            continue
        inside: list[str] = []
        for token in tokens[at + 1 :]:
            if token.token_type.name == "R_PAREN" or len(inside) > 3:
                break
            inside.append(token.text)
        if inside[:1] != ["("] or not all(text.isdigit() for text in inside[1::2]) or len(inside) not in (2, 4):
            continue
        digits = (int(inside[1]), int(inside[3]) if len(inside) == 4 else 0)
        if not exists(digits):
            message = f"there is no {name.text.lower()}({','.join(map(str, digits[: len(inside) // 2]))})"
            hint = f"a decimal has at most {MOST_DIGITS} digits, and not more of them behind the point than in all"
            yield SqlProblem(name.start, "bad-type", message, hint, end=name.end + 1)


def unstorable(tree: exp.Expr, tables: Mapping[str, Types]) -> Iterator[SqlProblem]:
    """Columns of the result that no table can hold. `tables` by lower-case name, with what is known of their columns."""
    try:
        columns = _result(tree, tables)
    except RecursionError:
        return  # nested deeper than anybody writes by hand: Spark says at the first run what it thinks of it
    for name, item, kind in columns:
        start, end = place(item)
        column = f"the column {name}" if name else "a column of the result"
        if kind == "interval":
            hint = "store a number, for example timestampdiff(SECOND, a, b) or datediff(b, a)"
            yield SqlProblem(start, "bad-type", f"{column} is an interval, which Delta cannot store", hint, end=end)
        elif kind == "void":
            hint = f"say which: CAST(NULL AS string) AS {name or 'name'}"
            yield SqlProblem(start, "bad-type", f"{column} is NULL, which has no type", hint, end=end)
        elif kind in _OTHERS:
            message = f"{column} has the type {kind}, which not every Delta reader knows"
            yield SqlProblem(start, "bad-type", message, _OTHERS[kind], end=end)


def _result(tree: exp.Expr, tables: Mapping[str, Types]) -> list[tuple[str, exp.Expr, str | None]]:
    """Name, expression and kind of each column of a query; nothing where there are columns that are not known."""
    from sqlglot import exp

    for cte in tree.args["with_"].expressions if tree.args.get("with_") else ():
        tables = {**tables, cte.alias.lower(): _columns(cte.this, tables, cte.args.get("alias"))}
    if isinstance(tree, exp.Subquery):
        return _result(tree.this, tables)
    if isinstance(tree, exp.SetOperation):
        left, right = _result(tree.this, tables), _result(tree.expression, tables)
        # A branch that gives NULL has the type of the other one.
        both = zip(left, right, strict=False)
        return [(name, item, _common([one, _word(other)])) for (name, item, one), (_, _, other) in both]
    if not isinstance(tree, exp.Select) or tree.args.get("operation_modifiers"):
        return []
    columns = _in_reach(tree, tables)
    found: list[tuple[str, exp.Expr, str | None]] = []
    for item in tree.expressions:
        if item.is_star:
            return found  # what stands behind it cannot be counted
        value = item.this if isinstance(item, exp.Alias) else item
        found.append((item.alias_or_name, item, _kind(value, columns)))
    return found


def _columns(query: exp.Expr, tables: Mapping[str, Types], alias: exp.Expr | None = None) -> Types:
    found = _result(query, tables)
    names = [column.name for column in alias.args.get("columns") or ()] if alias is not None else []
    if names and len(names) != len(found):
        return {}
    return {(names[at] if names else name).lower(): kind for at, (name, _, kind) in enumerate(found)}


def _in_reach(tree: exp.Select, tables: Mapping[str, Types]) -> Types:
    """Columns of everything in FROM; a name that two tables have with different types has none."""
    from sqlglot import exp

    first = tree.args.get("from_")
    sources = [first.this] if first is not None else []
    sources += [join.this for join in tree.args.get("joins") or []]
    found: dict[str, str | None] = {}
    for source in sources:
        alias = source.args.get("alias")
        if isinstance(source, exp.Subquery):
            types = _columns(source.this, tables, alias)
        elif isinstance(source, exp.Table) and not (alias is not None and alias.args.get("columns")):
            types = tables.get(source.name.lower(), {})
        else:
            types = {}
        for name, kind in types.items():
            found[name] = kind if found.get(name, kind) == kind else None
    return found


def _word(kind: str | None) -> str | None:
    """A type as far as it matters here."""
    text = (kind or "").lower()
    if text in ("timestamp_ntz", "timestampntz"):
        return "timestamp_ntz"
    if text.startswith(("timestamp", "date")) or text == "instant":
        return "instant"
    if text.startswith("interval"):
        return "interval"
    return "void" if text == "void" else kind


def _common(kinds: list[str | None]) -> str | None:
    """Of values that stand for each other: NULL takes the type of the others."""
    if kinds and all(kind == "void" for kind in kinds):
        return "void"
    typed = {kind for kind in kinds if kind != "void"}
    return typed.pop() if len(typed) == 1 else None


def _kind(tree: exp.Expr | None, columns: Types) -> str | None:
    from sqlglot import exp

    from partwise.sql.types.known import type_of

    def of(item: exp.Expr | None) -> str | None:
        return _kind(item, columns)

    if tree is None or isinstance(tree, exp.Null):
        return "void"
    if isinstance(tree, exp.Interval | exp.MakeInterval):
        return "interval"
    if isinstance(tree, exp.Cast):
        # The dialect would write TIME as TIMESTAMP.
        is_time = tree.to.this == exp.DType.TIME
        return "interval" if "interval" in tree.to.sql().lower() else "time" if is_time else _word(tree.to.sql("spark"))
    if isinstance(tree, exp.Anonymous):
        return _NAMED.get(tree.name.lower()) or _word(type_of(tree, {}))
    if isinstance(tree, exp.ParseJSON):
        return "variant"
    if isinstance(tree, exp.Sub | exp.SafeSubtract | exp.Add | exp.SafeAdd | exp.Mul | exp.Div):
        return _arithmetic(tree, of(tree.this), of(tree.expression)) or _word(type_of(tree, columns))
    if isinstance(tree, exp.Coalesce | exp.Greatest | exp.Least):
        return _common([of(item) for item in (tree.this, *tree.expressions)])
    if isinstance(tree, exp.Case):
        return _common([*(of(branch.args.get("true")) for branch in tree.args["ifs"]), of(tree.args.get("default"))])
    if isinstance(tree, exp.If | exp.Nvl2):
        return _common([of(tree.args.get("true")), of(tree.args.get("false"))])
    if isinstance(
        tree,
        exp.Paren | exp.Neg | exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.Window | exp.Nullif | exp.Max | exp.Min
        | exp.First | exp.Last | exp.FirstValue | exp.LastValue | exp.AnyValue | exp.ArgMax | exp.ArgMin | exp.Lag
        | exp.Lead | exp.Mode | exp.Median,
    ):  # fmt: skip
        return of(tree.this)
    if isinstance(tree, exp.Sum | exp.Avg):
        return "interval" if of(tree.this) == "interval" else None  # of NULL it is a number
    if isinstance(tree, exp.Array | exp.Struct | exp.VarMap):
        return _nested(tree, columns)
    if isinstance(
        tree,
        exp.StrToTime | exp.TsOrDsToDate | exp.TimestampTrunc | exp.DateTrunc | exp.TsOrDsAdd | exp.TimestampAdd | exp.LastDay
        | exp.NextDay | exp.AddMonths | exp.TimestampFromParts | exp.AtTimeZone,
    ):  # fmt: skip
        return "instant"
    return _word(type_of(tree, columns))


def _nested(tree: exp.Expr, columns: Types) -> str | None:
    """An array without elements has no type, and a struct has that of each of its fields."""
    from sqlglot import exp

    if isinstance(tree, exp.Struct):
        values = [item.expression if isinstance(item, exp.PropertyEQ) else item for item in tree.expressions]
        values = [item.this if isinstance(item, exp.Alias) else item for item in values]
        kinds = [_kind(item, columns) for item in values]
        return next((kind for kind in kinds if kind in ("interval", "void")), None)
    if isinstance(tree, exp.VarMap):
        kinds = [_kind(tree.args.get(key), columns) for key in ("keys", "values")]
        return next((kind for kind in kinds if kind in ("interval", "void")), None)
    kinds = [_kind(item, columns) for item in tree.expressions]
    common = _common(kinds) if kinds else "void"
    return common if common in ("interval", "void") else None


def _arithmetic(tree: exp.Expr, left: str | None, right: str | None) -> str | None:
    from sqlglot import exp

    left, right = ("instant" if kind in _INSTANT else kind for kind in (left, right))
    kinds = (left, right)
    if isinstance(tree, exp.Mul | exp.Div):
        return "interval" if left == "interval" or (right == "interval" and isinstance(tree, exp.Mul)) else None
    if "instant" in kinds:
        if kinds == ("instant", "instant"):
            return "interval" if isinstance(tree, exp.Sub | exp.SafeSubtract) else None
        return "instant" if set(kinds) == {"instant", "interval"} or (left == "instant" and _whole(right)) else None
    return "interval" if kinds == ("interval", "interval") else None


def _whole(kind: str | None) -> bool:
    """`d - 1` is a date."""
    return kind in ("tinyint", "smallint", "int", "bigint")
