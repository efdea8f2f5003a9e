"""What a view written as `query:` should hold, from the meaning of PATTERN and WINDOW, without any translation.

A window is the query itself over all rows of the window. A pattern is tried on every run of rows that ends
at a group's newest one, in plain Python: Spark only says which conditions hold for which rows, and adds up
the rows that were found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.compile.parse import Query, parse
from partwise.compile.select import Formula, select
from partwise.definitions import Source, View
from partwise.object_store import spark_path
from partwise.parts import Range
from partwise.sql.calls import Call
from partwise.sql.expressions import columns
from partwise.sql.text import Piece, plain, quoted
from spark_jobs.step.read import literal
from spark_jobs.verify.several import expect_several
from spark_jobs.verify.windowed_text import is_several

if TYPE_CHECKING:
    from spark_jobs.verify.verify import Checking, Expected

_AT_ONCE = 20
_ASCENDING = re.compile(r"\s+ASC\s*$", re.IGNORECASE)
_names = count()


def expect_query(checking: Checking, view: View) -> Expected:
    from spark_jobs.verify.verify import Expected
    from spark_jobs.verify.windows import expect_windows

    assert view.query is not None
    if is_several(view.query.text, view.output):
        return expect_several(checking, view)
    query, found = parse(view.query.text), Expected()
    name = next(n for n in checking.graph.tables if n.lower() == plain(query.table))
    if query.window is not None:
        expect_windows(checking, view, query, name, found)
    else:
        _Pattern(checking, view, query, name).expect(found)
    return found


# -- patterns ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    """One row of a group: its place in the group, its part of the view, and which conditions hold for it."""

    at: int
    part: int
    holds: Sequence[bool]


@dataclass(frozen=True)
class _Condition:
    """One conjunct of WHERE. `variable` None: it filters rows. `kind`: on the row alone, against the last row of
    the variable before (where the variable begins), or against the row before (where it goes on)."""

    variable: int | None
    kind: str
    sql: str


class _Pattern:
    def __init__(self, checking: Checking, view: View, query: Query, table: str) -> None:
        assert query.pattern is not None
        self.checking, self.view, self.query, self.table = checking, view, query, table
        self.names = [v.name for v in query.pattern]
        self.plus = [v.plus for v in query.pattern]
        self.tables = [plain(table), *([plain(query.alias)] if query.alias else [])]
        conjuncts = query.where.conjuncts() if query.where is not None else []
        conditions = [self._condition(piece) for piece in conjuncts]
        self.filters = [c for c in conditions if c.variable is None]
        self.conditions = [c for c in conditions if c.variable is not None]
        self.selection = select(query, [*self.tables, *self.names], None)

    def expect(self, found: Expected) -> None:
        checking, view = self.checking, self.view
        own, source = checking.known[view.name], checking.known[self.table]
        ratio = view.part // source.length
        helpers = [n for n, table in checking.graph.tables.items() if table.helper_of == view.name]
        starts = [s for n in (view.name, *helpers) if (s := checking.known[n].start) is not None]
        if not own.parts or not starts:
            return
        first = min(starts)
        parts = [j for j in own.parts if checking.has(self.table, Range(first * ratio, (j + 1) * ratio - 1))]
        if not parts:
            return
        rows = self._rows(Range(first * ratio, (parts[-1] + 1) * ratio - 1), ratio)
        rows.write.parquet(spark_path(f"{checking.scratch}/{view.name}__rows"))
        rows = checking.spark.read.parquet(literal(f"{checking.scratch}/{view.name}__rows"))
        for at in range(0, len(parts), _AT_ONCE):
            some = parts[at : at + _AT_ONCE]
            matched = list(self._matches(rows, some))
            schema = "__view_part bigint, __group bigint, __at bigint, __variable int"
            taken = checking.spark.createDataFrame(matched, schema).join(rows, ["__group", "__at"])
            checking.keep(view, found, {j: self._shown(taken.where(F.col("__view_part") == j)) for j in some})

    # -- rows, and what holds for them

    def _rows(self, span: Range, ratio: int) -> DataFrame:
        """Every row that the filters let through, numbered within its group, with what holds for it."""
        rows = self.checking.rows_of(self.table, span).withColumn("__part", F.expr(f"part DIV {ratio}"))
        if self.filters:
            rows = rows.where(" AND ".join(f"({c.sql})" for c in self.filters))
        keys = ", ".join(self._bare(key.piece) for key in self.selection.keys) or "1"
        rows = rows.withColumn("__group", F.expr(f"dense_rank() OVER (ORDER BY struct({keys}))"))
        order = ", ".join(["__part", *self._order()])
        rows = rows.withColumn("__at", F.expr(f"row_number() OVER (PARTITION BY __group ORDER BY {order})"))
        columns_ = ", ".join(f"`{name}`" for name in rows.columns)
        before = f"lag(struct({columns_})) OVER (PARTITION BY __group ORDER BY __at)"
        rows = rows.withColumn("__before", F.expr(before))
        holds = ", ".join(f"coalesce({c.sql}, false)" for c in self.conditions)
        return rows.withColumn("__holds", F.expr(f"array({holds})")).drop("__before")

    def _order(self) -> list[str]:
        """As documented: what ORDER BY says, or else the event time, then the tie column of the source. Rows that are
        equal by all that are taken in the order of their values."""
        given = self.checking.definitions[self.table]
        order = [_ASCENDING.sub("", self._bare(piece)) for piece in self.query.order_by]
        if isinstance(given, Source):
            order = order or [quoted(given.time.column)]
            order += [quoted(given.time.tie)] if given.time.tie else []
        elif self.checking.graph[self.table].length != self.view.part:
            order.insert(0, "part_timestamp")  # a part of the view spans several of what it reads
        return [*order, *self._values()]

    def _values(self) -> list[str]:
        """The columns whose values decide among rows that nobody has said the order of: those that the query uses."""
        from partwise.compile.pattern.plan import plan_pattern
        from partwise.compile.result_types import ResultColumns
        from partwise.compile.translate import with_part_columns
        from partwise.compile.translated import question

        view, given = self.view, self.checking.definitions[self.table]
        names = tuple(self.checking.rows_of(self.table, Range(0, 0)).columns)
        compiled = self.checking.engine.definitions.views.get(self.table)
        stored = ResultColumns(names, compiled.types if compiled is not None else {})
        asked, tables = question(view, {given.name.lower(): given}, {given.name.lower(): stored})
        plan = plan_pattern(asked, self.query, with_part_columns(tables[given.name.lower()]))
        return [quoted(name) for name in plan.row_columns]

    def _condition(self, piece: Piece) -> _Condition:
        uses = columns(piece, [*self.names, *self.tables])
        used = sorted({self.names.index(u.qualifier) for u in uses if u.qualifier in self.names})
        previous = _calls_of_prev(piece)
        changes = []
        for use in uses:
            inside = any(a < use.start and use.end < b for a, b in previous)
            older = inside or (len(used) == 2 and use.qualifier == self.names[used[0]])
            changes.append((use.start, use.end, ("__before." if older else "") + quoted(use.name)))
        changes += [(a, b, "") for start, end in previous for a, b in _around(piece, start, end)]
        text = piece.splice(changes)
        if not used:
            return _Condition(None, "row", text)
        kind = "again" if previous else "begin" if len(used) == 2 else "row"
        return _Condition(used[-1], kind, text)

    def _bare(self, piece: Piece) -> str:
        return piece.splice((u.start, u.end, quoted(u.name)) for u in columns(piece, self.tables))

    # -- the meaning

    def _matches(self, rows: DataFrame, parts: list[int]) -> Iterator[tuple[int, int, int, int]]:
        """For every part and group the rows of the longest run that matches, each with its variable."""
        wanted = rows.where(F.col("__part") <= parts[-1]).select("__group", "__at", "__part", "__holds")
        ordered = wanted.orderBy("__group", "__at").toLocalIterator()
        for group, members in groupby(ordered, key=lambda row: row[0]):
            history = [_Row(row[1], row[2], row[3]) for row in members]
            for part in parts:
                run = self._newest(history, part)
                for start in range(len(run)):
                    taken = self._assign(run[start:], 0)
                    if taken is not None:
                        variables = [k for k, n in enumerate(taken) for _ in range(n)]
                        for row, variable in zip(run[start:], variables, strict=True):
                            yield part, group, row.at, variable
                        break

    def _newest(self, history: list[_Row], part: int) -> list[_Row]:
        """The rows that a run ending now may use: none from before a gap, unless gaps are carried over."""
        rows = [row for row in history if row.part <= part]
        if self.view.gaps == "carry":
            return rows
        present, first = {row.part for row in rows}, part + 1
        while first - 1 in present:
            first -= 1
        return [row for row in rows if row.part >= first]

    def _assign(self, rows: list[_Row], state: int) -> list[int] | None:
        """How many rows each variable takes, earlier ones as many as they can; None if there is no way."""
        if state == len(self.names):
            return [] if not rows else None
        most = 0
        while most < len(rows) and (most == 0 or self.plus[state]):
            kinds = ("row", "again") if most else ("row", "begin")
            asked = [at for at, c in enumerate(self.conditions) if c.variable == state and c.kind in kinds]
            if not all(rows[most].holds[at] for at in asked):
                break
            most += 1
        for taken in range(most, 0, -1):
            rest = self._assign(rows[taken:], state + 1)
            if rest is not None:
                return [taken, *rest]
        return None

    # -- what is shown of a match

    def _shown(self, taken: DataFrame) -> DataFrame:
        # A name of its own: over Spark Connect a query is looked at again when it runs, and so are the names in it.
        name = f"__verify_pattern_{next(_names)}"
        taken.createOrReplaceTempView(name)
        self.checking.views.append(name)
        keys = [self._bare(key.piece) for key in self.selection.keys]
        items = [f"{self._over(output.formula)} AS {quoted(output.name)}" for output in self.selection.outputs]
        text = f"SELECT {', '.join(items)} FROM {name} GROUP BY {', '.join(['__group', *keys])}"
        if self.selection.having is not None:
            text += f" HAVING {self._over(self.selection.having)}"
        return self.checking.spark.sql(text)

    def _over(self, formula: Formula) -> str:
        """The expression over the rows of a match: aggregates of one variable see its rows only."""
        return formula.write(self._aggregate, lambda key: self._bare(key.piece))

    def _aggregate(self, call: Call) -> str:
        qualifiers = [*self.names, *self.tables]
        variable: int | None = None
        texts = []
        for piece in (*call.args, *([call.filter] if call.filter is not None else [])):
            first, *rest = piece.tokens
            if len(rest) == 2 and rest[1].text == "*" and plain(first.text) in self.names:
                variable = self.names.index(plain(first.text))
                texts.append("1")
                continue
            uses = columns(piece, qualifiers) if piece.text != "*" else []
            variable = next((self.names.index(u.qualifier) for u in uses if u.qualifier in self.names), variable)
            texts.append(piece.splice((u.start, u.end, quoted(u.name)) for u in uses) if uses else piece.text)
        conditions = [f"({texts.pop()})"] if call.filter is not None else []
        conditions += [f"__variable = {variable}"] if variable is not None else []
        ordered: dict[str, Callable[[str], str]] = {
            "first": lambda x: f"min_by({x}, __at)",
            "last": lambda x: f"max_by({x}, __at)",
        }
        text = ordered[call.name](texts[0]) if call.name in ordered else f"{call.name}({', '.join(texts)})"
        return text + (f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else "")


def _calls_of_prev(piece: Piece) -> list[tuple[int, int]]:
    """Where `PREV(...)` stands: from its name to behind its parenthesis."""
    found, tokens = [], piece.tokens
    for at, token in enumerate(tokens[:-1]):
        if token.upper == "PREV" and tokens[at + 1].text == "(":
            end = next(t for t in tokens[at + 2 :] if t.text == ")" and t.depth == token.depth)
            found.append((token.start, end.end))
    return found


def _around(piece: Piece, start: int, end: int) -> list[tuple[int, int]]:
    """The name and opening parenthesis, and the closing one."""
    opening = next(t for t in piece.tokens if t.start >= start and t.text == "(")
    return [(start, opening.end), (end - 1, end)]
