"""Spark's types of a view's columns, where its query makes them plain: for queries that read the view."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from partwise.definitions.definitions import Definition, View
from partwise.definitions.names import STORED
from partwise.sql.references import Analysis

if TYPE_CHECKING:
    from sqlglot import exp

Types = Mapping[str, str | None]
_Of = TypeVar("_Of")
_Made = TypeVar("_Made")


class Derived(Mapping[str, _Made], Generic[_Of, _Made]):
    """What follows from each table of a workspace, by the same names, made when somebody asks for it.

    A view reads a few of thousands of tables: making something of all of them for every view grows with the square of
    their number.
    """

    def __init__(self, tables: Mapping[str, _Of], make: Callable[[str, _Of], _Made]) -> None:
        self._tables, self._make = tables, make
        self._made: dict[str, _Made] = {}

    def __getitem__(self, name: str) -> _Made:
        if name not in self._made:
            self._made[name] = self._make(name, self._tables[name])
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """What is known for sure of the columns that a view gives: all names or None, types by lower-case name."""

    names: tuple[str, ...] | None = None
    types: Mapping[str, str] = field(default_factory=dict)


#: Of views, by lower-case name, filled in the order in which they read each other.
Results = Mapping[str, ResultColumns]


def result_types(
    view: View, analyses: Mapping[str, Analysis], tables: Mapping[str, Definition], results: Results
) -> dict[str, str]:
    """Column, lower case -> type; what is not sure is left out. `tables` by lower-case name."""
    trees = [a.tree for key in ("initialize", "update") if (a := analyses.get(key)) is not None]
    known: Mapping[str, Types] = Derived(tables, lambda name, table: _columns(name, table, results))
    try:
        found: dict[str, str] | None = None
        for tree in trees:
            if tree is None:
                return {}
            # What reads itself keeps its types if it gives those of its first part again.
            types = _of_query(tree, ChainMap({view.name.lower(): {**(found or {}), **STORED}}, known))  # type: ignore[arg-type]
            now = {name: kind for name, kind in types.items() if kind is not None}
            found = now if found is None else dict(found.items() & now.items())
        return found or {}
    except Exception:  # a convenience: without types a query is asked to CAST
        return {}


def _columns(name: str, table: Definition, results: Results) -> Types:
    if isinstance(table, View):
        found = results.get(name, ResultColumns())
        return {**found.types, **STORED} if found.names is not None else {}
    return {name.lower(): kind for name, kind in table.columns.items()} | STORED


def _of_query(tree: exp.Expr, tables: Mapping[str, Types]) -> Types:
    from sqlglot import exp

    from partwise.sql.types.known import type_of

    if isinstance(tree, exp.Subquery):
        return _of_query(tree.this, tables)
    if not isinstance(tree, exp.Select) or any(
        tree.args.get(key) for key in ("with_", "laterals", "operation_modifiers")
    ):
        return {}
    columns = _of_sources(tree, tables)
    found: dict[str, str | None] = {}
    for item in tree.expressions:
        if item.is_star:
            return {}
        name = item.alias_or_name.lower()
        inner = item.this if isinstance(item, exp.Alias) else item
        found[name] = type_of(inner, columns) if name not in found else None
    return found


def _of_sources(tree: exp.Select, tables: Mapping[str, Types]) -> Types:
    """Columns of everything in FROM; a name that two tables have with different types has none."""
    from sqlglot import exp

    first = tree.args.get("from_")
    sources = [first.this] if first is not None else []
    sources += [join.this for join in tree.args.get("joins") or []]
    found: dict[str, str | None] = {}
    for source in sources:
        alias = source.args.get("alias")
        if (alias is not None and alias.args.get("columns")) or source.args.get("pivots"):
            return {}
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            types = tables.get(source.name.lower(), {})
        elif isinstance(source, exp.Subquery):
            types = _of_query(source, tables)
        else:
            return {}
        if not types:
            return {}  # a column may come from there
        for name, kind in types.items():
            found[name] = kind if found.get(name, kind) == kind else None
    return found
