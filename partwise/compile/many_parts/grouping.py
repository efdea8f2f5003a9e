"""Aggregates and windows: which queries answer once per part, and how the others keep parts apart."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from partwise.compile.many_parts.model import NotLiftable
from partwise.sql.functions import AGGREGATES, BY_ORDER, SORTING

_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


def is_whole(s: exp.Select) -> bool:
    """Whether the query aggregates the whole part into one row, which is there even if the part is empty."""
    group = s.args.get("group")
    if group is not None and group.args.get("all"):
        return all(_aggregates(item) for item in s.expressions)
    if group is not None:
        return all(_is_nothing(item) for item in group.expressions) and not group.args.get("rollup")
    having = s.args.get("having")
    clauses = [*s.expressions, *([s.args["order"]] if s.args.get("order") else [])]
    return having is not None or any(_aggregates(clause) for clause in clauses)


def check(s: exp.Select) -> None:
    """Refuse what would depend on the order of rows.

    A function of the user's may aggregate. Without GROUP BY Spark then refuses the lifted query; only with
    GROUP BY ALL would it run, and say nothing about empty parts.
    """
    group = s.args.get("group")
    if group is not None and any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets", "totals")):
        raise NotLiftable("GROUP BY ... WITH ROLLUP, CUBE or GROUPING SETS behind the columns is not supported")
    distinct = s.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise NotLiftable("DISTINCT ON is not supported")
    for call, name in _calls(s):
        if name in BY_ORDER and not _in_window(call) and not _sorted(call):
            raise NotLiftable(f"{name.upper()} depends on the order of the rows")
    if group is not None and group.args.get("all") and not is_whole(s) and not any(map(_plain, s.expressions)):
        raise NotLiftable("GROUP BY ALL has nothing but function calls, any of which may be an aggregate")


def has_sets(s: exp.Select) -> bool:
    """Whether there are ROLLUP, CUBE or GROUPING SETS of columns."""
    group = s.args.get("group")
    sets = group is not None and any(isinstance(e, exp.Rollup | exp.Cube | exp.GroupingSets) for e in group.expressions)
    return sets and not is_whole(s)


def beside_groups(s: exp.Select) -> Iterator[exp.Expr]:
    """Queries where Spark allows none that looks at the row: values beside GROUP BY that are neither grouped by nor
    aggregated, and whatever such a query is ordered by."""
    group = s.args.get("group")
    if group is None or group.args.get("all") or is_whole(s):
        return
    if not any(e.find(exp.Query) for e in group.expressions):
        for at, item in enumerate(s.expressions, 1):
            if not any(e.name.lower() in (str(at), item.alias.lower() or None) for e in group.expressions):
                yield from (q for q in _queries(item) if _is_value(q) and not _is_aggregated(q, item))
    if order := s.args.get("order"):
        yield from _queries(order)


def _queries(node: exp.Expr) -> Iterator[exp.Expr]:
    return (n for n in node.walk(prune=lambda n: isinstance(n, exp.Query)) if isinstance(n, exp.Query))


def _is_value(query: exp.Expr) -> bool:
    return not isinstance(query.parent, exp.In | exp.Exists | exp.Any | exp.All)


def _is_aggregated(query: exp.Expr, item: exp.Expr) -> bool:
    node = query.parent
    while node is not None and node is not item:
        if isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and _name(node) in AGGREGATES):
            return not _in_window(node)
        node = node.parent
    return False


def by_part(s: exp.Select, index: exp.Expr) -> None:
    """The part is the first of the grouping columns, which leaves grouping_id() as it is."""
    group = s.args.get("group")
    if group is not None and not group.args.get("all") and not is_whole(s):
        group.set("expressions", [index.copy(), *group.expressions])


def windows_by_part(s: exp.Select, index: exp.Expr) -> None:
    """OVER, named windows and QUALIFY look at the rows of one part."""
    for window in _own(s, exp.Window):
        if not window.args.get("alias"):  # else it goes on from a named one
            window.set("partition_by", [index.copy(), *(window.args.get("partition_by") or [])])


def _is_nothing(item: exp.Expr) -> bool:
    if isinstance(item, exp.GroupingSets):
        return all(_is_nothing(inner) for inner in item.expressions)
    return isinstance(item, exp.Tuple) and not item.expressions


def _own(s: exp.Expr, *kinds: type[exp.Expr]) -> Iterator[exp.Expr]:
    """Nodes of this query, not of queries inside it."""
    outside = {"from_", "joins", "with_"}
    for key, value in s.args.items():
        if key in outside:
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, exp.Expr):
                yield from (n for n in _walk(node) if isinstance(n, kinds))


def _walk(node: exp.Expr) -> Iterator[exp.Expr]:
    return (n for n in node.walk(prune=lambda n: isinstance(n, exp.Query)) if not isinstance(n, exp.Query))


def _calls(s: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    for node in _own(s, exp.Anonymous, exp.AggFunc, exp.Any):
        yield node, _name(node)


def _name(call: exp.Expr) -> str:
    if isinstance(call, exp.Anonymous):
        return str(call.this).lower()
    if isinstance(call, exp.Any):
        # `x > ANY (subquery)` compares; any(x) aggregates.
        return "any" if call.find(exp.Query) is None else "array"
    return "listagg" if isinstance(call, exp.GroupConcat) else call.key


def _aggregates(clause: exp.Expr) -> bool:
    if isinstance(clause, exp.Query):
        return False
    found = (n for n in _walk(clause) if isinstance(n, exp.Anonymous | exp.AggFunc | exp.Any))
    return any((isinstance(n, exp.AggFunc) or _name(n) in AGGREGATES) and not _in_window(n) for n in found)


def _plain(item: exp.Expr) -> bool:
    return not any(isinstance(n, exp.Anonymous | exp.AggFunc | exp.Any) for n in _walk(item))


def _in_window(call: exp.Expr) -> bool:
    inside: exp.Expr = call
    node = call.parent
    while isinstance(node, _AROUND) and node.this is inside:
        inside, node = node, node.parent
    return isinstance(node, exp.Window) and node.this is inside


def _sorted(call: exp.Expr) -> bool:
    around = call.parent
    return isinstance(around, exp.Anonymous) and str(around.this).lower() in SORTING
