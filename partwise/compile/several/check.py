"""What a query over several streams cannot have, each with its place and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from partwise.compile.model import QueryView
from partwise.compile.several.read import Several, Stream
from partwise.parts import duration_text
from partwise.sql.columns import ambiguous, outputs, place, unknown
from partwise.sql.functions import BY_ORDER, SORTING
from partwise.sql.parse import SqlProblem
from partwise.sql.text import Piece, plain

_OWN_VIEW = "do that in a view of its own and read that view"
_CLAUSES = {
    "with_": ("WITH", "write the query in FROM, in parentheses"),
    "laterals": ("LATERAL VIEW", _OWN_VIEW),
    "qualify": ("QUALIFY", _OWN_VIEW),
    "windows": ("WINDOW", _OWN_VIEW),
    "sort": ("SORT BY", "a view's rows have no order"),
    "cluster": ("CLUSTER BY", "a view's rows have no order"),
    "distribute": ("DISTRIBUTE BY", "a view's rows have no order"),
    "offset": ("OFFSET", "a view's rows have no order"),
}
#: Which of several rows of equal order they show is not the same each time.
_BY_TIES = ("max_by", "min_by", "argmax", "argmin", "arg_max", "arg_min")


def problems_of(query: Several, view: QueryView) -> list[SqlProblem]:
    if query.tree.args.get("with_"):
        hint = _CLAUSES["with_"][1]
        return [SqlProblem(_word(query, "WITH", 0), "unsupported-clause", "WITH is not supported here", hint)]
    return [*_lengths(query, view), *_selects(query), *_subqueries(query), *_calls(query), *_columns(query, view)]


def _lengths(query: Several, view: QueryView) -> Iterator[SqlProblem]:
    for stream in query.streams:
        at, window, of = stream.bracket[0], stream.window, stream.table
        if window.slide is not None and window.slide != view.part:
            what = (
                f"the slide ({duration_text(window.slide)}) must be the view's part length ({duration_text(view.part)})"
            )
            yield SqlProblem(at, "bad-window", what, f"write part: {duration_text(window.slide)}")
        for name, length in (("window", window.length), ("view's part length", view.part)):
            if of.part is None or length % of.part:
                parts = duration_text(of.part) if of.part else "none"
                what = (
                    f"the {name} ({duration_text(length)}) must be a whole multiple of the parts of {of.name} ({parts})"
                )
                yield SqlProblem(at, "bad-window", what, "change the window, or the part lengths")


def _selects(query: Several) -> Iterator[SqlProblem]:
    starts = {stream.start for stream in query.streams}
    for select in query.tree.find_all(exp.Select):
        at = place(select)[0]
        for key, (word, hint) in _CLAUSES.items():
            if select.args.get(key):
                yield SqlProblem(_word(query, word, at), "unsupported-clause", f"{word} is not supported here", hint)
        first = select.args.get("from_")
        only_dimensions = _is_inside_condition(select) and not _has_stream(select, starts)
        if (first is None or not _has_stream(first.this, starts)) and not only_dimensions:
            what = "the first table in FROM must be a stream with a window: rows without a time are in no window"
            yield SqlProblem(at if first is None else place(first.this)[0], "bad-from", what, "begin with the stream")
        for join in select.args.get("joins") or ():
            yield from _join(query, join)
        if (limit := select.args.get("limit")) is not None:
            where = _word(query, "LIMIT", at)
            what = "LIMIT is not supported inside a query" if select.args.get("order") else "LIMIT without ORDER BY"
            yield SqlProblem(
                where, "unsupported-clause", what, "the largest groups: ORDER BY n DESC LIMIT 10 at the end"
            )
        elif (order := select.args.get("order")) is not None and limit is None:
            what = "ORDER BY is not supported: a view's rows have no order"
            yield SqlProblem(
                place(order)[0], "unsupported-clause", what, "the largest groups: ORDER BY n DESC LIMIT 10"
            )
        for item in select.expressions:
            if item.is_star and not _is_inside_condition(select):
                yield SqlProblem(_star(query, at), "select-star", "SELECT * is not supported", "name the columns")
    for operation in query.tree.find_all(exp.SetOperation):
        if operation.args.get("order") or operation.args.get("limit"):
            what = "ORDER BY and LIMIT are not supported behind a set operation"
            yield SqlProblem(
                _word(query, "ORDER BY", 0), "unsupported-clause", what, "group first, in a view of its own"
            )
    for window in query.tree.find_all(exp.Window):
        yield SqlProblem(
            place(window)[0], "unsupported-expression", "window functions (OVER) are not supported here", _OWN_VIEW
        )


def _join(query: Several, join: exp.Join) -> Iterator[SqlProblem]:
    at = place(join.this)[0]
    side = (join.side or "").upper()
    if side in ("RIGHT", "FULL"):
        what = f"{side} JOIN is not supported"
        yield SqlProblem(at, "bad-from", what, "use LEFT JOIN, with the stream whose rows are kept first")
    if (join.method or "").upper() not in ("", "NATURAL") or isinstance(join.this, exp.Lateral):
        yield SqlProblem(at, "bad-from", "this kind of join is not supported", "use JOIN or LEFT JOIN with ON")
    if (join.method or "").upper() == "NATURAL":
        yield SqlProblem(at, "bad-from", "NATURAL JOIN is not supported: every table has the column part", "write ON")
    if (on := join.args.get("on")) is not None and on.find(exp.Query):
        yield SqlProblem(
            place(on)[0], "unsupported-expression", "subqueries are not allowed in a condition of a JOIN", _OWN_VIEW
        )


def _subqueries(query: Several) -> Iterator[SqlProblem]:
    """Only as conditions that AND connects: [NOT] EXISTS (...) and x IN (...)."""
    for node in query.tree.find_all(exp.In):
        if node.args.get("query") is not None and isinstance(node.parent, exp.Not):
            what = "NOT IN is empty as soon as one value is NULL"
            yield SqlProblem(place(node)[0], "not-in", what, "write NOT EXISTS (SELECT 1 FROM ... WHERE ... = ...)")
    for inner in query.tree.find_all(exp.Query):
        if inner is query.tree or _is_relation(inner) or _is_condition(inner):
            continue
        what = "a subquery can only stand in FROM, or in WHERE as EXISTS, NOT EXISTS or IN"
        yield SqlProblem(place(inner)[0], "unsupported-expression", what, _OWN_VIEW)


def _is_relation(inner: exp.Query) -> bool:
    parent = inner.parent
    while isinstance(parent, exp.Subquery):
        inner, parent = parent, parent.parent
    return isinstance(parent, exp.From | exp.Join | exp.SetOperation) or (parent is None)


def _is_condition(inner: exp.Query) -> bool:
    node = inner.parent
    while isinstance(node, exp.Subquery):
        node = node.parent
    if not isinstance(node, exp.Exists | exp.In):
        return False
    node = node.parent
    while isinstance(node, exp.And | exp.Not | exp.Paren):
        node = node.parent
    return isinstance(node, exp.Where)


def _is_inside_condition(select: exp.Select) -> bool:
    return select.find_ancestor(exp.Exists, exp.In) is not None


def _has_stream(node: exp.Expr, starts: Iterable[int]) -> bool:
    known = set(starts)
    return any(place(table)[0] in known for table in node.find_all(exp.Table))


def _calls(query: Several) -> Iterator[SqlProblem]:
    for call in query.tree.find_all(exp.Func):
        name = _name(call)
        if name in _BY_TIES:
            hint = "MAX(STRUCT(y, x)).x takes the greatest x among equal y"
            yield SqlProblem(
                place(call)[0], "unsupported-aggregate", f"{name.upper()} of joined rows may have ties", hint
            )
        elif name in BY_ORDER and _name(call.parent) not in SORTING:
            what = f"{name.upper()} depends on the order of the rows, and rows of several streams have none"
            yield SqlProblem(place(call)[0], "unsupported-aggregate", what, "MIN and MAX always give the same value")


def _name(call: exp.Expr | None) -> str:
    if isinstance(call, exp.Anonymous):
        return str(call.this).lower()
    return call.sql_name().lower() if isinstance(call, exp.Func) else ""


def _columns(query: Several, view: QueryView) -> Iterator[SqlProblem]:
    tables = {plain(s.table.name): s.table for s in query.streams}
    tables |= {plain(t.name): t for _, t in query.dimensions}

    def names(table: str) -> tuple[str, ...] | None:
        known = tables.get(table)
        return None if known is None or known.columns is None else tuple(known.columns)

    for p in (*unknown(query.tree, names), *ambiguous(query.tree, names)):
        yield SqlProblem(p.start, p.code, p.message, p.hint)
    if isinstance(query.tree, exp.Query) and any(item.is_star for item in query.tree.selects):
        return
    seen: set[str] = set()
    for output in outputs(query.tree, names) or ():
        if output.name is None:
            text = query.plain[output.start : output.end].strip()
            yield SqlProblem(output.start, "unnamed-column", f"'{text}' has no name", "give it one: ... AS name")
        elif plain(output.name) in seen:
            what = f"two columns are called {output.name}"
            yield SqlProblem(output.start, "duplicate-column", what, "give one of them another name with AS")
        elif plain(output.name) in ("part", "part_timestamp"):
            what = f"every table has a column {plain(output.name)} already"
            yield SqlProblem(output.start, "reserved-name", what, "give it another name with AS")
        elif view.partial and plain(output.name) == "partial":
            what = "partial: true adds a column called partial"
            yield SqlProblem(output.start, "reserved-name", what, "give it another name with AS")
        seen.add(plain(output.name or ""))


def column_names(query: Several) -> list[str]:
    """Of the result; every one has a name, by then."""
    found = outputs(query.tree, lambda _: None)
    return [output.name for output in found or () if output.name]


def _word(query: Several, word: str, after: int) -> int:
    tokens = Piece(query.plain).tokens
    return next((t.start for t in tokens if t.keyword == word and t.start >= after), after)


def _star(query: Several, after: int) -> int:
    return next((t.start for t in Piece(query.plain).tokens if t.text == "*" and t.start >= after), after)


def stream_names(streams: Iterable[Stream]) -> str:
    return ", ".join(dict.fromkeys(stream.table.name for stream in streams))
