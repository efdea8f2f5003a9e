"""What a view with a window should hold: the query itself over all rows of each window,
its aggregates as they are documented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.compile.parse import Query
from partwise.definitions import Source, View
from partwise.parts import FOREVER, Range
from partwise.sql.references import find
from partwise.sql.text import plain, quoted
from spark_jobs.verify.calls import documented
from spark_jobs.verify.rounding import with_errors
from spark_jobs.verify.sketches import selection_of, with_bounds

if TYPE_CHECKING:
    from spark_jobs.verify.verify import Checking, Expected

_AT_ONCE = 20


def expect_windows(checking: Checking, view: View, query: Query, table: str, found: Expected) -> None:
    assert view.query is not None
    assert query.window is not None
    own, length = checking.known[view.name], checking.known[table].length
    start = query.window.offset
    end = view.query.text.index("]", start) + 1
    text = view.query.text[:start] + " " * (end - start) + view.query.text[end:]
    text = text.rstrip().rstrip(";")
    selection, moment = selection_of(view.query.text, query), _moment(checking, query, table)
    columns = _types(checking, text)
    # From the end of the text to its beginning, so that places in front stay what they are.
    text = documented(text, selection.having.calls if selection.having is not None else (), moment, columns)
    bounds = with_bounds(text, query)
    if bounds is None:
        return
    text, found.bounds = bounds.text, bounds if bounds.approximate else None
    if found.bounds is None:
        text = with_errors(text, query, checking.doubles_of(view.name))
    text = documented(text, [call for output in selection.outputs for call in output.formula.calls], moment, columns)
    names = [output.name for output in selection.outputs]
    references = find(text)
    shift = next(f.start for f in references.tables if plain(f.table) == plain(table)) - query.table_offset
    first, age = _begins(checking, view, table)
    some: dict[int, DataFrame] = {}
    for j in own.parts:
        last = (j + 1) * view.part // length - 1
        span = Range(last - query.window.length // length + 1, last)
        read = Range(max(span.lo, first), span.hi)
        if not checking.has(table, read):
            continue
        spans = {f.start: read if f.start == query.table_offset + shift else None for f in references.tables}
        rows = checking.run(text, references, spans)
        rows = rows.toDF(*names, *rows.columns[len(names) :])  # SUM(x) without a name has one of ours
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
    panes = (f"{view.name}__{kind}" for kind in ("panes", "merged_panes", "values"))
    read = next((name for name in panes if name in checking.known), table)
    for name in (read, f"{view.name}__age"):
        known = checking.known[name]
        found.append(-FOREVER if known.start is None else known.start * known.length // length)
    return found[0], found[1]


def _types(checking: Checking, text: str) -> dict[str, str | None]:
    """Of the columns of all tables that the query reads; a name with two types has none."""
    found: dict[str, str | None] = {}
    for reference in find(text).tables:
        name = next(n for n in checking.graph.tables if n.lower() == reference.table.lower())
        whole = checking.graph[name].kind == "dimension"
        for field in checking.rows_of(name, None if whole else Range(0, 0)).schema:
            kind = field.dataType.simpleString()
            found[plain(field.name)] = kind if found.get(plain(field.name), kind) == kind else None
    return found


def _moment(checking: Checking, query: Query, table: str) -> list[str]:
    """What orders rows, for aggregates that ask for the first or the last one."""
    source = checking.definitions[table]
    given = (source.time.column, source.time.tie) if isinstance(source, Source) else ("part_timestamp",)
    return [f"{quoted(plain(query.alias or query.table))}.{quoted(name)}" for name in given if name]
