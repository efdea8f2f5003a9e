"""A dimension that is joined by keys, in random histories: a change of it makes only parts with changed keys due."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from partwise.ledger.read.pin import version_of
from partwise.ledger.records.dimension_changes import Met
from partwise.parts import Parts
from partwise.tables import Graph, Input, Keyed, Table
from tests.simulation.world import KEYS, Model, Value, key_of, looked_up

if TYPE_CHECKING:
    from tests.simulation.history import History

NAME = "d"


def with_keyed(model: Model, seed: int) -> Model:
    """Most views read the dimension, most of these by a key of something else that they read."""
    model = replace(model, graph=Graph({**model.graph.tables, NAME: Table(NAME, "dimension", 0, NAME)}))
    for view in [t for t in model.graph.tables.values() if t.kind == "view"]:
        some, read = Random(f"{seed} {view.name}"), Input(NAME, None)
        if view.initial != view.inputs and read not in view.inputs:
            continue
        same = view.initial == view.inputs
        inputs = tuple(i for i in view.inputs if i != read)
        if some.random() < 0.8:
            inputs = (*inputs, read)
        new = replace(view, inputs=inputs, initial=inputs if same else view.initial, keyed=())
        others = [i for i in inputs if i.table != view.name and i.reference is not None]
        if same and read in inputs and some.random() < 0.8:
            met = some.choice(others)
            assert met.reference is not None
            new = replace(new, keyed=(Keyed(NAME, ("k",), met.table, ("k",), met.reference),))
        if new != view:
            model = model.with_view(new, model.salts[view.name])
    return model


def look_up(history: History, before: Value, after: Value) -> tuple[Met, ...]:
    """Which parts hold a key that changes, as of now."""
    rules = history.rules
    keys = {k for k in KEYS if looked_up(before, k) != looked_up(after, k)}
    if rules.new_keys_only:
        keys = {k for k in keys if looked_up(after, k) != 0}
    found: dict[str, Met] = {}
    with history.ledger.database.reading() as r:
        graph = history.ledger._catalog.graph(r)
        for item in {item for name in graph.consumers.get(NAME, ()) for item in graph[name].keyed_by(NAME)}:
            at = version_of(r, item.table)
            held = history.storage[item.table, at.generation].at(at.version)
            parts = Parts.single(*(p for p, value in held.items() if key_of(value) in keys))
            seen = 10**9 if rules.no_second_look else r.seq
            met = Met(item.own, item.table, item.columns, parts, seen)
            found[met.by] = met
    return tuple(found.values())


def narrowed(history: History) -> int:
    """How often a part was not due for a change of the dimension."""
    from sqlalchemy import func, select

    from partwise.ledger.schema import dimension_change

    with history.ledger.database.reading() as r:
        query = select(func.count()).select_from(dimension_change).where(dimension_change.c.by.is_not(None))
        return int(r.on.execute(query).scalar() or 0)
