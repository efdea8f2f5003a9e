"""Forward dimensions in random histories: models that read them, and the rule as plain as it can be written.

Nothing here asks the ledger when a part was born: only in which order sources and dimensions came in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

from sqlalchemy import select

from partwise.ledger.database import Reading
from partwise.ledger.read.pin import Pin, version_then
from partwise.ledger.schema import revision
from partwise.tables import DIMENSION_PART, Graph, Input, Start, Table
from tests.simulation.world import Model, Value, required

if TYPE_CHECKING:
    from tests.simulation.history import History

NAMES = ("d", "e")


def with_forward(model: Model, seed: int, turned: bool = False) -> Model:
    """One or two dimensions, forward unless `turned`, which most views read: the same ones whatever their definition."""
    for name in NAMES[: 1 + seed % 2]:
        tables = {**model.graph.tables, name: Table(name, "dimension", 0, name, forward=not turned)}
        model = replace(model, graph=Graph(tables))
        for view in [t for t in model.graph.tables.values() if t.kind == "view"]:
            some = Random(f"{seed} {view.name} {name}")
            read = Input(name, None)
            if some.random() < 0.6 and read not in view.inputs:
                first = view.initial if some.random() < 0.2 else (*view.initial, read)
                model = model.with_view(
                    replace(view, inputs=(*view.inputs, read), initial=first), model.salts[view.name]
                )
    return model


def beginning_at_once(model: Model) -> Model:
    """Where views begin is settled by what exists when they are first built: here by their definitions."""
    for view in [t for t in model.graph.tables.values() if t.kind == "view"]:
        model = model.with_view(replace(view, start=Start("at", 420 // view.length)), model.salts[view.name])
    return model


@dataclass
class Arrivals:
    """In which order things came in: parts of sources by their first sequence, all versions of dimensions."""

    born: dict[str, dict[int, int]] = field(default_factory=dict)
    versions: dict[str, list[tuple[int, Value]]] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)

    def read(self, dimension: str, born: int) -> Value:
        """The rule: the last version by the time that the part was born, if there was one and it counted by then."""
        known = self.versions[dimension]
        latest = max(born, known[0][0], self.since[dimension])
        return [value for seq, value in known if seq <= latest][-1]

    def add(self, view: Table, start: int, j: int, starts: Mapping[str, int | None]) -> None:
        """When part j of the view is born."""
        spans = [(t, p) for t, span in required(view, start, j, starts) for p in range(span.lo, span.hi + 1)]
        times = [self.born[t][p] for t, p in spans if t in self.born and p in self.born[t]]
        self.born.setdefault(view.name, {})[j] = max(times, default=0)


def arrivals(history: History, r: Reading) -> Arrivals:
    graph, found = history.model.graph, Arrivals(since=history.forward_since)
    for row in r.on.execute(select(revision).order_by(revision.c.seq)):
        if row.table in graph.forward:
            value = None if row.digest == "None" else int(row.digest)
            found.versions.setdefault(row.table, []).append((row.seq, value))
        elif row.table in graph.tables and graph[row.table].kind == "source":
            found.born.setdefault(row.table, {}).setdefault(row.part, row.seq)
    return found


def at_versions(history: History, pin: Pin) -> dict[str, dict[int, Value]]:
    """What the step reads of forward dimensions: the product's choice, from the storage of the simulation."""
    with history.ledger.database.reading() as r:
        found = {name: version_then(r, name, seq) for name, seq in pin.forward.items()}
    return {
        name: {DIMENSION_PART: history.storage[name, at.generation].at(at.version)[DIMENSION_PART]}
        for name, at in found.items()
    }


def note_turned(history: History) -> None:
    """Since when dimensions count forward, after definitions were taken over."""
    now = history.model.graph.forward
    for name in now - history.forward_since.keys():
        history.forward_since[name] = history.sequence()
    for name in history.forward_since.keys() - now:
        del history.forward_since[name]
