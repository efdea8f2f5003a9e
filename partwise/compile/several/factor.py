"""The strategy `factor`: aggregates over a join of two windows, without the join of their rows.

Rows of equal keys are all joined with each other, so a group's count is the product of the counts of both sides, its sum
the sum of one side times the count of the other; the greatest value is that of its side. Each stream keeps one row per key
and pane, and the view joins what the panes of its windows add up to. Only whole numbers are summed: they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

from sqlglot import exp

from partwise.compile.model import GeneratedView, QueryView
from partwise.compile.parse import parse
from partwise.compile.select import Key, Names, Selection, select
from partwise.compile.several.read import Several, Stream
from partwise.compile.window.plan import window
from partwise.parts import Bound, Reference
from partwise.sql.calls import Call
from partwise.sql.expressions import columns, spelled
from partwise.sql.parse import TranslationError
from partwise.sql.text import Piece, conjunct, plain, quoted
from partwise.sql.types.known import type_of

WHOLE = ("tinyint", "smallint", "int")


class NotPossible(Exception):
    """Why a query cannot be kept so, for people."""


@dataclass
class _Side:
    """One stream: the columns that it is joined by, its conditions, and the columns of its panes by their SQL."""

    stream: Stream
    alias: str
    joined: list[str] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    cells: dict[str, str] = field(default_factory=dict)  # over rows -> name
    merged: dict[str, str] = field(default_factory=dict)  # name -> over panes
    keys: dict[str, str] = field(default_factory=dict)  # name -> over rows
    names: Names = field(default_factory=lambda: Names(["n", *(f"join_{n}" for n in range(1, 20))]))

    def cell(self, body: str, merge: str, wish: str) -> str:
        if body not in self.cells:
            name = self.cells[body] = quoted(self.names.new(wish))
            self.merged[name] = merge.format(name)
        return f"{self.alias}.{self.cells[body]}"


@dataclass
class Factored:
    selection: Selection
    sides: tuple[_Side, _Side]

    def side_of(self, *pieces: Piece) -> _Side | None:
        """The one stream that these read; None if they read no column. Raises NotPossible."""
        names = [plain(side.stream.name) for side in self.sides]
        uses = [use for piece in pieces for use in columns(piece, names)]
        if any(use.qualifier is None for use in uses):
            loose = next(use for use in uses if use.qualifier is None)
            raise NotPossible(f"it is not said which stream {loose.written} belongs to")
        found = {use.qualifier for use in uses}
        if len(found) > 1:
            raise NotPossible(f"'{pieces[0].text}' reads both streams")
        return next((side for side, name in zip(self.sides, names, strict=True) if name in found), None)

    def text(self, piece: Piece) -> str:
        return spelled(piece, [plain(side.stream.name) for side in self.sides])


def factored(query: Several) -> Factored:
    """Raises NotPossible."""
    tree = query.tree
    if not isinstance(tree, exp.Select) or len(query.streams) != 2 or tree.find(exp.Subquery, exp.Exists):
        raise NotPossible("it is for GROUP BY over a join of two windows")
    joins = tree.args.get("joins") or []
    if len(joins) != 1 or query.dimensions or joins[0].side or joins[0].kind not in ("", "INNER"):
        raise NotPossible("it is for one inner join of two windows, without dimensions")
    if any(stream.rows is not None for stream in query.streams) or tree.args.get("distinct"):
        raise NotPossible("it is for [WINDOW ...] with GROUP BY")
    names = [plain(stream.name) for stream in query.streams]
    try:
        parsed = parse(one_table(query))
        selection = select(parsed, names, None)
    except TranslationError as error:
        raise NotPossible(error.problems[0].message) from None
    if not selection.all_calls():
        raise NotPossible("it is for aggregates")
    one, other = (_Side(stream, alias) for stream, alias in zip(query.streams, ("a", "b"), strict=True))
    found = Factored(selection, (one, other))
    _equalities(joins[0].args.get("on"), found)
    for piece in parsed.where.conjuncts() if parsed.where is not None else ():
        side = found.side_of(piece)
        if side is None:
            raise NotPossible(f"'{piece.text}' reads no stream")
        side.where.append(conjunct(found.text(piece)))
    return found


def one_table(query: Several) -> str:
    """The query with another FROM of the same length, which the reader of one window understands."""
    tokens = Piece(query.plain).tokens
    begin = next(t for t in tokens if t.depth == 0 and t.keyword == "FROM")
    ends = (t.start for t in tokens if t.depth == 0 and t.keyword in ("WHERE", "GROUP BY", "HAVING"))
    end = next((at for at in ends if at > begin.end), len(query.plain))
    instead = " t [WINDOW 1 minute]"
    return query.plain[: begin.end] + instead.ljust(end - begin.end) + query.plain[end:]


def _equalities(on: exp.Expr | None, found: Factored) -> None:
    """`a.k = b.k AND ...`, of plain columns of both sides."""
    for each in on.flatten() if isinstance(on, exp.And) else [on]:
        sides = [each.left, each.right] if isinstance(each, exp.EQ) else []
        tables = {plain(c.table): c for c in sides if isinstance(c, exp.Column) and c.table}
        for side in found.sides:
            column = tables.get(plain(side.stream.name))
            if column is None or len(tables) != 2:
                raise NotPossible("its condition is not an equality of columns of both streams")
            side.joined.append(f"{quoted(side.stream.name)}.{quoted(column.name)}")


def factor(view: QueryView, query: Several, found: Factored) -> list[GeneratedView]:
    """Raises NotPossible."""
    keys: dict[int, str] = {}
    for key in found.selection.keys:
        side = found.side_of(key.piece)
        if side is None:
            raise NotPossible(f"'{key.piece.text}' reads no stream")
        name = quoted(side.names.new(key.name))
        side.keys[name] = found.text(key.piece)
        keys[key.piece.offset] = f"{side.alias}.{name}"
    aggregates = {call.start: _aggregate(call, found) for call in found.selection.all_calls()}

    def key_text(key: Key) -> str:
        return keys[key.piece.offset]

    def aggregate(call: Call) -> str:
        return aggregates[call.start]

    items = [f"{o.formula.write(aggregate, key_text)} AS {quoted(o.name)}" for o in found.selection.outputs]
    having = found.selection.having
    sources, helpers = [], []
    for side in found.sides:
        helper, source = _pane(view, side)
        helpers.append(helper)
        sources.append(source)
    on = " AND ".join(f"a.join_{n} = b.join_{n}" for n in range(1, len(found.sides[0].joined) + 1))
    lines = [f"SELECT {', '.join(items)}", f"FROM {sources[0]}", f"JOIN {sources[1]} ON {on}"]
    lines += [f"GROUP BY {', '.join(keys.values())}"] if keys else []
    lines += [f"HAVING {having.write(aggregate, key_text)}"] if having is not None else []
    comment = "counts and sums of one stream times counts of the other (factor)"
    return [*helpers, GeneratedView(view.name, view.part, "\n".join(lines), helper=False, comment=comment)]


def _pane(view: QueryView, side: _Side) -> tuple[GeneratedView, str]:
    """The helper of a stream, and what the view reads of it: one row per key, for the whole window."""
    stream, pane = side.stream, gcd(side.stream.window.length, view.part)
    panes, per_slide, ratio = stream.window.length // pane, view.part // pane, pane // (stream.table.part or pane)
    joins = {f"join_{n}": text for n, text in enumerate(side.joined, 1)}
    named = {**joins, **side.keys}
    items = [f"{text} AS {name}" for name, text in named.items()]
    items += ["COUNT(*) AS n", *(f"{body} AS {name}" for body, name in side.cells.items())]
    alias = f" {quoted(stream.alias)}" if stream.alias else ""
    source = stream.table.name + Reference(Bound(ratio), Bound(ratio, ratio - 1)).text("j") + alias
    where = " AND ".join([*(f"{text} IS NOT NULL" for text in side.joined), *side.where])
    text = f"SELECT {', '.join(items)}\nFROM {source}\nWHERE {where}\nGROUP BY {', '.join(named.values())}"
    name = f"{view.name}__{side.alias}"
    comment = f"one row per key and pane of {stream.table.name}"
    span = window(panes, per_slide)
    shown = ", ".join(named)
    merged = ", ".join([shown, "SUM(n) AS n", *(f"{merge} AS {cell}" for cell, merge in side.merged.items())])
    whole = f"(\n  SELECT {merged}\n  FROM {name}{span.text('j')}\n  GROUP BY {shown}\n) {side.alias}"
    return GeneratedView(name, pane, text, comment=comment, reaches=span.lo), whole


def _aggregate(call: Call, found: Factored) -> str:
    """Over the joined rows of both sides, `a` and `b`. Raises NotPossible."""
    if call.distinct or call.name not in ("count", "sum", "avg", "min", "max") or len(call.args) != 1:
        raise NotPossible(f"{call.text} cannot be computed from each stream alone")
    filtered = f" FILTER (WHERE {found.text(call.filter)})" if call.filter is not None else ""
    read = [*([] if call.star else call.args), *([call.filter] if call.filter is not None else [])]
    side = found.side_of(*read) if read else None
    if side is None:
        if call.star and call.filter is None:
            return "COALESCE(SUM(a.n * b.n), 0)"
        raise NotPossible(f"{call.text} reads no stream")
    other = "b" if side.alias == "a" else "a"
    arg = "*" if call.star else found.text(call.args[0])
    if call.name == "count":
        cell = side.cell(f"COUNT({arg}){filtered}", "SUM({0})", "count")
        return f"COALESCE(SUM({cell} * {other}.n), 0)"
    if call.name in ("min", "max"):
        word = call.name.upper()
        return f"{word}({side.cell(f'{word}({arg}){filtered}', word + '({0})', call.name)})"
    kind = type_of(call.args[0].tree, {plain(n): k for n, k in (side.stream.table.columns or {}).items()})
    if kind not in WHOLE:
        raise NotPossible(f"{call.text} does not sum whole numbers (int or smaller)")
    total = f"SUM({side.cell(f'SUM({arg}){filtered}', 'SUM({0})', 'sum')} * {other}.n)"
    if call.name == "sum":
        return total
    many = f"SUM({side.cell(f'COUNT({arg}){filtered}', 'SUM({0})', 'count')} * {other}.n)"
    return f"(CASE WHEN {many} > 0 THEN CAST({total} AS DOUBLE) / {many} END)"


def why_not_factor(view: QueryView, query: Several) -> str | None:
    try:
        factor(view, query, factored(query))
    except NotPossible as why:
        return str(why)
    return None
