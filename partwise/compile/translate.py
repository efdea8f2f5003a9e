"""The way from `query:` to views: parse, plan, write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from partwise.compile.model import InputTable, QueryView, Translation
from partwise.compile.parse import Query, parse
from partwise.compile.pattern.plan import plan_pattern
from partwise.compile.pattern.write import write_pattern
from partwise.compile.result_types import Derived
from partwise.compile.select import Selection
from partwise.compile.several.frequent import is_frequent, translate_frequent
from partwise.compile.several.read import is_plain, is_several, pattern_in
from partwise.compile.several.top import tail_of, translate_top
from partwise.compile.several.translate import translate_several
from partwise.compile.window.plan import plan_window
from partwise.compile.window.write import write_window
from partwise.spelling import did_you_mean, named
from partwise.sql.expressions import changing
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import plain
from partwise.sql.types.known import Columns, type_of


def translate(view: QueryView, inputs: Mapping[str, InputTable]) -> Translation:
    """Helper views and the view itself, as INITIALIZE and UPDATE. Raises TranslationError with every problem."""
    pattern = pattern_in(view.query)
    if pattern is None and (made := _several(view, inputs)) is not None:
        return made
    if view.output == "pairs":
        what = "pairs are rows of a join of windows, and a pattern is none"
        raise TranslationError(SqlProblem(pattern or 0, "pairs-query", what, "remove output:"))
    if view.output == "rolling" and pattern is not None:
        what = "a rolling table holds what its windows give now, and a pattern has no window"
        raise TranslationError(SqlProblem(pattern, "rolling-query", what, "remove output:"))
    query = parse(view.query)
    table = named(inputs, query.table)
    if table is None or table.kind == "dimension":
        raise TranslationError(_no_table(query.table, query.table_offset, table, inputs))
    problems = changing(view.query)
    try:
        made = _made(view, query, with_part_columns(table), inputs)
    except TranslationError as error:
        found = map(_or_rolling, error.problems) if query.window and is_plain(view.query) else error.problems
        raise TranslationError(*found, *problems) from None
    if problems:
        raise TranslationError(*problems)
    return made


def _or_rolling(problem: SqlProblem) -> SqlProblem:
    """What else the rows of a window can be."""
    if problem.code != "not-grouped":
        return problem
    return replace(problem, hint=f"{problem.hint}; output: rolling shows the rows of a window as they are")


def _several(view: QueryView, inputs: Mapping[str, InputTable]) -> Translation | None:
    """None for one window with GROUP BY or aggregates."""
    if is_frequent(view.query):
        return translate_frequent(view, Derived(inputs, lambda _, table: with_part_columns(table)))
    if (tail := tail_of(view.query)) is not None:
        return translate_top(view, inputs, tail, translate)
    if is_several(view.query, inputs) or view.output == "pairs" or (view.output == "rolling" and is_plain(view.query)):
        return translate_several(view, Derived(inputs, lambda _, table: with_part_columns(table)))
    return None


def _made(view: QueryView, query: Query, table: InputTable, inputs: Mapping[str, InputTable]) -> Translation:
    if query.window is not None:
        window = plan_window(view, query, table, inputs)
        return replace(write_window(window), types=_types(window.selection, window.columns))
    pattern = plan_pattern(view, query, table)
    return replace(write_pattern(pattern), types=_types(pattern.selection, table.columns))


def _types(selection: Selection, columns: Columns | None) -> tuple[tuple[str, str], ...]:
    found = [(plain(output.name), type_of(output.formula.piece.tree, columns)) for output in selection.outputs]
    return tuple((name, kind) for name, kind in found if kind is not None)


def with_part_columns(table: InputTable) -> InputTable:
    """Every table has the columns `part` and `part_timestamp` beside its own."""
    if table.columns is None or table.kind == "dimension":
        return table
    return replace(table, columns={**table.columns, "part": "bigint", "part_timestamp": "timestamp"})


def _no_table(name: str, offset: int, table: InputTable | None, inputs: Mapping[str, InputTable]) -> SqlProblem:
    if table is not None:
        return SqlProblem(offset, "bad-from", f"{name} is a dimension: it has no parts", "read a source or a view")
    hint = did_you_mean(name, inputs, f"tables: {', '.join(sorted(inputs)) or 'none'}")
    return SqlProblem(offset, "unknown-table", f"there is no table {name}", hint)
