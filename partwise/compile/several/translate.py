"""A query over several streams -> views: read, check, write by the strategy that is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from partwise.compile.model import Choice, GeneratedView, InputTable, QueryView, Translation, Variant, WindowShape
from partwise.compile.several.cells import cells, weight, why_not_cells
from partwise.compile.several.check import problems_of
from partwise.compile.several.factor import factor, factored, why_not_factor
from partwise.compile.several.grid import grid, shortest, stays, why_not_grid
from partwise.compile.several.last import last, why_not_last
from partwise.compile.several.pairs import pairs, pairs_problems
from partwise.compile.several.partial import with_partial
from partwise.compile.several.read import Several, read
from partwise.compile.several.recompute import recompute
from partwise.sql.expressions import changing
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import plain
from partwise.sql.types.known import type_of

#: Why strategies are not possible where windows are shown that are not complete yet.
_WAYS_OF_WHOLE_WINDOWS: dict[str, str | None] = dict.fromkeys(
    ("last", "factor", "grid", "cells"), "it is for windows that are complete, and partial: true shows others"
)

DEFAULT = Choice("recompute", "every part is computed from the rows of its windows")

PAIRS = Choice("grid", "new rows of each stream are joined with the windows of the others")


def translate_several(view: QueryView, inputs: Mapping[str, InputTable]) -> Translation:
    """Raises TranslationError with every problem."""
    query = read(view.query, inputs)
    problems = [*problems_of(query, view), *changing(query.plain)]
    problems += pairs_problems(view, query) if view.output == "pairs" else []
    if problems:
        raise TranslationError(*problems)
    made = _made(view, query)
    return replace(made, types=types_of(query))


def _made(view: QueryView, query: Several) -> Translation:
    if view.output == "pairs":
        return Translation(tuple(pairs(view, query)), PAIRS)
    ways: list[Variant] = [Variant("recompute", tuple(_recomputed(view, query)))]
    unlike = (
        _WAYS_OF_WHOLE_WINDOWS
        if view.partial
        else {
            "last": why_not_last(view, query),
            "factor": why_not_factor(view, query),
            "grid": why_not_grid(view, query),
            "cells": why_not_cells(view, query),
        }
    )
    ways += [Variant("last", tuple(last(view, query)))] if unlike["last"] is None else []
    ways += [Variant("factor", tuple(factor(view, query, factored(query))))] if unlike["factor"] is None else []
    ways += [Variant("grid", tuple(grid(view, query)))] if unlike["grid"] is None else []
    ways += [Variant("cells", tuple(cells(view, query)))] if unlike["cells"] is None else []
    taken = next((way for way in ways if way.strategy == (view.strategy or "recompute")), None)
    if taken is None:
        why = unlike.get(view.strategy or "", "it is for one window with GROUP BY")
        what = f"strategy {view.strategy} is not possible: {why}"
        at = query.streams[0].bracket[0]
        raise TranslationError(SqlProblem(at, "bad-strategy", what, "recompute is always possible"))
    choice = DEFAULT if view.strategy is None else Choice(taken.strategy, "requested by strategy:")
    stream = query.streams[0]
    if unlike["last"] is None:
        shape = WindowShape(stream.table.name, stream.ratio(view.part), stream.panes(view.part), 1, False, "last")
    elif unlike["grid"] is None and view.output == "rolling":
        shape = WindowShape(stream.table.name, stream.ratio(view.part), shortest(view, query), 1, False, "grid")
    elif unlike["cells"] is None:
        possible = tuple(way.strategy for way in ways if way.strategy in ("recompute", "factor", "cells"))
        panes, ratio = stream.panes(view.part), stream.ratio(view.part)
        shape = WindowShape(
            stream.table.name, ratio, panes, 1, False, "cells", weight(view, query), stays(view, query), possible
        )
    else:
        return Translation(taken.views, choice)  # of the others recompute was the quickest wherever it was measured
    return Translation(taken.views, choice, variants=tuple(ways), shape=shape)


def _recomputed(view: QueryView, query: Several) -> list[GeneratedView]:
    made = recompute(view, query)
    return with_partial(view, query, made) if view.partial else made


def types_of(query: Several) -> tuple[tuple[str, str], ...]:
    """Of the result's columns, where they are plain; a name that two tables have with different types has none."""
    if not isinstance(query.tree, exp.Select):
        return ()
    found: dict[str, str | None] = {}
    for table in [*(s.table for s in query.streams), *(t for _, t in query.dimensions)]:
        if table.columns is None:
            return ()
        for name, kind in table.columns.items():
            found[plain(name)] = kind if found.get(plain(name), kind) == kind else None
    if query.tree.find(exp.Subquery):
        return ()
    items = [(plain(i.alias_or_name), i.this if isinstance(i, exp.Alias) else i) for i in query.tree.expressions]
    types = [(name, type_of(item, found)) for name, item in items]
    return tuple((name, kind) for name, kind in types if kind is not None)
