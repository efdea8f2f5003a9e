"""Tables of a program as the planner sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from partwise.checks.mark import mark_of
from partwise.compile.dimensions import meets_validity
from partwise.compile.fingerprint import fingerprint
from partwise.compile.program import Program, ProgramTable, Runnable
from partwise.definitions.definitions import Dimension, Source, Statement
from partwise.parts.length import HOUR
from partwise.plan.refresh import Refresh
from partwise.tables import Input, Keyed, Table


def to_table(definition: ProgramTable, all_tables: Mapping[str, ProgramTable], program: Program | None = None) -> Table:
    """`all_tables` has every table under its name; names in SQL may differ in case. `program` knows what views join."""
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
        refresh=None if definition.beside and not definition.keeps else _refresh(definition, all_tables),
        patience=_patience(definition),
        helper_of=definition.helper_of,
        also=tuple(view.name for view in definition.others),
        checks=checks,
        optional=tuple(tables[name.lower()].name for name in definition.optional),
        rolling=definition.rolling,
        keyed=() if program is None else _keyed(definition, tables, program),
        own_times=_own_times(definition, tables),
    )


def _own_times(view: Runnable, tables: Mapping[str, ProgramTable]) -> bool:
    """Whether rows of its own earlier parts meet rows of a dimension that were valid at their time."""
    if not any(isinstance(table, Dimension) and table.valid_from is not None for table in tables.values()):
        return False
    own = (found for found in view.update.found.tables if found.table.lower() == view.name.lower())
    return any(meets_validity(view.update.text, found.alias or found.table) for found in own)


def _counts_everywhere(dimension: Dimension) -> bool:
    """Whether a new version counts for all parts, unless joins say more: not forward, nor for a time."""
    return dimension.change != "forward" and dimension.valid_from is None


def _keyed(view: Runnable, tables: Mapping[str, ProgramTable], program: Program) -> tuple[Keyed, ...]:
    """By which columns of which references dimensions are joined. A view with INITIALIZE has two queries: nothing is said."""
    read = [tables[found.table.lower()] for found in view.update.found.tables]
    if (
        view.initialize is not None
        or view.rolling
        or not any(isinstance(t, Dimension) and _counts_everywhere(t) for t in read)
    ):
        return ()
    # Imported here: the parser takes longer than all the rest, and few views read a dimension.
    from partwise.compile.relations import Relations
    from partwise.relation import joined

    found = joined(Relations(program).of(view).tree)
    keyed: dict[str, list[Keyed]] = {}
    for n, dimension in enumerate(read):
        if not isinstance(dimension, Dimension) or not _counts_everywhere(dimension):
            continue
        for by in found.get(n, ()):
            reference = view.update.found.tables[by.occurrence].reference
            assert reference is not None
            item = Keyed(dimension.name, by.own, read[by.occurrence].name, by.columns, reference)
            keyed.setdefault(dimension.name, []).append(item)
    everywhere = {t.name for n, t in enumerate(read) if isinstance(t, Dimension) and n not in found}
    own = {name for name, items in keyed.items() if any(item.table == view.name for item in items)}
    return tuple(
        i for name, items in sorted(keyed.items()) if name not in everywhere | own for i in dict.fromkeys(items)
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
