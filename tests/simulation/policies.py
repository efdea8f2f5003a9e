"""Random refresh policies for the views of a history, and what must hold of them whatever the planner does."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from partwise.ledger.catalog import settled
from partwise.ledger.runs import due_rows
from partwise.parts import Parts
from partwise.plan.refresh import Refresh
from partwise.tables import Graph, Table
from tests.simulation.world import Model, required

if TYPE_CHECKING:
    from tests.simulation.history import History


def with_policies(model: Model, seed: int, published: bool) -> Model:
    """The same policy for a view however often its definition changes."""
    tables = []
    for table in model.graph.tables.values():
        rng = Random(f"{seed} {table.name}")
        policy = _policy(rng, published) if table.kind == "view" and rng.random() < 0.6 else None
        tables.append(replace(table, refresh=policy))
    return replace(model, graph=Graph.of(tables))


def _policy(rng: Random, published: bool) -> Refresh:
    kinds = rng.sample(("every", "rows", "behind"), rng.choice((1, 1, 2)))
    return Refresh(
        every=rng.choice((5.0, 30.0, 200.0)) if "every" in kinds else None,
        rows=((rng.choice(("", "s")), rng.choice((2, 5, 1000))),) if "rows" in kinds else (),
        behind=rng.choice((2, 3, 100)) if "behind" in kinds else None,
        when=rng.choice(("any", "all")),
        within=rng.choice((60.0, 400.0)),
        readers="published" if published else "wait",
        new=rng.choice(("with the rest", "with the rest", "at once")),
    )


def note_released(history: History, name: str) -> None:
    """A step is about to be pinned: what its plan names is released, and stays so until it is computed."""
    if history.policies is not None and not history.published:
        _check_waiting(history, name)
    table = history.model.graph.tables.get(name)  # another process may know a newer graph
    if table is not None and table.refresh is not None:
        for step in history.ledger.plan(history.now).steps:
            if step.table == name:
                history.released |= {(name, j) for j in range(step.parts.lo, step.parts.hi + 1)}


def _check_waiting(history: History, name: str) -> None:
    """Nothing is planned over deferred parts: it would mix what they hold with what is newer."""
    plan, graph = history.ledger.plan(history.now), history.model.graph
    deferred = {item.table: item.parts for item in plan.deferred}
    with history.ledger.database.reading() as r:
        starts = {step.table: settled(r, step.table).start for step in plan.steps}
    for step in plan.steps:
        start = starts[step.table]
        if step.table != name or name not in graph.tables or start is None:
            continue
        for j in range(step.parts.lo, step.parts.hi + 1):
            for other, span in required(graph[name], start, j):
                if other != name and (waits := deferred.get(other, Parts()).within(span.lo, span.hi)):
                    history.problems.append(f"{name}[{j}] is planned while {other}{[*waits]} is deferred")


def check_deferred(history: History, wanted: dict[str, set[int]], planned: dict[str, set[int]]) -> None:
    """Whatever is ready is planned or deferred, and deferred is nothing that was released or requested."""
    deferred = {item.table: set(item.parts) for item in history.ledger.plan(history.now).deferred}
    for name, ready in wanted.items():
        done, waits = planned.get(name, set()), deferred.get(name, set())
        if done | waits != ready or done & waits:
            history.problems.append(
                f"{name}: ready is {sorted(done)} and {sorted(waits)} deferred, not {sorted(ready)}"
            )
        if again := {j for j in waits if (name, j) in history.released}:
            history.problems.append(f"{name}{sorted(again)} was released and waits again")
        behind = _followers(history.model.graph[name], waits, max(done, default=0))
        if early := done & behind:
            history.problems.append(f"{name}{sorted(early)} is computed before earlier parts of its own that it needs")
        with history.ledger.database.reading() as r:
            rows = [row for row in due_rows(r, name) if row.cause.kind == "requested"]
        requested = {j for row in rows for j in range(row.lo, row.hi + 1)} & ready
        if requested - done:
            history.problems.append(f"{name}{sorted(requested - done)} was requested and is deferred")


def _followers(view: Table, parts: set[int], last: int) -> set[int]:
    """Everything up to `last` that reads these parts of the view itself, directly or through others."""
    found = set(parts)
    for j in range(min(parts, default=last) + 1, last + 1):
        if any(p in found for r in view.self_references for p in range(r.requires(j).lo, r.requires(j).hi + 1)):
            found.add(j)
    return found
