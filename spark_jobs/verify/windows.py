"""What a view with a window should hold: the query itself over all rows of each window,
its aggregates as they are documented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.definitions import Source, View
from partwise.parts import FOREVER, Range
from partwise.sql.references import find
from spark_jobs.verify.calls import documented
from spark_jobs.verify.clauses import QueryCut, quoted
from spark_jobs.verify.dimensions import conditioned
from spark_jobs.verify.expressions import calls
from spark_jobs.verify.rounding import with_errors
from spark_jobs.verify.sketches import with_bounds

if TYPE_CHECKING:
    from spark_jobs.verify.verify import Checking, Expected

_AT_ONCE = 20


def expect_windows(checking: Checking, view: View, query: QueryCut, table: str, found: Expected) -> None:
    own, length = checking.known[view.name], checking.known[table].length
    window = query.windows[0]
    # An item without a name has one of ours.
    stored = zip(query.items, checking.columns_of(view.name), strict=False)
    names, first_by = [item.alias or name for item, name in stored], moment(checking, query, table)
    summed = bigints(checking, query)
    # From the end of the text to its beginning, so that places in front stay what they are.
    text = documented(query.plain, calls(query.having) if query.having is not None else (), first_by, summed)
    bounds = with_bounds(text, query, names)
    if bounds is None:
        return
    text, found.bounds = bounds.text, bounds if bounds.approximate else None
    if found.bounds is None:
        text = with_errors(text, query, names, checking.doubles_of(view.name))
    text = documented(text, [call for item in query.items for call in calls(item.body)], first_by, summed)
    text, of = conditioned(checking, text)
    references = find(text)
    places = [t.start for t in references.tables]
    by_part = {places[at]: places[stream] for at, stream in of.items()}
    first, age = _begins(checking, view, table)
    some: dict[int, DataFrame] = {}
    for j in own.parts:
        last = (j + 1) * view.part // length - 1
        span = Range(last - window.length // length + 1, last)
        read = Range(max(span.lo, first), span.hi)
        if not checking.has(table, read):
            continue
        spans = {f.start: read if f.table.lower() == query.table else None for f in references.tables}
        rows = checking.run(text, references, spans, by_part=by_part)
        rows = rows.toDF(*names, *rows.columns[len(names) :])
        some[j] = rows.withColumn("partial", F.lit(span.lo < age)) if view.partial else rows
        if len(some) == _AT_ONCE:
            checking.keep(view, found, some)
            some = {}
    if some:
        checking.keep(view, found, some)


def _begins(checking: Checking, view: View, table: str) -> tuple[int, int]:
    """Of a view that shows partial windows: the first part of the table that it reads, and the one from which on
    windows count as whole. Both were settled when it began, and count in parts of the table."""
    if not view.partial:
        return -FOREVER, -FOREVER
    length, found = checking.known[table].length, []
    helpers = {each.helper_kind: name for name, each in checking.graph.tables.items() if view.name in each.serves}
    panes = (helpers[kind] for kind in ("panes", "merged_panes", "values") if kind in helpers)
    for name in (next(panes, table), helpers["age"]):
        known = checking.known[name]
        found.append(-FOREVER if known.start is None else known.start * known.length // length)
    return found[0], found[1]


def bigints(checking: Checking, query: QueryCut) -> set[str]:
    """What is summed up and is a bigint: Spark itself says so, without a row."""
    spans = [item.body for item in query.items] + ([query.having] if query.having is not None else [])
    summed = sorted({call.args[0].text for span in spans for call in calls(span) if call.name == "sum"})
    if not summed:
        return set()
    items = ", ".join(f"{text} AS c{at}" for at, text in enumerate(summed))
    tables = query.plain[query.from_at : query.from_.end]
    text = f"SELECT {items} {tables}"
    references = find(text)
    nothing = {f.start: Range(0, 0) if f.table.lower() == query.table else None for f in references.tables}
    kinds = [field.dataType.simpleString() for field in checking.run(text, references, nothing).schema]
    return {text for text, kind in zip(summed, kinds, strict=True) if kind == "bigint"}


def moment(checking: Checking, query: QueryCut, table: str) -> list[str]:
    """What orders rows, for aggregates that ask for the first or the last one."""
    source = checking.definitions[table]
    given = (source.time.column, source.time.tie) if isinstance(source, Source) else ("part_timestamp",)
    return [f"{quoted(query.alias or query.table)}.{quoted(name)}" for name in given if name]
