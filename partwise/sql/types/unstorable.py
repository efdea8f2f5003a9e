"""What no table can hold: intervals, NULL without a type, and decimals that Spark does not have.

Silent where a type is not certain: a false error would stop a view that is right, and Spark finds what is missed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from partwise.sql.columns import place
from partwise.sql.parse import SqlProblem
from partwise.sql.references import PART_COLUMNS

if TYPE_CHECKING:
    from sqlglot import exp

#: Columns, lower case -> type as Spark writes it, or "instant", "interval" or "void" where that is what is known.
Types = Mapping[str, str | None]
_INSTANT = ("instant", "timestamp_ntz")
#: Types that not every Delta reader knows, and what to do about them; `partwise.storage.schema` refuses them as well.
_OTHERS = {
    "timestamp_ntz": "CAST it to TIMESTAMP (UTC)",
    "time": "CAST it to STRING",
    "variant": "take fields out of it, or store it as text with to_json",
    "collated string": "compare with LOWER(...) instead of a collation",
}
_VOIDS = frozenset(["assert_true", "raise_error"])
_INTERVALS = frozenset(["make_dt_interval", "make_ym_interval", "try_make_interval"])
_INSTANTS = frozenset(
    ["timestamp_seconds", "timestamp_millis", "timestamp_micros", "make_date", "make_timestamp_ltz", "try_to_timestamp",
     "try_to_date", "to_timestamp_ltz", "date_from_unix_date", "window_time"]
)  # fmt: skip
_NAMED = {
    **dict.fromkeys(_INTERVALS, "interval"), **dict.fromkeys(_VOIDS, "void"), **dict.fromkeys(_INSTANTS, "instant"),
    **dict.fromkeys(["to_timestamp_ntz", "make_timestamp_ntz", "try_make_timestamp_ntz"], "timestamp_ntz"),
    **dict.fromkeys(["parse_json", "try_parse_json", "to_variant_object"], "variant"),
    **dict.fromkeys(["make_time", "to_time", "try_to_time"], "time"),
}  # fmt: skip


def unstorable(tree: exp.Expr, tables: Mapping[str, Types]) -> Iterator[SqlProblem]:
    """Columns of the result that no table can hold. `tables` by lower-case name, with what is known of their columns."""
    try:
        columns, _ = _result(tree, tables)
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


def _result(tree: exp.Expr, tables: Mapping[str, Types]) -> tuple[list[tuple[str, exp.Expr, str | None]], bool]:
    """Name, expression and kind of the columns of a query, and whether these are all, in their order."""
    from sqlglot import exp

    for cte in tree.args["with_"].expressions if tree.args.get("with_") else ():
        tables = {**tables, cte.alias.lower(): _columns(cte.this, tables, cte.args.get("alias"))}
    if isinstance(tree, exp.Subquery):
        return _result(tree.this, tables)
    if isinstance(tree, exp.SetOperation):
        (left, all_left), (right, all_right) = _result(tree.this, tables), _result(tree.expression, tables)
        if not (all_left and all_right):
            return [], False
        # A branch that gives NULL has the type of the other one.
        both = zip(left, right, strict=False)
        return [(name, item, _common([one, _word(other)])) for (name, item, one), (_, _, other) in both], True
    if not isinstance(tree, exp.Select) or tree.args.get("operation_modifiers"):
        return [], False
    columns = _in_reach(tree, tables)
    found: list[tuple[str, exp.Expr, str | None]] = []
    whole = True
    for item in tree.expressions:
        if item.is_star:
            more = _star(item, tree, tables)
            found += [(name, item, kind) for name, kind in (more or {}).items()]
            whole = whole and more is not None
            continue
        value = item.this if isinstance(item, exp.Alias) else item
        found.append((item.alias_or_name, item, _kind(value, columns, tables)))
    return found, whole


def _star(item: exp.Expr, tree: exp.Select, tables: Mapping[str, Types]) -> Types | None:
    """The columns that `*` or `a.*` stands for, where it takes all of a query in FROM as they are."""
    from sqlglot import exp

    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star) or any(star.args.values()) or tree.args.get("laterals"):
        return None
    wanted = item.table.lower() if isinstance(item, exp.Column) else ""
    found: dict[str, str | None] = {}
    for source, types in _sources(tree, tables):
        join = source.parent if isinstance(source.parent, exp.Join) else None
        if (wanted and source.alias_or_name.lower() != wanted) or (join and join.kind in ("SEMI", "ANTI")):
            continue
        # The columns of a table are none of these, and their order is not known.
        merged = join is not None and (join.args.get("using") or join.method)
        if not types or merged or PART_COLUMNS & types.keys() or found.keys() & types.keys():
            return None
        found |= types
    return found or None


def _columns(query: exp.Expr, tables: Mapping[str, Types], alias: exp.Expr | None = None) -> Types:
    found, whole = _result(query, tables)
    names = [column.name for column in alias.args.get("columns") or ()] if alias is not None else []
    if names and not (whole and len(names) == len(found)):
        return {}
    return {(names[at] if names else name).lower(): kind for at, (name, _, kind) in enumerate(found)}


def _sources(tree: exp.Select, tables: Mapping[str, Types]) -> Iterator[tuple[exp.Expr, Types]]:
    """Everything in FROM, with what is known of its columns."""
    from sqlglot import exp

    first = tree.args.get("from_")
    sources = [first.this] if first is not None else []
    sources += [join.this for join in tree.args.get("joins") or []]
    for source in sources:
        alias = source.args.get("alias")
        if isinstance(source, exp.Subquery):
            types = _columns(source.this, tables, alias)
        elif isinstance(source, exp.Table) and not (alias is not None and alias.args.get("columns")):
            types = tables.get(source.name.lower(), {})
        else:
            types = {}
        yield source, types


def _in_reach(tree: exp.Select, tables: Mapping[str, Types]) -> Types:
    """Columns of everything in FROM; a name that two tables have with different types has none."""
    found: dict[str, str | None] = {}
    for _, types in _sources(tree, tables):
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
    return text if text in ("void", "variant", "time") else kind


def _common(kinds: list[str | None]) -> str | None:
    """Of values that stand for each other: NULL takes the type of the others."""
    if kinds and all(kind == "void" for kind in kinds):
        return "void"
    typed = {kind for kind in kinds if kind != "void"}
    return typed.pop() if len(typed) == 1 else None


def _kind(tree: exp.Expr | None, columns: Types, tables: Mapping[str, Types]) -> str | None:
    from sqlglot import exp

    from partwise.sql.types.known import type_of

    def of(item: exp.Expr | None) -> str | None:
        return _kind(item, columns, tables)

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
    if isinstance(tree, exp.Collate):
        return "collated string"
    if isinstance(tree, exp.Neg) and of(tree.this) == "void":
        return None  # it is a number
    if isinstance(tree, exp.Anonymous) and tree.name.lower() == "array_repeat" and tree.expressions:
        found = of(tree.expressions[0])
        return found if found in ("interval", "void") else None
    if isinstance(tree, exp.Subquery):
        inner, _ = _result(tree.this, tables)
        return inner[0][2] if len(inner) == 1 else None
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
    if isinstance(tree, exp.Sum | exp.Avg | exp.Abs | exp.SafeMultiply | exp.SafeDivide | exp.Quantile):
        return "interval" if of(tree.this) == "interval" else None  # of NULL it is a number
    listed = exp.ArrayAgg | exp.ArrayUniqueAgg | exp.ArraySort | exp.ArrayMax | exp.ArrayMin | exp.Explode
    if isinstance(tree, listed) or (isinstance(tree, exp.Bracket) and isinstance(tree.this, exp.Array)):
        found = of(tree.this)
        return found if found in ("interval", "void") else None
    if isinstance(tree, exp.Array | exp.Struct | exp.VarMap):
        return _nested(tree, of)
    if isinstance(
        tree,
        exp.StrToTime | exp.TsOrDsToDate | exp.TimestampTrunc | exp.DateTrunc | exp.TsOrDsAdd | exp.TimestampAdd | exp.LastDay
        | exp.NextDay | exp.AddMonths | exp.TimestampFromParts | exp.AtTimeZone,
    ):  # fmt: skip
        return "instant"
    return _word(type_of(tree, columns))


def _nested(tree: exp.Expr, of: Callable[[exp.Expr | None], str | None]) -> str | None:
    """An array without elements has no type, and a struct has that of each of its fields."""
    from sqlglot import exp

    if isinstance(tree, exp.Struct):
        values = [item.expression if isinstance(item, exp.PropertyEQ) else item for item in tree.expressions]
        values = [item.this if isinstance(item, exp.Alias) else item for item in values]
        kinds = [of(item) for item in values]
        return next((kind for kind in kinds if kind in ("interval", "void")), None)
    if isinstance(tree, exp.VarMap):
        kinds = [of(tree.args.get(key)) for key in ("keys", "values")]
        return next((kind for kind in kinds if kind in ("interval", "void")), None)
    kinds = [of(item) for item in tree.expressions]
    common = _common(kinds) if kinds else "void"
    return common if common in ("interval", "void") else None


def _arithmetic(tree: exp.Expr, left: str | None, right: str | None) -> str | None:
    from sqlglot import exp

    left, right = ("instant" if kind in _INSTANT else kind for kind in (left, right))
    if isinstance(tree, exp.Sub) and {left, right} == {"instant", "string"}:
        return "interval"  # Spark reads the text as a time
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
