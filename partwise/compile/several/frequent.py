"""`SELECT src, FREQUENT(40) FROM requests [WINDOW 1 day] GROUP BY src`: frequent groups, from few rows per pane.

Each pane keeps its 40 largest groups and, as `bound`, the count of the 41st: a group that it does not keep has no more
rows than that. Over a window, a group that panes keep with n rows in all has at least n rows, and at most n + the bounds
of the panes that do not keep it. Shown are groups with more rows than all bounds together: no other group can have so
many. `certain` ones are among the 40 largest, whatever the others have.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import gcd

from sqlglot import exp

from partwise.compile.model import Choice, GeneratedView, InputTable, QueryView, Translation
from partwise.compile.several.check import problems_of
from partwise.compile.several.partial import with_partial
from partwise.compile.several.read import Several, read
from partwise.compile.window.plan import window
from partwise.parts import Bound, Reference
from partwise.sql.columns import place
from partwise.sql.expressions import changing
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import Piece, plain, quoted

_FORM = "write SELECT src, FREQUENT(40) FROM s [WINDOW 1 day] GROUP BY src"
_SHOWN = ("n", "n_at_most", "certain")


def is_frequent(text: str) -> bool:
    tokens = Piece.of_query(text).tokens
    return any(a.keyword == "FREQUENT" and b.text == "(" for a, b in pairwise(tokens))


def translate_frequent(view: QueryView, inputs: Mapping[str, InputTable]) -> Translation:
    query = read(view.query, inputs)
    keys, count = _items(query, view.partial)
    problems = [*problems_of(_counted(query), view), *changing(query.plain)]
    if problems:
        raise TranslationError(*problems)
    if view.strategy not in (None, "merge"):
        at, what = query.streams[0].bracket[0], f"strategy {view.strategy} is not possible: FREQUENT is kept by panes"
        raise TranslationError(SqlProblem(at, "bad-strategy", what, "remove it"))
    why = f"{count} groups and a bound of each pane"
    types = (("n", "bigint"), ("n_at_most", "bigint"), ("certain", "boolean"))
    views = _views(view, query, keys, count)
    if view.partial:
        views = tuple(with_partial(view, query, views, [*keys, *_SHOWN]))
    return Translation(views, Choice("merge", why), types=types)


def _items(query: Several, partial: bool) -> tuple[list[str], int]:
    """The keys, by the names that they have in the result, and how many groups a pane keeps."""
    if len(query.streams) != 1 or query.streams[0].rows is not None:
        raise TranslationError(SqlProblem(query.streams[0].start, "top-k", "FREQUENT is for one window", _FORM))
    tokens = Piece(query.plain).tokens
    at = next(n for n, t in enumerate(tokens) if t.keyword == "FREQUENT")
    call = tokens[at]
    inside = tokens[at + 2].text if at + 3 < len(tokens) and tokens[at + 3].text == ")" else ""
    if call.depth or not inside.isdigit() or int(inside) < 1:
        raise TranslationError(SqlProblem(call.start, "top-k", "FREQUENT takes how many groups a pane keeps", _FORM))
    tree = query.tree
    clauses = ("having", "order", "limit", "distinct")
    if not isinstance(tree, exp.Select) or not tree.args.get("group") or any(tree.args.get(c) for c in clauses):
        what = "FREQUENT stands in a query with GROUP BY, without HAVING, ORDER BY, LIMIT, DISTINCT and set operations"
        raise TranslationError(SqlProblem(call.start, "top-k", what, _FORM))
    keys = [item for item in tree.expressions if not _is_call(item)]
    grouped = tree.args["group"].expressions
    wrong = [g for g in grouped if not any(_is_grouped_by(key, g, tree.expressions) for key in keys)]
    if len(keys) + 1 != len(tree.expressions) or len(grouped) != len(keys) or wrong:
        where = place(wrong[0])[0] if wrong else call.start
        raise TranslationError(
            SqlProblem(where, "top-k", "beside FREQUENT stand the columns of GROUP BY, all of them", _FORM)
        )
    if unnamed := [key for key in keys if not key.alias_or_name]:
        at, what = place(unnamed[0])[0], f"'{unnamed[0].sql('spark')}' has no name"
        raise TranslationError(SqlProblem(at, "unnamed-column", what, "give it one: ... AS name"))
    names = [plain(key.alias_or_name) for key in keys]
    added = (*_SHOWN, *(["partial"] if partial else []))
    if taken := [key for key, name in zip(keys, names, strict=True) if name in added]:
        what = f"FREQUENT adds columns called {', '.join(added)}"
        raise TranslationError(SqlProblem(place(taken[0])[0], "duplicate-column", what, "give it another name with AS"))
    return names, int(inside)


def _is_call(item: exp.Expr) -> bool:
    return isinstance(item, exp.Anonymous) and item.name.upper() == "FREQUENT"


def _is_grouped_by(key: exp.Expr, group: exp.Expr, items: list[exp.Expr]) -> bool:
    """By its number, its name, or as it is written; `m.src` and `src` are the same."""
    if isinstance(group, exp.Literal):
        return group.sql() == str(items.index(key) + 1)
    body = key.this if isinstance(key, exp.Alias) else key
    if isinstance(group, exp.Column) and not group.table and plain(group.name) == plain(key.alias_or_name):
        return True
    if isinstance(group, exp.Column) and isinstance(body, exp.Column) and not (group.table and body.table):
        return plain(group.name) == plain(body.name)
    return plain(group.sql("spark")) == plain(body.sql("spark"))


def _counted(query: Several) -> Several:
    """The same query with COUNT(*) in place of FREQUENT, for checking."""
    tokens = Piece(query.plain).tokens
    at = next(n for n, t in enumerate(tokens) if t.keyword == "FREQUENT")
    start, end = tokens[at].start, tokens[at + 3].end
    text = query.plain[:start] + "COUNT(*) AS n".ljust(end - start) + query.plain[end:]
    from partwise.sql.references import analyse

    tree = analyse(text).tree
    assert tree is not None
    moved = len(text) - len(query.plain)
    streams = tuple(
        s if s.start < start else type(s)(s.table, s.alias, s.start + moved, s.end + moved, s.bracket, s.window, s.rows)
        for s in query.streams
    )
    return Several(text, text, tree, streams, query.dimensions)


def _views(view: QueryView, query: Several, names: list[str], count: int) -> tuple[GeneratedView, ...]:
    stream, helper = query.streams[0], f"{view.name}__top"
    pane = gcd(stream.window.length, view.part)
    panes, per_slide, ratio = stream.window.length // pane, view.part // pane, pane // (stream.table.part or pane)
    keys = ", ".join(map(quoted, names))
    source = stream.table.name + Reference(Bound(ratio), Bound(ratio, ratio - 1)).text("j")
    counts = _counted(query).write([source])
    by_size = ", ".join(["n DESC", *(f"{quoted(k)} ASC NULLS FIRST" for k in names)])
    pane_text = "\n".join([
        f"SELECT {keys}, n, bound, CASE WHEN place = 1 THEN bound ELSE 0 END AS pane_bound",
        f"FROM (SELECT {keys}, n, place, COALESCE(MAX(CASE WHEN place = {count + 1} THEN n END) OVER (), 0) AS bound",
        f"FROM (SELECT {keys}, n, ROW_NUMBER() OVER (ORDER BY {by_size}) AS place FROM (",
        *("  " + line for line in counts.split("\n")),
        ")))",
        f"WHERE place <= {count}",
    ])  # fmt: skip
    size = "CASE WHEN may = 1 THEN n_at_most ELSE n END"
    text = "\n".join([
        f"SELECT {keys}, n, n_at_most, likely <= {count} AS certain",
        f"FROM (SELECT {keys}, n, n_at_most, bounds, may,",
        f"    SUM(may) OVER (ORDER BY {size} DESC, may DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS likely",
        f"  FROM (SELECT {keys}, n, n + bounds - own AS n_at_most, bounds",
        f"    FROM (SELECT {keys}, SUM(n) AS n, SUM(bound) AS own, SUM(SUM(pane_bound)) OVER () AS bounds",
        f"      FROM {helper}{window(panes, per_slide).text('j')}",
        f"      GROUP BY {keys}))",
        "  CROSS JOIN (SELECT 0 AS may UNION ALL SELECT 1 AS may) w)",
        "WHERE may = 0 AND n > bounds",
    ])  # fmt: skip
    comment = f"the {count} largest groups of a pane, and how many rows any other can have"
    return (
        GeneratedView(helper, pane, pane_text, comment=comment, reaches=window(panes, per_slide).lo),
        GeneratedView(view.name, view.part, text, helper=False, comment="groups that are frequent for sure (merge)"),
    )
