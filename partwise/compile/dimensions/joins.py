"""Joins of a query with certain dimensions: where each stands, and which table its condition is about.

FROM m [WINDOW 10 minutes] m JOIN rates r ON r.src = m.src
                             ^ start      ^ condition     ^ end      dimension r, joined to m
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partwise.compile.dimensions import Kind
from partwise.sql.columns import place
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.references import Analysis, FoundReference
from partwise.sql.text import Piece, Token, plain

if TYPE_CHECKING:
    from sqlglot import exp

_JOIN_WORDS = frozenset(["JOIN", "INNER", "LEFT", "OUTER", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI"])
_ENDS = frozenset(
    [
        *(_JOIN_WORDS - {"OUTER"}), "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "QUALIFY", "WINDOW", "LATERAL",
        "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "UNION", "EXCEPT", "INTERSECT", "MINUS", "PIVOT", "UNPIVOT", ",", ";",
    ]
)  # fmt: skip

#: The columns of a table by the place of its name in the text, None where they are not known.
ColumnsAt = Callable[[int], Collection[str] | None]


def refused(kind: Kind, table: FoundReference, what: str, hint: str) -> TranslationError:
    return TranslationError(SqlProblem(table.start, kind.code, f"{table.table} is {kind.what}: {what}", hint))


@dataclass(frozen=True)
class DimensionJoin:
    """`start`..`end` is the join, `condition` what stands between ON and `end`. `select` is the query that it is part of.

    `to` is the table with parts that the condition compares it with, perhaps through other dimensions joined to that.
    """

    table: FoundReference
    select: exp.Select
    join: exp.Join
    start: int
    condition: tuple[int, int]
    end: int
    to: FoundReference

    @property
    def alias(self) -> str:
        return plain(self.table.alias or self.table.table)


@dataclass(frozen=True)
class Named:
    """A table of one SELECT: how its columns are qualified, and where its name stands. `join` None: it is the first one."""

    qualifier: str
    table: FoundReference
    join: exp.Join | None


def named_in(select: exp.Select, found: Mapping[int, FoundReference]) -> list[Named]:
    """The tables that stand in FROM and JOIN themselves, not in queries there."""
    from sqlglot import exp

    first = select.args.get("from_")
    nodes = [(first.this, None)] if first is not None else []
    nodes += [(join.this, join) for join in select.args.get("joins") or ()]
    tables = [(node, join, found.get(place(node)[0])) for node, join in nodes if isinstance(node, exp.Table)]
    return [Named(plain(t.alias or t.table), t, join) for _, join, t in tables if t is not None]


def dimension_joins(
    text: str,
    analysis: Analysis,
    wanted: Mapping[str, Kind],
    parts: Collection[int],
    columns: ColumnsAt,
) -> list[DimensionJoin]:
    """Joins with the dimensions `wanted` (by name in lower case), in order; `parts` are the places of tables with parts.

    Raises TranslationError where it is not plain which rows of a dimension count for which rows."""
    from sqlglot import exp

    assert analysis.tree is not None
    references = {t.start: t for t in analysis.found.tables}
    asked = [t for t in analysis.found.tables if t.table.lower() in wanted]
    if not asked:
        return []
    tokens, made = Piece(text).tokens, list[DimensionJoin]()

    def refuse(table: FoundReference, what: str, hint: str) -> TranslationError:
        return refused(wanted[table.table.lower()], table, what, hint)

    for select in sorted(analysis.tree.find_all(exp.Select), key=lambda each: place(each)[0]):
        there = named_in(select, references)
        linked = {n.qualifier: n.table for n in there if n.table.start in parts}
        for item in there:
            if item.table.table.lower() not in wanted:
                continue
            on = None if item.join is None else item.join.args.get("on")
            side = "" if item.join is None else f"{item.join.side or ''} {item.join.kind or ''}".strip().upper()
            example = f"JOIN {item.table.table} {item.qualifier[:1]} ON ..."
            if item.join is None or on is None or side not in ("", "INNER", "LEFT", "LEFT OUTER") or on.find(exp.Query):
                raise refuse(item.table, "it can only be joined by JOIN or LEFT JOIN with ON", f"write {example}")
            others = {name for c in on.find_all(exp.Column) if (name := _owner(c, there, columns)) != item.qualifier}
            about = {linked[name].start: linked[name] for name in others if name is not None and name in linked}
            if len(about) != 1 or None in others or not others <= linked.keys():
                what = "the condition must compare it with columns of one table with parts"
                raise refuse(item.table, what, "write ON with the alias of that table before its columns")
            (to,) = about.values()
            linked[item.qualifier] = to
            start, on_end, end = _span(tokens, item.table, len(text))
            made.append(DimensionJoin(item.table, select, item.join, start, (on_end, end), end, to))
    done = {join.table.start for join in made}
    for table in asked:
        if table.start not in done:
            raise refuse(table, "it can only be joined by JOIN or LEFT JOIN with ON", "join it where the rows are read")
    return made


def _owner(column: exp.Column, there: list[Named], columns: ColumnsAt) -> str | None:
    """The qualifier of the table that a column is of; None if that is not plain."""
    if column.table:
        return plain(column.table)
    name, owners = plain(column.name), list[str]()
    for item in there:
        known = columns(item.table.start)
        if known is None:
            return None
        owners += [item.qualifier] if name in known else []
    return owners[0] if len(owners) == 1 else None


def owner_in_reach(
    column: exp.Column, found: Mapping[int, FoundReference], columns: ColumnsAt
) -> tuple[exp.Select, Named] | None:
    """The table that a column is of: of its own query, or of one around it. None for other names, such as aliases."""
    from sqlglot import exp

    node: exp.Expr | None = column
    while (select := None if node is None else node.find_ancestor(exp.Select)) is not None:
        there = named_in(select, found)
        qualifier = _owner(column, there, columns)
        item = next((n for n in there if n.qualifier == qualifier), None)
        if item is not None:
            return select, item
        node = select
    return None


def _span(tokens: tuple[Token, ...], table: FoundReference, length: int) -> tuple[int, int, int]:
    """Where the join of a table begins, where its ON ends, and where the join ends."""
    at = next(n for n, token in enumerate(tokens) if token.start >= table.start)
    first, depth = at, tokens[at].depth
    while first and tokens[first - 1].depth == depth and set(tokens[first - 1].keyword.split()) & _JOIN_WORDS:
        first -= 1
    on = next(n for n in range(at, len(tokens)) if tokens[n].keyword == "ON" and tokens[n].depth == depth)
    end = length
    for n in range(on + 1, len(tokens)):
        called = n + 1 < len(tokens) and tokens[n + 1].text == "(" and tokens[n].keyword in ("LEFT", "RIGHT")
        if tokens[n].depth < depth or (tokens[n].text == ")" and tokens[n].depth == depth - 1):
            end = tokens[n].start
            break
        if tokens[n].depth == depth and not called and tokens[n].keyword in _ENDS:
            end = tokens[n].start
            break
    return tokens[first].start, tokens[on].end, end
