"""The largest groups: `... GROUP BY src ORDER BY n DESC LIMIT 10`, exact, ties by the keys ascending, NULL first.

The query without its end is translated as ever, by whatever strategy; the view itself then keeps the first rows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from partwise.compile.model import GeneratedView, InputTable, QueryView, Translation
from partwise.compile.several.read import without_windows
from partwise.sql.columns import outputs, place
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.references import analyse
from partwise.sql.text import Piece, plain, quoted

_FORM = "write ORDER BY n DESC LIMIT 10, with n a column of the result"


@dataclass(frozen=True, slots=True)
class Tail:
    """ORDER BY and LIMIT at the end of a query: where they begin, what they say."""

    start: int
    order: tuple[Piece, ...]
    limit: Piece


def tail_of(text: str) -> Tail | None:
    query = Piece.of_query(text)
    ends = {t.keyword: t for t in query.tokens if t.depth == 0 and t.keyword in ("ORDER BY", "LIMIT")}
    if set(ends) != {"ORDER BY", "LIMIT"} or ends["LIMIT"].start < ends["ORDER BY"].start:
        return None
    order, limit, end = ends["ORDER BY"], ends["LIMIT"], len(query.text)
    return Tail(order.start, tuple(query.cut(order.end, limit.start).split()), query.cut(limit.end, end))


Translate = Callable[[QueryView, Mapping[str, InputTable]], Translation]


def translate_top(view: QueryView, inputs: Mapping[str, InputTable], tail: Tail, translate: Translate) -> Translation:
    """`translate` is for the query without its end."""
    text = Piece.of_query(view.query).text
    head = text[: tail.start] + " " * (len(text) - tail.start)
    problems: list[SqlProblem] = []
    limit = tail.limit.text
    if not limit.isdigit() or int(limit) < 1:
        problems.append(
            SqlProblem(tail.limit.offset, "top-k", f"LIMIT takes a whole number, not {limit or 'nothing'}", _FORM)
        )
    if view.output == "pairs":
        problems.append(
            SqlProblem(tail.start, "top-k", f"output: {view.output} has no largest groups", "remove ORDER BY and LIMIT")
        )
    try:
        made = translate(replace(view, query=head), inputs)
    except TranslationError as error:
        raise TranslationError(*error.problems, *problems) from None
    tree = analyse(without_windows(head)).tree
    if not isinstance(tree, exp.Select) or tree.args.get("group") is None:
        what = "LIMIT shows the largest groups, and there is no GROUP BY"
        raise TranslationError(
            SqlProblem(tail.start, "top-k", what, "group the rows, and order by an aggregate"), *problems
        )
    found = outputs(tree, lambda _: None) or ()
    names = [o.name for o in found if o.name]
    if len(names) < len(found):
        at = next(o.start for o in found if not o.name)
        raise TranslationError(SqlProblem(at, "top-k", "every column needs a name here", "give it one: ... AS name"))
    order = [_ordered(piece, tree, names, problems) for piece in tail.order]
    keys = [_key(key, tree, names, problems) for key in tree.args["group"].expressions]
    if problems:
        raise TranslationError(*problems)
    ties = [f"{quoted(key)} ASC NULLS FIRST" for key in keys]
    shown = [quoted(name) for name in [*names, *(["partial"] if view.partial else [])]]

    def first(text: str) -> str:
        return _first(text, shown, [*order, *ties], limit)

    def firsts(views: tuple[GeneratedView, ...]) -> tuple[GeneratedView, ...]:
        return tuple(
            v
            if v.helper
            else replace(v, update=first(v.update), initialize=None if v.initialize is None else first(v.initialize))
            for v in views
        )

    variants, shared = (
        tuple(replace(variant, views=firsts(variant.views)) for variant in ways)
        for ways in (made.variants, made.shared)
    )
    return replace(made, views=firsts(made.views), variants=variants, shared=shared)


def _first(text: str, shown: list[str], order: list[str], limit: str) -> str:
    inside = "\n".join("  " + line for line in text.split("\n"))
    place_ = f"ROW_NUMBER() OVER (ORDER BY {', '.join(order)}) AS __place"
    names = ", ".join(shown)
    return f"SELECT {names}\nFROM (SELECT {names}, {place_} FROM (\n{inside}\n))\nWHERE __place <= {limit}"


def _ordered(piece: Piece, tree: exp.Select, names: list[str], problems: list[SqlProblem]) -> str:
    """A column of the result, with its direction. NULL is the least value."""
    words, end = [t.upper for t in piece.tokens], len(piece.tokens)
    for nulls in (["NULLS", "LAST"], ["NULLS", "FIRST"]):
        end -= 2 if words[:end][-2:] == nulls else 0
    down = words[end - 1 : end] == ["DESC"]
    end -= words[end - 1 : end][0] in ("ASC", "DESC") if end else 0
    last = piece.tokens[end - 1].end if end else piece.offset
    body = piece.cut(piece.offset, last)
    name = _named(body.text, tree, names)
    if name is None:
        problems.append(SqlProblem(piece.offset, "top-k", f"'{body.text}' is not a column of the result", _FORM))
        return ""
    nulls_first = "FIRST" in words[end:] if "NULLS" in words[end:] else not down
    return f"{quoted(name)} {'DESC' if down else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"


def _key(key: exp.Expr, tree: exp.Select, names: list[str], problems: list[SqlProblem]) -> str:
    name = _named(key.sql("spark"), tree, names)
    if name is None:
        what = f"groups with equal values are ordered by their keys, but {key.sql('spark')} is not selected"
        problems.append(SqlProblem(place(key)[0], "top-k", what, "select all columns of GROUP BY"))
    return name or ""


def _named(text: str, tree: exp.Select, names: list[str]) -> str | None:
    """The result's column that is meant: by name, by number, or as it is written in SELECT."""
    if text.isdigit() and 0 < int(text) <= len(names):
        return names[int(text) - 1]
    wanted = plain(text)
    for item, name in zip(tree.expressions, names, strict=False):
        body = item.this if isinstance(item, exp.Alias) else item
        written = plain(body.sql("spark"))
        # `m.src` and `src` are the same column, `m.src` and `a.src` are not.
        unqualified = isinstance(body, exp.Column) and "." not in min(written, wanted, key=len)
        same = unqualified and written.rpartition(".")[2] == wanted.rpartition(".")[2]
        if wanted in (plain(name), written) or same:
            return name
    return None
