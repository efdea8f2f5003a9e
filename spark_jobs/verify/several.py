"""What a view over several windows should hold: the query itself over the rows of its windows, by Spark.

Pairs are what the newest part adds: the join of the windows, without that of the same windows before that part.
FREQUENT is counted pane by pane, and put together in plain Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from itertools import count
from math import gcd
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from partwise.definitions import Source, View
from partwise.parts import FOREVER, Range
from partwise.sql.references import find
from spark_jobs.verify.calls import documented
from spark_jobs.verify.clauses import Cut, Windowed, read
from spark_jobs.verify.dimensions import conditioned, rows_by_part
from spark_jobs.verify.expressions import calls
from spark_jobs.verify.windowed_text import Text, cut, grouping
from spark_jobs.verify.windows import bigints, moment

if TYPE_CHECKING:
    from spark_jobs.verify.verify import Checking, Expected

_AT_ONCE = 20
_names = count()


def expect_several(checking: Checking, view: View) -> Expected:
    from spark_jobs.verify.verify import Expected

    assert view.query is not None
    found, text = Expected(), cut(view.query.text)
    several = _Several(checking, view, text)
    rows: Callable[[int], DataFrame | None] = several.rows
    if text.frequent is not None:
        rows = several.frequent
    elif view.output == "pairs":
        rows = several.pairs
    some: dict[int, DataFrame] = {}
    for j in checking.known[view.name].parts:
        if (expected := rows(j)) is not None:
            some[j] = expected
        if len(some) == _AT_ONCE:
            checking.keep(view, found, some)
            some = {}
    if some:
        checking.keep(view, found, some)
    return found


class _Several:
    def __init__(self, checking: Checking, view: View, text: Text) -> None:
        self.checking, self.view, self.text = checking, view, text
        #: With a condition for each forward dimension; by its number among the tables that of a stream.
        self.plain, self.of = conditioned(checking, text.plain)
        self.found = find(self.plain)
        windows = {window.start: at for at, window in enumerate(text.windows)}
        #: By number among the tables the number of the window.
        self.windowed = {n: windows[t.start] for n, t in enumerate(find(text.plain).tables) if t.start in windows}
        self.counted: dict[int, list[Row]] = {}

    def rows(self, j: int) -> DataFrame | None:
        """The query over its windows; None if some of their rows are no longer known."""
        spans = [self.there(w, self.span(w, j)) for w in self.text.windows]
        if not all(self.checking.has(self.name(w.table), s) for w, s in zip(self.text.windows, spans, strict=True)):
            return None
        return self.marked(self.over(self.plain + self.tail(), spans), j)

    def pairs(self, j: int) -> DataFrame | None:
        now, before = [], []
        for window in self.text.windows:
            name = self.name(window.table)
            span = self.begun(name, self.span(window, j))
            if not self.checking.has(name, span):
                return None
            now.append(span)
            before.append(Range(span.lo, span.hi - self.view.part // self.checking.known[name].length))
        return self.over(self.plain, now).exceptAll(self.over(self.plain, before))

    def frequent(self, j: int) -> DataFrame | None:
        """The `k` largest of each pane; any other group of a pane has no more rows than the next one."""
        (window,), k = self.text.windows, self.text.frequent or 0
        name, length = self.name(window.table), self.checking.known[self.name(window.table)].length
        span = self.span(window, j)
        if self.view.partial:  # whole panes are kept, and the first of them may begin after the stream does
            span = Range(max(span.lo, self.age(window) // length), span.hi)
        if not self.checking.has(name, span):
            return None
        pane = gcd(window.length, self.view.part) // length
        n: Counter[Any] = Counter()
        own: Counter[Any] = Counter()
        bounds = 0
        for first in range(span.lo, span.hi + 1, pane):
            if first not in self.counted:
                counts = self.over(self.plain, [Range(first, first + pane - 1)])
                keys = [F.col(f"`{c}`").asc_nulls_first() for c in counts.columns if c != "n"]
                self.counted[first] = counts.orderBy(F.col("n").desc(), *keys).limit(k + 1).collect()
                self.schema = counts.schema
            largest = self.counted[first]
            bound = largest[k]["n"] if len(largest) > k else 0
            bounds += bound
            for row in largest[:k]:
                key = tuple(value for name, value in row.asDict().items() if name != "n")
                n[key] += row["n"]
                own[key] += bound
        most = {key: n[key] + bounds - own[key] for key in n}
        shown = [
            (*key, n[key], most[key], sum(other >= n[key] for other in most.values()) <= k)
            for key in n
            if n[key] > bounds
        ]
        kept = [f for f in self.schema.fields if f.name != "n"]
        more = [
            StructField("n", LongType()),
            StructField("n_at_most", LongType()),
            StructField("certain", BooleanType()),
        ]
        return self.marked(self.checking.spark.createDataFrame(shown, StructType([*kept, *more])), j)

    # -- pieces

    def tail(self) -> str:
        """Groups with equal values are ordered by their keys, NULL first, as Spark orders by itself."""
        if self.text.limit is None:
            return ""
        return f" ORDER BY {self.text.order}, {grouping(self.text.plain)} LIMIT {self.text.limit}"

    def name(self, table: str) -> str:
        return next(n for n in self.checking.graph.tables if n.lower() == table.lower())

    def span(self, window: Windowed, j: int) -> Range:
        """The parts of the window that ends with part j of the view."""
        length = self.checking.known[self.name(window.table)].length
        last = (j + 1) * self.view.part // length - 1
        return Range(last - window.length // length + 1, last)

    def begun(self, name: str, span: Range) -> Range:
        """What a stream has of a window: nothing before its first part."""
        start = self.checking.known[name].start
        return Range(max(span.lo, span.lo if start is None else start), span.hi)

    def there(self, window: Windowed, span: Range) -> Range:
        return self.begun(self.name(window.table), span) if self.view.partial else span

    def marked(self, rows: DataFrame, j: int) -> DataFrame:
        """With the column that says whether a window was not complete. From which part on they are was settled when the
        view began: parts of a source that come before it later do not change it."""
        if not self.view.partial:
            return rows
        windows = self.text.windows
        lacking = [self.span(w, j).lo * self.checking.known[self.name(w.table)].length < self.age(w) for w in windows]
        return rows.withColumn("partial", F.lit(any(lacking)))

    def age(self, window: Windowed) -> int:
        """The second from which on the panes of a window were counted."""
        return self.ages[self.name(window.table), gcd(window.length, self.view.part)]

    @cached_property
    def ages(self) -> dict[tuple[str, int], int]:
        """By stream and seconds of a pane."""
        found, tables = {}, self.checking.graph.tables
        for name, table in tables.items():
            if self.view.name in table.serves and table.helper_kind.startswith("age"):
                known = self.checking.known[name]
                reads = next(n for n in table.input_names if n != name)
                while self.view.name in tables[reads].serves:  # rows with those of forward dimensions
                    reads = next(n for n in tables[reads].input_names if tables[n].kind != "dimension")
                start = -FOREVER if known.start is None else known.start
                found[reads, known.length] = start * known.length
        return found

    def over(self, text: str, spans: list[Range]) -> DataFrame:
        """The query, each window with the rows of these parts."""
        out, at = "", 0
        for number, table in enumerate(self.found.tables):
            name, of = self.name(table.table), self.of.get(number)
            window = self.text.windows[self.windowed[number]] if number in self.windowed else None
            if of is not None:
                stream = self.windowed[of]
                rows = rows_by_part(self.checking, name, self.name(self.found.tables[of].table), spans[stream])
            else:
                rows = self.checking.rows_of(name, None if window is None else spans[self.windowed[number]])
            if window is not None and window.count is not None:
                rows = self.last(rows, window)
            view = f"__verify_several_{next(_names)}"
            rows.drop("_file").createOrReplaceTempView(view)
            self.checking.views.append(view)
            out += text[at : table.start] + view + ("" if table.alias else f" AS `{table.table}`")
            at = table.end
        return self.checking.spark.sql(self.documented(out + text[at:]))

    def documented(self, text: str) -> str:
        """Aggregates over one window mean what is documented for windows, also where the largest groups are asked for."""
        if self.text.limit is None or len(self.text.windows) > 1 or self.text.windows[0].count is not None:
            return text
        return documented(text, calls(Cut(text, 0)), *self.meaning)

    @cached_property
    def meaning(self) -> tuple[list[str], set[str]]:
        """What orders rows, and which sums are of bigint: a query for the largest groups of one window has one stream."""
        assert self.view.query is not None
        query = read(self.view.query.text)
        return moment(self.checking, query, self.name(query.table)), bigints(self.checking, query)

    def last(self, rows: DataFrame, window: Windowed) -> DataFrame:
        """The newest rows of each group; those of equal time by the tie column, then by their values."""
        source = self.checking.definitions[self.name(window.table)]
        assert isinstance(source, Source)
        first = [source.time.column, *([source.time.tie] if source.time.tie else [])]
        types = {f.name: f.dataType.simpleString() for f in rows.schema if f.name in source.columns}
        others = [name for name, kind in types.items() if name not in first and "map<" not in kind]
        by, order = ", ".join(window.by), ", ".join(f"`{name}` DESC" for name in [*first, *others])
        ranked = rows.withColumn("__rank", F.expr(f"row_number() OVER (PARTITION BY {by} ORDER BY {order})"))
        assert window.count is not None
        return ranked.where(F.col("__rank") <= window.count).drop("__rank")
