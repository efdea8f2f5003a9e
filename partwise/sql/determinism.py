"""What gives another value each time. A part must equal its recomputation, so views cannot use it.

What depends on the order of rows is only warned about: the rows may be such that it makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from partwise.sql.columns import place
from partwise.sql.parse import SqlProblem

if TYPE_CHECKING:
    from sqlglot import exp

    from partwise.sql.tokens import Token

_CLOCK = frozenset(
    [
        "current_timestamp",
        "current_date",
        "current_time",
        "localtimestamp",
        "now",
        "curdate",
        "unix_timestamp",
        "sysdate",
        "getdate",
    ]
)
_CHANCE = frozenset(["rand", "randn", "random", "uuid", "shuffle", "randstr", "uniform"])
_PLACE = frozenset(
    [
        "monotonically_increasing_id",
        "spark_partition_id",
        "input_file_name",
        "input_file_block_start",
        "input_file_block_length",
        "current_user",
        "session_user",
        "user",
        "current_database",
        "current_schema",
        "current_catalog",
        "version",
    ]
)
_WITHOUT_PARENTHESES = frozenset(
    ["current_timestamp", "current_date", "current_time", "localtimestamp", "current_user"]
)
#: With an argument these are ordinary functions of it.
_ONLY_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp"})

_CLOCK_HINT = "use the event time in the rows"
_CHANCE_HINT = "take something from the rows instead, for example xxhash64 of a key"


def not_repeatable(tokens: tuple[Token, ...]) -> Iterator[SqlProblem]:
    for at, token in enumerate(tokens):
        kind, name = token.token_type.name, token.text.lower()
        if kind in ("STRING", "IDENTIFIER", "HINT"):
            continue
        if kind == "TABLE_SAMPLE":
            yield _problem(token, "TABLESAMPLE picks other rows each time", "choose rows by a hash of a key in WHERE")
        before = tokens[at - 1].token_type.name if at else ""
        after = [t.token_type.name for t in tokens[at + 1 : at + 3]]
        if before in ("DOT", "ALIAS") or after[:1] == ["DOT"] or not _called(name, after):
            continue
        if name in _CLOCK:
            yield _problem(token, f"{name} depends on when the part is computed", _CLOCK_HINT)
        elif name in _CHANCE:
            yield _problem(token, f"{name} gives another value each time", _CHANCE_HINT)
        elif name in _PLACE:
            yield _problem(token, f"{name} depends on how and where the part is computed", _CHANCE_HINT)


def depends_on_order(tree: exp.Expr) -> Iterator[SqlProblem]:
    """LIMIT without ORDER BY, and FIRST, LAST and ANY_VALUE outside of ordered windows."""
    from sqlglot import exp

    for limit in tree.find_all(exp.Limit, exp.Fetch):
        query = limit.parent
        if query is not None and not query.args.get("order"):
            yield _warning(limit, "LIMIT without ORDER BY takes other rows each time", "add ORDER BY with a unique key")
    for call in tree.find_all(exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.AnyValue):
        if not _in_ordered_window(call):
            name = call.sql_name().upper()
            hint = "MIN and MAX always give the same value"
            yield _warning(call, f"{name} depends on the order of the rows, which may differ each time", hint)

    for call in tree.find_all(exp.ArrayAgg, exp.ArrayUniqueAgg, exp.GroupConcat, exp.Mode):
        if not _ordered(call):
            name, hint = _UNORDERED[type(call).__name__]
            yield _warning(call, f"{name} depends on the order of the rows, which may differ each time", hint)


_SORT = "SORT_ARRAY around it gives the same list each time"
#: What collects in the order of the rows, or takes the first of several, and how to say which.
_UNORDERED = {
    "ArrayAgg": ("COLLECT_LIST", _SORT),
    "ArrayUniqueAgg": ("COLLECT_SET", _SORT),
    "GroupConcat": ("LISTAGG", "WITHIN GROUP (ORDER BY ...) behind it gives the same text each time"),
    "Mode": ("MODE", "MODE(x, true) takes the lowest of those that are as frequent"),
}


def _ordered(call: exp.Expr) -> bool:
    """Whether an order is given, or makes no difference to what is made of the list."""
    from sqlglot import exp

    if call.find(exp.Order) is not None or isinstance(call.parent, exp.WithinGroup) or _in_ordered_window(call):
        return True
    if isinstance(call, exp.Mode) and call.args.get("deterministic") is not None:
        return True
    node: exp.Expr | None = call.parent
    while isinstance(node, exp.Func | exp.Filter | exp.Paren | exp.Distinct | exp.Window):
        name = str(node.this) if isinstance(node, exp.Anonymous) else getattr(node, "sql_name", lambda: "")()
        if name.lower() in _ORDERLESS:
            return True
        node = node.parent
    return False


def _in_ordered_window(call: exp.Expr) -> bool:
    """Whether OVER gives an order; a named window may."""
    from sqlglot import exp

    node = call.parent
    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        node = node.parent
    return isinstance(node, exp.Window) and (node.args.get("order") is not None or node.alias != "")


#: Around a list these make its order count no more.
_ORDERLESS = frozenset(["sort_array", "array_sort", "size", "cardinality", "array_size", "array_max", "array_min"])


def _warning(node: exp.Expr, message: str, hint: str) -> SqlProblem:
    start, end = place(node)
    return SqlProblem(start, "depends-on-order", message, hint, end=end, severity="warning")


def _called(name: str, after: list[str]) -> bool:
    if name in _ONLY_WITHOUT_ARGUMENTS:
        return after == ["L_PAREN", "R_PAREN"]
    return after[:1] == ["L_PAREN"] or name in _WITHOUT_PARENTHESES


def _problem(token: Token, what: str, hint: str) -> SqlProblem:
    message = f"{what}, but a part must equal its recomputation"
    return SqlProblem(token.start, "not-repeatable", message, hint, end=token.end + 1)
