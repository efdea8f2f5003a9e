"""A query over several streams -> views: read, check, write by the strategy that is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from partwise.compile.model import Choice, InputTable, QueryView, Translation, TranslationError
from partwise.compile.several.check import problems_of
from partwise.compile.several.read import Several, read
from partwise.compile.several.recompute import recompute
from partwise.sql.expressions import changing
from partwise.sql.text import plain
from partwise.sql.types.known import type_of

DEFAULT = Choice("recompute", "every part is computed from the rows of its windows")


def translate_several(view: QueryView, inputs: Mapping[str, InputTable]) -> Translation:
    """Raises TranslationError with every problem."""
    query = read(view.query, inputs)
    problems = [*problems_of(query, view), *changing(query.plain)]
    if problems:
        raise TranslationError(*problems)
    made = Translation(tuple(recompute(view, query)), DEFAULT)
    return replace(made, types=types_of(query))


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
