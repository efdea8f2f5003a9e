"""Definitions to tables as the planner sees them."""

from __future__ import annotations

from collections.abc import Mapping

from partwise.checks.mark import mark_of
from partwise.compile.fingerprint import fingerprint
from partwise.definitions.definitions import Definition, Dimension, Source, Statement, View, inputs_of
from partwise.parts.length import HOUR
from partwise.tables import Input, Table


def to_table(definition: Definition, all_tables: Mapping[str, Definition]) -> Table:
    """`all_tables` has every definition under its name; names in SQL may differ in case."""
    tables = {name: _named(name, all_tables) for name in inputs_of(definition)}
    mark, checks = fingerprint(definition, tables), mark_of(definition.checks)
    if isinstance(definition, Source):
        return Table(definition.name, "source", definition.part, mark, checks=checks)
    if isinstance(definition, Dimension):
        return Table(definition.name, "dimension", 1, mark, checks=checks)
    if definition.update is None:
        raise ValueError(f"{definition.name} has a query that was not translated")
    inputs = _inputs(definition.update, tables)
    initial = inputs if definition.initialize is None else _inputs(definition.initialize, tables)
    return Table(
        name=definition.name,
        kind="view",
        length=definition.part,
        fingerprint=mark,
        inputs=inputs,
        initial=initial,
        start=definition.start,
        repair=definition.repair,
        patience=_patience(definition),
        helper_of=definition.helper_of,
        checks=checks,
        optional=tuple(tables[name.lower()].name for name in definition.optional),
    )


def _patience(view: View) -> float:
    """Bounded, so that an input that changes during every run does not keep its readers waiting for ever; but longer than
    ordinary steps take: whoever does not wait is computed twice."""
    return max(HOUR, view.part) if view.patience is None else view.patience


def _named(name: str, tables: Mapping[str, Definition]) -> Definition:
    """The definition of a table that a query reads; the case of names does not matter."""
    found = tables.get(name)
    return found if found is not None else next(d for other, d in tables.items() if other.lower() == name)


def _inputs(statement: Statement, tables: Mapping[str, Definition]) -> tuple[Input, ...]:
    """Each table and reference once, in order of appearance."""
    found = (Input(tables[f.table.lower()].name, f.reference) for f in statement.found.tables)
    return tuple(dict.fromkeys(found))
