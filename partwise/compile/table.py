"""Tables of a program as the planner sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from partwise.checks.mark import mark_of
from partwise.compile.fingerprint import fingerprint
from partwise.compile.program import ProgramTable, Runnable
from partwise.definitions.definitions import Dimension, Source, Statement
from partwise.parts.length import HOUR
from partwise.plan.refresh import Refresh
from partwise.tables import Input, Table


def to_table(definition: ProgramTable, all_tables: Mapping[str, ProgramTable]) -> Table:
    """`all_tables` has every table under its name; names in SQL may differ in case."""
    read = definition.inputs if isinstance(definition, Runnable) else ()
    tables = {name: _named(name, all_tables) for name in read}
    mark, checks = fingerprint(definition, tables), mark_of(definition.checks)
    if isinstance(definition, Source):
        return Table(definition.name, "source", definition.part, mark, checks=checks)
    if isinstance(definition, Dimension):
        forward, timed = definition.change == "forward", definition.valid_from is not None
        return Table(definition.name, "dimension", 1, mark, checks=checks, forward=forward, timed=timed)
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
        freshness=min((view.freshness for view in definition.served if view.freshness is not None), default=None),
        repair=_repair(definition),
        refresh=None if definition.beside else _refresh(definition, all_tables),
        patience=_patience(definition),
        helper_of=definition.helper_of,
        also=tuple(view.name for view in definition.others),
        checks=checks,
        optional=tuple(tables[name.lower()].name for name in definition.optional),
        rolling=definition.rolling,
    )


def _refresh(view: Runnable, tables: Mapping[str, ProgramTable]) -> Refresh | None:
    """With the names of inputs as their definitions spell them."""
    policy = view.written.refresh
    if policy is None or not policy.rows:
        return policy
    names = {name.lower(): name for name in tables}
    return replace(policy, rows=tuple((names.get(name.lower(), name), least) for name, least in policy.rows))


def _repair(view: Runnable) -> Literal["automatic", "manual"]:
    """The most eager of the views that a helper serves. What stands beside a view is there to be fresh while it waits."""
    eager = view.beside or any(each.repair == "automatic" for each in view.served)
    return "automatic" if eager else "manual"


def _patience(view: Runnable) -> float:
    """Bounded, so that an input that changes during every run does not keep its readers waiting for ever; but longer than
    ordinary steps take: whoever does not wait is computed twice."""
    given = [max(HOUR, view.part) if each.patience is None else each.patience for each in view.served]
    return min(given)


def _named(name: str, tables: Mapping[str, ProgramTable]) -> ProgramTable:
    """The table that a query reads; the case of names does not matter."""
    found = tables.get(name)
    return found if found is not None else next(d for other, d in tables.items() if other.lower() == name)


def _inputs(statement: Statement, tables: Mapping[str, ProgramTable]) -> tuple[Input, ...]:
    """Each table and reference once, in order of appearance."""
    found = (Input(tables[f.table.lower()].name, f.reference) for f in statement.found.tables)
    return tuple(dict.fromkeys(found))
