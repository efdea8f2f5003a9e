"""`output: pairs`: each joined row once, in the part in which it came about.

Part j joins the new rows of each stream with the windows of the others. A row that is new on two sides would be found
twice, so the streams before the new one give only rows of earlier parts:

    G[j] = a[j] x b[j-4..j]   UNION ALL   a[j-9..j] x b[j] where a is older than b

Nothing is ever taken back: rows that leave a window stay joined to what they met. Many parts at once are one join of
rows that lie no further apart than the windows reach, each pair in the later of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from partwise.compile.model import GeneratedView, QueryView
from partwise.compile.several.read import Several, Stream, tidy
from partwise.compile.single_pass import FIRST, LAST
from partwise.parts import duration_text
from partwise.sql.columns import place
from partwise.sql.parse import SqlProblem
from partwise.sql.text import Piece, quoted

_HINT = "output: snapshot shows the whole result in each part"


def pairs_problems(view: QueryView, query: Several, least: int = 2) -> list[SqlProblem]:
    """`least`: so many streams it must have."""
    found = []
    tree = query.tree
    if view.partial:
        at, what = query.streams[0].bracket[0], "pairs are shown from the first part on in any case"
        found.append(SqlProblem(at, "bad-window", what, "remove partial: true"))
    if isinstance(tree, exp.SetOperation):
        kind = tree.key.upper()
        code = "pairs-negation" if kind == "EXCEPT" else "pairs-query"
        what = f"{kind} takes rows back" if kind == "EXCEPT" else f"pairs are rows of one join, and {kind} is none"
        return [SqlProblem(_at(query, kind), code, what, _HINT)]
    starts = {s.start for s in query.streams}
    for join in tree.args.get("joins") or ():
        if place(join.this)[0] not in starts:  # what a dimension says of a row does not depend on time
            continue
        kind = "ANTI JOIN" if join.kind == "ANTI" else "LEFT JOIN" if join.side == "LEFT" else ""
        if join.kind == "SEMI":
            what = "SEMI JOIN shows a row once, whatever it meets: there are no pairs"
            found.append(SqlProblem(place(join.this)[0], "pairs-query", what, _HINT))
        elif kind:
            what = f"{kind} takes rows back: a row without a partner may get one later"
            found.append(SqlProblem(place(join.this)[0], "pairs-negation", what, _HINT))
    for node in tree.find_all(exp.Exists, exp.In):
        if isinstance(node, exp.Exists) or node.args.get("query") is not None:
            negated = isinstance(node.parent, exp.Not)
            word = ("NOT " if negated else "") + ("EXISTS" if isinstance(node, exp.Exists) else "IN")
            what = (
                f"{word} takes rows back" if negated else f"{word} is no join: a row has no part in which it came about"
            )
            found.append(SqlProblem(place(node)[0], "pairs-negation" if negated else "pairs-query", what, _HINT))
    if tree.args.get("group") or tree.args.get("distinct") or any(i.find(exp.AggFunc) for i in tree.expressions):
        word = "DISTINCT" if tree.args.get("distinct") else "GROUP BY"
        what = f"pairs are joined rows; {word} would need all of them"
        found.append(SqlProblem(_at(query, word), "pairs-query", what, "read the pairs in a view of its own"))
    if (inner := tree.find(exp.Subquery)) is not None:
        what = "a subquery in FROM is not supported for pairs"
        found.append(SqlProblem(place(inner)[0], "pairs-query", what, "join the streams themselves"))
    if len(query.streams) < least:
        found.append(SqlProblem(query.streams[0].start, "pairs-query", "pairs need two streams", "join another stream"))
    for stream in query.streams:
        if stream.rows is not None:
            found.append(SqlProblem(stream.bracket[0], "pairs-query", "ROWS takes rows back", "write [WINDOW ...]"))
        elif stream.window.length % view.part:
            what = (
                f"the window ({duration_text(stream.window.length)}) must be a whole multiple of the view's part length"
            )
            found.append(
                SqlProblem(
                    stream.bracket[0], "bad-window", f"{what} ({duration_text(view.part)})", "change one of them"
                )
            )
    return found


def pairs(view: QueryView, query: Several) -> list[GeneratedView]:
    streams = query.streams
    legs = [leg(view, query, at) for at in range(len(streams)) if possible(view, streams, at)]
    text = "\nUNION ALL\n".join(legs)
    tables = tuple(dict.fromkeys(stream.table.name for stream in streams))
    comment = "each joined row once, in the part in which it came about (grid)"
    return [
        GeneratedView(
            view.name, view.part, text, helper=False, comment=comment, optional=tables, single_pass=band(view, query)
        )
    ]  # fmt: skip


def possible(view: QueryView, streams: tuple[Stream, ...], new: int) -> bool:
    """A stream whose window is one part has no earlier rows."""
    return all(stream.panes(view.part) > 1 for stream in streams[:new])


def leg(view: QueryView, query: Several, new: int) -> str:
    """The rows in which stream `new` is the first to have rows of part j; without GROUP BY and HAVING."""
    part, names = view.part, []
    for at, stream in enumerate(query.streams):
        reference = stream.reference(part, stream.ratio(part)) if at == new else stream.reference(part)
        names.append(stream.table.name + reference.text("j"))
    newest = query.streams[new]
    older = [f"{pane(s, part)} < {pane(newest, part)}" for s in query.streams[:new]]
    return with_condition(query, query.write(names, _ungrouped(query)), older)


def _ungrouped(query: Several) -> int | None:
    """Where the query ends without GROUP BY and HAVING."""
    tokens = Piece(query.plain).tokens
    return next((t.start for t in tokens if t.depth == 0 and t.keyword in ("GROUP BY", "HAVING")), None)


def band(view: QueryView, query: Several, more: Sequence[str] = ()) -> str:
    """All pairs of parts :first to :last, by one join of rows that are near enough."""
    text, latest = near(view, query)
    return with_items(text, [*more, f"{latest} AS __j"])


def near(view: QueryView, query: Several) -> tuple[str, str]:
    """That join without GROUP BY and HAVING, and the part in which each of its rows came about."""
    part, streams = view.part, query.streams
    names = [stream.table.name + stream.reference(part).text("j") for stream in streams]
    panes = [pane(stream, part) for stream in streams]
    latest = panes[0] if len(panes) == 1 else f"GREATEST({', '.join(panes)})"
    apart = [
        f"{panes[b]} - {panes[a]} < {streams[a].panes(part)}"
        for a in range(len(streams))
        for b in range(len(streams))
        if a != b
    ]
    wanted = f"{latest} BETWEEN {FIRST} AND {LAST}"
    return with_condition(query, query.write(names, _ungrouped(query)), [*apart, wanted]), latest


def pane(stream: Stream, part: int) -> str:
    """The part of the view in which a row of the stream came."""
    column, ratio = f"{quoted(stream.name)}.part", stream.ratio(part)
    return column if ratio == 1 else f"({column} - pmod({column}, {ratio})) DIV {ratio}"


def with_condition(query: Several, text: str, conditions: list[str]) -> str:
    """The query (one SELECT without GROUP BY) with more conditions in its WHERE."""
    if not conditions:
        return text
    where = query.tree.args.get("where")
    more = " AND ".join(conditions)
    if where is None:
        return f"{text}\nWHERE {more}"
    head, tail = split_at(text, "WHERE")
    return tidy(f"{head}\nWHERE ({tail})\n  AND {more}")


def with_items(text: str, items: list[str]) -> str:
    head, tail = split_at(text, "FROM")
    return tidy(f"{head}, {', '.join(items)}\nFROM {tail}")


def split_at(text: str, word: str) -> tuple[str, str]:
    """Before and behind the first such word outside of parentheses."""
    tokens = Piece(text).tokens
    found = next(
        token
        for before, token in zip((None, *tokens), tokens, strict=False)
        # `x IS DISTINCT FROM y` is a comparison.
        if token.depth == 0 and token.keyword == word and not (before and before.keyword.endswith("DISTINCT"))
    )
    return text[: found.start].rstrip(), text[found.end :].strip()


def _at(query: Several, word: str) -> int:
    return next((t.start for t in Piece(query.plain).tokens if t.keyword == word), 0)
