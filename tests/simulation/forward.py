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
from partwise.ledger.read.born import versions
from partwise.ledger.read.pin import Pin, version_then
from partwise.ledger.schema import part, revision
from partwise.ledger.schema import repin as said
from partwise.parts import Range
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


#: When the last source part came to exist that a part is made from, and when that one begins.
Birth = tuple[int, int]
#: What somebody said: a dimension, from when to when, and the version by its sequence (None: as without it).
Said = tuple[str, int, int, int | None]


@dataclass
class Arrivals:
    """In which order things came in: parts of sources by their first sequence, all versions of dimensions."""

    born: dict[str, dict[int, Birth]] = field(default_factory=dict)
    versions: dict[str, list[tuple[int, Value]]] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)

    def read(self, dimension: str, born: Birth) -> Value:
        """The rule: the last version by the time that the part was born, if there was one and it counted by then. What
        somebody said of the time of the source part that came last goes before it."""
        known = self.versions[dimension]
        latest = max(born[0], known[0][0], self.since[dimension])
        for name, lo, hi, version in self.said:
            if name == dimension and lo <= born[1] <= hi:
                latest = max(born[0], known[0][0], self.since[dimension]) if version is None else version
        return [value for seq, value in known if seq <= latest][-1]

    def add(self, view: Table, start: int, j: int, starts: Mapping[str, int | None]) -> None:
        """When part j of the view is born."""
        spans = [(t, p) for t, span in required(view, start, j, starts) for p in range(span.lo, span.hi + 1)]
        times = [self.born[t][p] for t, p in spans if t in self.born and p in self.born[t]]
        self.born.setdefault(view.name, {})[j] = max(times, default=(0, -1))


def arrivals(history: History, r: Reading) -> Arrivals:
    graph, found = history.model.graph, Arrivals(since=history.forward_since, said=history.said)
    for row in r.on.execute(select(revision).order_by(revision.c.seq)):
        if row.table in graph.forward:
            value = None if row.digest == "None" else int(row.digest)
            found.versions.setdefault(row.table, []).append((row.seq, value))
        elif row.table in graph.tables and graph[row.table].kind == "source":
            birth = (row.seq, row.part * graph[row.table].length)
            found.born.setdefault(row.table, {}).setdefault(row.part, birth)
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
        history.said = [item for item in history.said if item[0] != name]


def repin(history: History) -> None:
    """Somebody says which version counts for a time range, or takes it back."""
    rng, forward = history.rng, sorted(history.model.graph.forward)
    with history.ledger.database.reading() as r:
        known = {name: versions(r, name) for name in forward}
    known = {name: found for name, found in known.items() if found.contents}
    if not known:
        return
    name = rng.choice(sorted(known))
    found = known[name]
    kept = [content.seq for content in found.contents[found.number_for(0) :]]
    version = rng.choice([*kept, None])
    lo = rng.randint(0, 20) * 60
    hi = lo + rng.choice((0, 60, 240, 1200))
    history.ledger.repin(name, Range(lo, hi), version, "somebody", history.now)
    history.said.append((name, lo, hi, version))


def repins_seen(history: History, r: Reading, table: str, j: int, pin: int) -> tuple[int, ...]:
    """What had been said by then of the time of the source part that decides for a part."""
    at = r.on.execute(select(part.c.born_at).where(part.c.table == table, part.c.part == j)).scalar()
    rows = r.on.execute(select(said).where(said.c.seq <= pin)) if at is not None else ()
    read = history.ledger.graph_at(r)[table].input_names
    return tuple(row.seq for row in rows if row.table in read and row.lo <= at <= row.hi)
