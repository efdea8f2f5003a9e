"""What a view written as `query:` should hold, from the meaning of PATTERN and WINDOW, without any translation.

A window is the query itself over all rows of the window. A pattern is tried on every run of rows that ends
at a group's newest one, in plain Python: Spark only says which conditions hold for which rows, and adds up
the rows that were found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.definitions import Source, View
from partwise.object_store import spark_path
from partwise.parts import Range
from spark_jobs.paths import literal
from spark_jobs.verify.clauses import Cut, QueryCut, name_of, quoted, read
from spark_jobs.verify.expressions import (
    AggregateCall,
    calls,
    column_of,
    conjuncts,
    keys_of,
    named_in_having,
    uses,
    without_ascending,
)
from spark_jobs.verify.several import expect_several
from spark_jobs.verify.windowed_text import is_several

if TYPE_CHECKING:
    from spark_jobs.verify.verify import Checking, Expected

_AT_ONCE = 20
_names = count()


def expect_query(checking: Checking, view: View) -> Expected:
    from spark_jobs.verify.verify import Expected
    from spark_jobs.verify.windows import expect_windows

    assert view.query is not None
    if is_several(view.query.text, view.output):
        return expect_several(checking, view)
    query, found = read(view.query.text), Expected()
    name = next(n for n in checking.graph.tables if n.lower() == query.table)
    if query.windows:
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
class PatternCondition:
    """One conjunct of WHERE. `variable` None: it filters rows. `kind`: on the row alone, against the last row of
    the variable before (where the variable begins), or against the row before (where it goes on)."""

    variable: int | None
    kind: str
    sql: str
    own: tuple[str, ...]  # columns of the row itself
    older: tuple[str, ...]  # columns of the row before


def condition(span: Cut, pattern: Sequence[tuple[str, bool]], tables: Sequence[str]) -> PatternCondition:
    names = [name for name, _ in pattern]
    found = uses(span, [*names, *tables])
    used = sorted({names.index(u.qualifier) for u in found if u.qualifier in names})
    previous = _calls_of_prev(span)
    changes: list[tuple[int, int, str]] = []
    own: list[str] = []
    older: list[str] = []
    for use in found:
        inside = any(a < use.start and use.end < b for a, b in previous)
        before = inside or (len(used) == 2 and use.qualifier == names[used[0]])
        changes.append((use.start, use.end, ("__before." if before else "") + quoted(use.name)))
        (older if before else own).append(use.name)
    changes += [(start, _opening(span, start), "") for start, _ in previous]  # the parentheses stay
    kind = "again" if previous else "begin" if len(used) == 2 else "row"
    return PatternCondition(used[-1] if used else None, kind, span.written(changes), tuple(own), tuple(older))


def columns_by_use(query: QueryCut, conditions: Sequence[PatternCondition], tables: Sequence[str]) -> list[str]:
    """What decides among rows that nobody has said the order of: the columns that the query uses. First those of
    conditions on the row itself, variable by variable, then those of aggregates, then those compared with the row
    before."""
    in_order = [
        c
        for at, (_, plus) in enumerate(query.pattern)
        for kind in ("row", *(["begin"] if at else []), *(["again"] if plus else []))
        for c in conditions
        if (c.variable, c.kind) == (at, kind)
    ]
    qualifiers = [*tables, *(name for name, _ in query.pattern)]
    spans = [item.body for item in query.items] + ([query.having] if query.having is not None else [])
    found = [name for c in in_order for name in c.own]
    for call in (call for span in spans for call in calls(span)):
        taken = [span for span in (*call.args, call.filter) if span is not None and not span.text.endswith("*")]
        found += [use.name for span in taken for use in uses(span, qualifiers)]
    found += [name for c in in_order for name in c.older]
    return list(dict.fromkeys(found))


class _Pattern:
    def __init__(self, checking: Checking, view: View, query: QueryCut, table: str) -> None:
        self.checking, self.view, self.query, self.table = checking, view, query, table
        self.names = [name for name, _ in query.pattern]
        self.plus = [plus for _, plus in query.pattern]
        self.tables = [name_of(table), *([query.alias] if query.alias else [])]
        spans = conjuncts(query.where) if query.where is not None else []
        conditions = [condition(span, query.pattern, self.tables) for span in spans]
        self.filters = [c for c in conditions if c.variable is None]
        self.conditions = [c for c in conditions if c.variable is not None]
        known = checking.rows_of(table, Range(0, 0)).columns
        self.keys = keys_of(query, {name.lower() for name in known})
        self.shown = checking.columns_of(view.name)

    def expect(self, found: Expected) -> None:
        checking, view = self.checking, self.view
        own, source = checking.known[view.name], checking.known[self.table]
        ratio = view.part // source.length
        helpers = [n for n, table in checking.graph.tables.items() if view.name in table.serves]
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
        keys = ", ".join(self._bare(key) for key in self.keys) or "1"
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
        order = [self._bare(without_ascending(span)) for span in self.query.order_by]
        if isinstance(given, Source):
            order = order or [quoted(given.time.column)]
            order += [quoted(given.time.tie)] if given.time.tie else []
        elif self.checking.graph[self.table].length != self.view.part:
            order.insert(0, "part_timestamp")  # a part of the view spans several of what it reads
        return [*order, *map(quoted, columns_by_use(self.query, self.conditions, self.tables))]

    def _bare(self, span: Cut) -> str:
        return span.written((u.start, u.end, quoted(u.name)) for u in uses(span, self.tables))

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
        keys = [self._bare(key) for key in self.keys]
        named = zip(self.query.items, self.shown, strict=True)
        items = [f"{self._over(item.body)} AS {quoted(item.alias or shown)}" for item, shown in named]
        text = f"SELECT {', '.join(items)} FROM {name} GROUP BY {', '.join(['__group', *keys])}"
        if self.query.having is not None:
            grouped = [column for key in self.keys if (column := column_of(key, self.tables)) is not None]
            meant = [(a, b, f"({self._over(i.body)})") for a, b, i in named_in_having(self.query, grouped)]
            text += f" HAVING {self._over(self.query.having, meant)}"
        return self.checking.spark.sql(text)

    def _over(self, span: Cut, changes: Sequence[tuple[int, int, str]] = ()) -> str:
        """The expression over the rows of a match: aggregates of one variable see its rows only."""
        found = [*changes, *((call.start, call.end, self._aggregate(call)) for call in calls(span))]
        taken = [(start, end) for start, end, _ in found]
        loose = [u for u in uses(span, self.tables) if not any(a <= u.start < b for a, b in taken)]
        return span.written([*found, *((u.start, u.end, quoted(u.name)) for u in loose)])

    def _aggregate(self, call: AggregateCall) -> str:
        qualifiers = [*self.names, *self.tables]
        variable: int | None = None
        texts = []
        for piece in (*call.args, *([call.filter] if call.filter is not None else [])):
            first, *rest = piece.words
            if len(rest) == 2 and rest[1].text == "*" and name_of(first.text) in self.names:
                variable = self.names.index(name_of(first.text))
                texts.append("1")
                continue
            found = uses(piece, qualifiers) if piece.text != "*" else []
            variable = next((self.names.index(u.qualifier) for u in found if u.qualifier in self.names), variable)
            texts.append(piece.written((u.start, u.end, quoted(u.name)) for u in found))
        conditions = [f"({texts.pop()})"] if call.filter is not None else []
        conditions += [f"__variable = {variable}"] if variable is not None else []
        ordered: dict[str, Callable[[str], str]] = {
            "first": lambda x: f"min_by({x}, __at)",
            "last": lambda x: f"max_by({x}, __at)",
        }
        text = ordered[call.name](texts[0]) if call.name in ordered else f"{call.name}({', '.join(texts)})"
        return text + (f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else "")


def _calls_of_prev(span: Cut) -> list[tuple[int, int]]:
    """Where `PREV(...)` stands: from its name to behind its parenthesis."""
    found, words = [], span.words
    for at, word in enumerate(words[:-1]):
        if word.upper == "PREV" and words[at + 1].text == "(":
            end = next(w for w in words[at + 2 :] if w.text == ")" and w.depth == word.depth)
            found.append((word.start, end.end))
    return found


def _opening(span: Cut, start: int) -> int:
    return next(w.start for w in span.words if w.start >= start and w.text == "(")
