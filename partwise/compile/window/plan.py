"""Window query -> plan: panes, cells, and where each aggregate is computed.

A window of part j ends with that part. Panes are as long as the greatest common divisor of window and slide, so
that every window is made of whole panes: panes q*j+q-w .. q*j+q-1 with w panes in a window and q in a slide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from partwise.choose.window import choose, possible
from partwise.compile.model import Choice, InputTable, QueryView, Strategy, WindowShape
from partwise.compile.parse import Query
from partwise.compile.select import Selection, aggregated, select
from partwise.compile.window.aggregates import split
from partwise.compile.window.cells import Rows, Split
from partwise.parts import Bound, Reference, duration_text
from partwise.spelling import named
from partwise.sql.calls import Call
from partwise.sql.expressions import columns, previous_problem, row_problems, spelled, unknown_columns
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import Piece, Token, complaint, one_line, plain, quoted
from partwise.sql.types.known import Columns, type_of


@dataclass(frozen=True)
class WindowPlan:
    view: QueryView
    table: InputTable
    selection: Selection
    splits: dict[int, Split]  # by place in the query
    choice: Choice
    possible: tuple[Strategy, ...]
    alias: str | None
    joins: str
    where: str
    pane: int  # seconds
    panes: int  # in a window
    per_slide: int
    columns: Columns | None  # of all tables
    warnings: tuple[str, ...]

    def split_of(self, call: Call) -> Split:
        return self.splits[call.start]

    def rows_of_pane(self, index: str) -> str:
        return self._source(Reference(Bound(self._ratio), Bound(self._ratio, self._ratio - 1)), index)

    def rows_of_window(self, index: str) -> str:
        return self._source(window(self.panes * self._ratio, self.per_slide * self._ratio), index)

    @property
    def shape(self) -> WindowShape:
        rolls = all(split.exact for split in self.splits.values())
        return WindowShape(self.table.name, self._ratio, self.panes, self.per_slide, rolls)

    @property
    def _ratio(self) -> int:
        return self.pane // (self.table.part or self.pane)

    def _source(self, reference: Reference, index: str) -> str:
        alias = f" {self.alias}" if self.alias else ""
        return f"{self.table.name}{reference.text(index)}{alias}" + (f"\n{self.joins}" if self.joins else "")


def window(panes: int, per_slide: int) -> Reference:
    """The panes of the window of part j."""
    return Reference(Bound(per_slide, per_slide - panes), Bound(per_slide, per_slide - 1))


def plan_window(view: QueryView, query: Query, table: InputTable, inputs: Mapping[str, InputTable]) -> WindowPlan:
    assert query.window is not None
    problems: list[SqlProblem] = []
    tables = _tables(query, table, inputs, problems)
    all_joined = not problems
    problems += _length_problems(view, query, table)
    if query.order_by:
        problems.append(
            SqlProblem(
                query.order_by[0].offset, "unsupported-clause", "ORDER BY is not supported: a view's rows have no order"
            )
        )
    selection: Selection | None = None
    splits: dict[int, Split] = {}
    known = _all_columns(tables)
    rows = Rows(
        lambda piece: type_of(piece.tree, known),
        lambda piece: piece.text if piece.text == "*" else spelled(piece, tables),
        _moment(query, table),
    )
    try:
        selection = select(query, list(tables), known)
        for call in selection.all_calls():
            try:
                for piece in [*(a for a in call.args if a.text != "*"), *([call.filter] if call.filter else [])]:
                    problems += row_problems(piece, "an aggregate")
                splits[call.start] = split(call, rows)
            except TranslationError as error:
                problems += error.problems
        problems += _name_problems(view, query, selection)
        if not selection.keys and not selection.all_calls():
            problems.append(
                SqlProblem(query.items[0].body.offset, "no-aggregate", "a window shows groups or aggregates; here is neither",
                        "write an aggregate, for example COUNT(*), or GROUP BY")
            )  # fmt: skip
    except TranslationError as error:
        problems += error.problems
    problems += _column_problems(query, tables, all_joined)
    if problems or selection is None:
        raise TranslationError(*problems)
    pane = gcd(query.window.length, view.part)
    panes, per_slide = query.window.length // pane, view.part // pane
    found = list(splits.values())
    choice = choose(view, found, panes, per_slide, query.window.offset)
    return WindowPlan(
        view=view,
        table=table,
        selection=selection,
        splits=splits,
        choice=choice,
        possible=possible(found, panes, per_slide),
        alias=query.alias,
        joins=one_line(query.joins.text) if query.joins else "",
        where=spelled(query.where, tables) if query.where else "",
        pane=pane,
        panes=panes,
        per_slide=per_slide,
        columns=known,
        warnings=_warnings(selection, table),
    )


def _tables(
    query: Query, table: InputTable, inputs: Mapping[str, InputTable], problems: list[SqlProblem]
) -> dict[str, InputTable]:
    """Qualifier -> table, the stream first. Joined tables must be dimensions, and no row may come from them alone."""
    found = {plain(query.alias or table.name): table}
    if query.joins is None:
        return found
    try:
        # The stream stands in front, so places in the joins are known by what is put before them.
        before = "SELECT 1 FROM t "
        tree = sqlglot.parse_one(before + query.joins.text, dialect="spark")
    except ParseError as error:
        problems.append(SqlProblem(query.joins.offset, "bad-from", f"the joins cannot be read: {complaint(error)}"))
        return found
    offset = query.joins.offset - len(before)
    if tree.args.get("laterals"):
        problems.append(SqlProblem(query.joins.offset, "unsupported-clause", "LATERAL VIEW is not supported here"))
    for join in tree.args.get("joins") or []:
        target = join.this
        if not isinstance(target, exp.Table) or not isinstance(target.this, exp.Identifier):
            problems.append(SqlProblem(query.joins.offset, "bad-from", "only dimensions can be joined to a window",
                                    "join in a view of its own and read that view"))  # fmt: skip
            continue
        at = offset + target.this.meta.get("start", len(before))
        other = named(inputs, target.name)
        if other is None or other.kind != "dimension":
            what = "is not known" if other is None else f"is a {other.kind}"
            problems.append(SqlProblem(at, "bad-from", f"only dimensions can be joined to a window; {target.name} {what}",
                                    "join in a view of its own and read that view"))  # fmt: skip
            continue
        if join.side in ("RIGHT", "FULL"):
            problems.append(SqlProblem(at, "bad-from", f"{join.side} JOIN is not supported: rows without a time are in no window",
                                    "use JOIN or LEFT JOIN"))  # fmt: skip
        found[plain(target.alias or target.name)] = other
    return found


def _length_problems(view: QueryView, query: Query, table: InputTable) -> list[SqlProblem]:
    assert query.window is not None
    at, found = query.window.offset, []
    if query.window.slide is not None and query.window.slide != view.part:
        found.append(
            SqlProblem(at, "bad-window", f"the slide ({duration_text(query.window.slide)}) must be the view's part length "
                    f"({duration_text(view.part)})", f"write part: {duration_text(query.window.slide)}")
        )  # fmt: skip
    for what, length in (("window", query.window.length), ("view's part length", view.part)):
        if table.part is None or length % table.part:
            of = duration_text(table.part) if table.part else "none"
            found.append(
                SqlProblem(at, "bad-window", f"the {what} ({duration_text(length)}) must be a whole multiple of the parts of "
                        f"{table.name} ({of})", "change the window, or the part lengths")
            )  # fmt: skip
    return found


def _name_problems(view: QueryView, query: Query, selection: Selection) -> list[SqlProblem]:
    if not view.partial:
        return []
    return [
        SqlProblem(
            query.items[at].body.offset,
            "reserved-name",
            "partial: true adds a column called partial",
            "choose another name",
        )
        for at, output in enumerate(selection.outputs)
        if plain(output.name) == "partial"
    ]


def _all_columns(tables: Mapping[str, InputTable]) -> Columns | None:
    """Columns of all tables together; unknown if those of any are. A name with two types has none."""
    found: dict[str, str | None] = {}
    for table in tables.values():
        if table.columns is None:
            return None
        for name, kind in table.columns.items():
            found[plain(name)] = kind if found.get(plain(name), kind) == kind else None
    return found


def _column_problems(query: Query, tables: Mapping[str, InputTable], all_joined: bool) -> list[SqlProblem]:
    """`all_joined`: `tables` are all that the query names."""
    known = _all_columns(tables)
    names: dict[str | None, tuple[str, Columns | None]] = {q: (t.name, t.columns) for q, t in tables.items()}
    names[None] = (" or ".join(t.name for t in tables.values()), known)
    aliases = {plain(item.alias) for item in query.items if item.alias}
    conjuncts = query.where.conjuncts() if query.where else []
    joined = _join_conditions(query.joins) if query.joins else []
    having = [query.having] if query.having else []
    found: list[SqlProblem] = []
    for piece in [*query.group_by, *joined, *conjuncts, *having, *(item.body for item in query.items)]:
        try:
            if piece in conjuncts or piece in joined:
                found += row_problems(piece, "WHERE" if piece in conjuncts else "a condition of a JOIN")
                found += [problem] if (problem := previous_problem(piece)) is not None else []
            uses = aggregated(piece, tables) if piece in having else columns(piece, tables)
        except TranslationError as error:
            found += error.problems
            continue
        is_name = piece in query.group_by and plain(piece.text) in aliases
        of_others = piece in joined and not all_joined
        found += [] if is_name or of_others else unknown_columns(uses, names)
    return found


def _join_conditions(joins: Piece) -> list[Piece]:
    """What stands behind each ON."""
    tokens = joins.tokens
    found: list[Piece] = []
    for at, token in enumerate(tokens):
        if token.keyword == "ON" and token.depth == 0:
            ends = (t.start for k, t in enumerate(tokens[at + 1 :], start=at + 1) if _begins_join(tokens, k))
            found.append(joins.cut(token.end, next(ends, joins.offset + len(joins.text))))
    return found


def _begins_join(tokens: tuple[Token, ...], at: int) -> bool:
    words = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI")
    called = at + 1 < len(tokens) and tokens[at + 1].text == "("  # LEFT(x, 3)
    return tokens[at].depth == 0 and tokens[at].keyword in words and not called


def _moment(query: Query, table: InputTable) -> tuple[str, ...]:
    """The columns that say which row is first."""
    prefix = f"{query.alias}." if query.alias else f"{quoted(table.name)}." if query.joins else ""
    time = quoted(table.time) if table.time else "part_timestamp"
    return tuple(prefix + name for name in (time, *([quoted(table.tie)] if table.tie else [])))


def _warnings(selection: Selection, table: InputTable) -> tuple[str, ...]:
    names = {call.name for call in selection.all_calls()} & {"first", "last", "max_by", "min_by"}
    if not names or table.tie is not None:
        return ()
    time = table.time or "part_timestamp"
    return (f"{', '.join(sorted(names)).upper()}: rows with equal {time} are taken in the order of their values; "
            "declare a tie column on the source to say their order",)  # fmt: skip
