"""Windows beside a dimension that changes forward: each part of a stream is joined once, with the version that counts
for that part, in a helper that every strategy reads.

    SELECT r.rate, COUNT(*) AS n FROM m [WINDOW 1 hour] m JOIN rates r ON r.src = m.src GROUP BY r.rate

    v__dated: SELECT m.src, m.ts, r.rate FROM m[j] m JOIN rates r ON r.src = m.src
    v:         SELECT m.rate, COUNT(*) AS n FROM v__dated [WINDOW 1 hour] m GROUP BY m.rate

If rows were joined with every window that they are in, it would depend on the strategy which version counts for them.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from partwise.compile.dimensions import Kind
from partwise.compile.dimensions.joins import (
    ColumnsAt,
    DimensionJoin,
    dimension_joins,
    named_in,
    owner_in_reach,
    refused,
)
from partwise.compile.model import GeneratedView, InputTable, QueryView, Translation
from partwise.compile.several.read import Stream, read
from partwise.spelling import named
from partwise.sql.columns import place
from partwise.sql.parse import TranslationError
from partwise.sql.references import Analysis, FoundReference, analyse
from partwise.sql.text import Piece, one_line, plain, quoted
from partwise.tables import DATED

if TYPE_CHECKING:
    from sqlglot import exp

_OWN_VIEW = "join it in a view of its own, by update, and let the query read that view"


def joined_apart(
    view: QueryView, inputs: Mapping[str, InputTable], kinds: Mapping[str, Kind]
) -> tuple[QueryView, Mapping[str, InputTable], tuple[GeneratedView, ...]]:
    """The query over helpers in place of streams that are joined with these dimensions (by name in lower case), what
    it may read, and the helpers. Raises TranslationError where that would not be the same."""
    query = read(view.query, inputs)
    analysis = analyse(query.plain)
    streams = {stream.start: stream for stream in query.streams}
    columns = _columns_at(analysis, inputs)
    joins = dimension_joins(query.plain, analysis, kinds, streams, columns)
    if not joins:
        return view, inputs, ()
    made: list[GeneratedView] = []
    more: dict[str, InputTable] = {}
    changes = [(join.start, join.end, " ") for join in joins]
    for start in dict.fromkeys(join.to.start for join in joins):
        stream, mine = streams[start], [join for join in joins if join.to.start == start]
        _refuse(stream, mine, analysis, kinds[mine[0].table.table.lower()])
        name = f"{view.name}__{DATED}" + (f"_{len(made) + 1}" if made else "")
        helper = _Helper(name, view, stream, mine, query.plain, inputs)
        changes += helper.renamed(analysis, columns, [(join.start, join.end) for join in joins])
        made.append(helper.view())
        more[name.lower()] = helper.table()
    whole = Piece.of_query(view.query)
    return replace(view, query=whole.splice(changes)), ChainMap(more, inputs), tuple(made)  # type: ignore[arg-type]


def translated_apart(
    view: QueryView,
    inputs: Mapping[str, InputTable],
    kinds: Mapping[str, Kind],
    translate: Callable[[QueryView, Mapping[str, InputTable]], Translation],
) -> Translation:
    """The translation of such a query. Raises TranslationError, with places in the query as it is written."""
    asked, known, helpers = joined_apart(view, inputs, kinds)
    try:
        return beside(helpers, translate(asked, known))
    except TranslationError as why:
        found = next(t for t in analyse(read(view.query, inputs).plain).found.tables if t.table.lower() in kinds)
        what = f"joined in a helper, over which this is not possible: {why.problems[0].message}"
        raise refused(kinds[found.table.lower()], found, what, _OWN_VIEW) from None


def beside(helpers: tuple[GeneratedView, ...], made: Translation) -> Translation:
    """The translation with these helpers before everything else, by every strategy."""
    variants = tuple(replace(each, views=(*helpers, *each.views)) for each in made.variants)
    return replace(made, views=(*helpers, *made.views), variants=variants)


def _columns_at(analysis: Analysis, inputs: Mapping[str, InputTable]) -> ColumnsAt:
    tables = {t.start: named(inputs, t.table) for t in analysis.found.tables}

    def columns(start: int) -> Collection[str] | None:
        table = tables.get(start)
        known = None if table is None else table.columns
        return None if known is None else {plain(name) for name in known}

    return columns


def _refuse(stream: Stream, joins: list[DimensionJoin], analysis: Analysis, kind: Kind) -> None:
    """What would not be the same if the stream were joined with the dimension before anything else."""
    dimension, select = joins[0].table, joins[0].select

    def refuse(what: str) -> TranslationError:
        return refused(kind, dimension, what, _OWN_VIEW)

    if stream.rows is not None:
        raise refuse("the last rows of groups are chosen before they are joined")
    if not _known(stream.table):
        raise refuse(f"the columns of {stream.table.name} are not known")
    own = next(
        n.join for n in named_in(select, {t.start: t for t in analysis.found.tables}) if n.table.start == stream.start
    )
    side = "" if own is None else f"{own.side or ''} {own.kind or ''}".strip().upper()
    if side not in ("", "INNER", "CROSS"):
        raise refuse(f"{stream.table.name} is joined by {side} JOIN, so some rows have none of it")
    if any(item.is_star for item in select.expressions):
        raise refuse("SELECT * does not say which columns are needed")


def _known(table: InputTable) -> Mapping[str, str | None]:
    return table.columns or {}


class _Helper:
    """The table that takes the place of one stream."""

    def __init__(
        self,
        name: str,
        view: QueryView,
        stream: Stream,
        joins: list[DimensionJoin],
        text: str,
        inputs: Mapping[str, InputTable],
    ) -> None:
        self.name, self.query, self.stream, self.joins, self.text = name, view, stream, joins, text
        self.dimensions = {join.alias: named(inputs, join.table.table) for join in joins}
        self.alias = stream.alias or stream.table.name
        taken = {"part", "part_timestamp", *(plain(column) for column in _known(stream.table))}
        #: By dimension and column what it is called here.
        self.called: dict[tuple[str, str], str] = {}
        self.taken = taken
        self.used = {stream.table.time, stream.table.tie}

    def renamed(
        self, analysis: Analysis, columns: ColumnsAt, removed: list[tuple[int, int]]
    ) -> list[tuple[int, int, str]]:
        """The changes of the query: the helper for the stream, and its columns for those of the dimensions."""
        from sqlglot import exp

        assert analysis.tree is not None
        found = {t.start: t for t in analysis.found.tables}
        alias = "" if self.stream.alias else f" {quoted(self.stream.table.name)}"
        changes = [(self.stream.start, self.stream.end, self.name + alias)]
        self.used |= {plain(column.name) for column in analysis.tree.find_all(exp.Column)}
        for column in analysis.tree.find_all(exp.Column):
            start, end = place(column)
            if any(a <= start < b for a, b in removed) or (owner := self._owner(column, found, columns)) is None:
                continue
            name = self._name(owner, plain(column.name))
            shown = isinstance(column.parent, exp.Select) and column in column.parent.expressions
            another = f" AS {quoted(column.name)}" if shown and name != plain(column.name) else ""
            changes.append((start, end, f"{quoted(self.alias)}.{quoted(name)}{another}"))
        return changes

    def _owner(self, column: exp.Column, found: Mapping[int, FoundReference], columns: ColumnsAt) -> str | None:
        """The dimension of this helper that a column is of."""
        reached = owner_in_reach(column, found, columns)
        if reached is None:
            return None
        here = next((join for join in self.joins if join.table.start == reached[1].table.start), None)
        return None if here is None else here.alias

    def _name(self, dimension: str, column: str) -> str:
        key = (dimension, column)
        if key not in self.called:
            name = column if column not in self.taken else f"{dimension}__{column}"
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self.called[key] = name
        return self.called[key]

    def view(self) -> GeneratedView:
        stream = self.stream
        items = [f"{quoted(self.alias)}.{quoted(column)}" for column in self._kept()]
        for (dimension, column), name in self.called.items():
            items.append(f"{quoted(dimension)}.{quoted(column)}" + (f" AS {quoted(name)}" if name != column else ""))
        own = f" {quoted(stream.alias)}" if stream.alias else ""
        joins = "\n".join(one_line(self.text[join.start : join.end]) for join in self.joins)
        text = f"SELECT {', '.join(items)}\nFROM {stream.table.name}[j]{own}\n{joins}"
        names = " and ".join(dict.fromkeys(join.table.table for join in self.joins))
        comment = f"rows of each part of {stream.table.name}, with the rows of {names} that count for it"
        part = stream.table.part or self.query.part
        reaches = stream.reference(self.query.part).lo
        return GeneratedView(self.name, part, text, comment=comment, reaches=reaches)

    def _kept(self) -> list[str]:
        """Columns of the stream that the query names."""
        named_ones = {plain(name) for name in self.used if name is not None} - {"part", "part_timestamp"}
        return [column for column in _known(self.stream.table) if plain(column) in named_ones]

    def table(self) -> InputTable:
        stream = self.stream.table
        columns = {name: kind for name, kind in _known(stream).items() if name in self._kept()}
        for (dimension, column), name in self.called.items():
            known = self.dimensions[dimension]
            types = {plain(n): kind for n, kind in (known.columns or {}).items()} if known is not None else {}
            columns[name] = types.get(column)
        return InputTable(self.name, "view", stream.part, columns, stream.time, stream.tie)
