"""Samples in histories: each is computed as its view is, of the samples of its own earlier parts, and waits for nothing.

The function of a view does not know its name, so in the end a sample holds what its view holds, part by part.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from partwise.ledger.catalog import settled
from partwise.tables import Graph, Input, Table
from tests.simulation.world import Model

if TYPE_CHECKING:
    from tests.simulation.history import History


def with_samples(model: Model, seed: int) -> Model:
    """The same views however often definitions change; most of those that read themselves."""
    made, tables = model, list(model.graph.tables.values())
    for table in tables:
        often = 0.9 if table.self_references else 0.4
        if table.kind == "view" and not table.rolling and Random(f"{seed} {table.name}").random() < often:
            made = made.with_view(_sample(table), model.salts[table.name])
    return replace(made, graph=Graph.of(list(made.graph.tables.values())))


def without_samples(model: Model) -> Model:
    """For whoever edits definitions: nobody edits a helper."""
    tables = [t for t in model.graph.tables.values() if not t.of_sample]
    return model if len(tables) == len(model.graph.tables) else replace(model, graph=Graph.of(tables))


def _sample(table: Table) -> Table:
    name = f"{table.name}__sample"

    def own(items: tuple[Input, ...]) -> tuple[Input, ...]:
        return tuple(replace(i, table=name) if i.table == table.name else i for i in items)

    return replace(
        table,
        name=name,
        inputs=own(table.inputs),
        initial=own(table.initial),
        helper_of=table.name,
        repair="automatic",
        refresh=None,
    )


def check_samples(history: History) -> None:
    """Once nothing is left to do."""
    ledger = history.ledger
    for table in history.model.graph.tables.values():
        if not table.of_sample or table.helper_of is None:
            continue
        with ledger.database.reading() as r:
            begins, own = settled(r, table.helper_of).start, settled(r, table.name).start
        if table.self_references and begins is not None and begins != own:
            history.problems.append(f"{table.helper_of} begins at {begins}, its sample at {own}")
        view, sample = (
            history.storage[n, ledger.current(n).generation].at(ledger.current(n).version)
            for n in (table.helper_of, table.name)
        )
        if begins is None or own is None:
            continue
        for p, value in view.items():
            if p < own or (p == own) != (p == begins):
                continue  # INITIALIZE of one, UPDATE of the other
            if sample.get(p, "nothing") != value:
                history.problems.append(f"{table.name}[{p}] is {sample.get(p, 'nothing')}, its view holds {value}")
