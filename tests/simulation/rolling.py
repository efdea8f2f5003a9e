"""Rolling tables in histories: which views are some, and what must hold of them whatever the planner does."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from partwise.tables import Graph, Table
from tests.simulation.world import Model, Value


def with_rolling(model: Model, seed: int) -> Model:
    """Most views that nobody reads, the same ones however often definitions change."""
    tables = []
    for table in model.graph.tables.values():
        rolls = Random(f"{seed} {table.name}").random() < 0.8 and _may_roll(model.graph, table)
        tables.append(replace(table, rolling=rolls))
    return replace(model, graph=Graph.of(tables))


def _may_roll(graph: Graph, table: Table) -> bool:
    return table.kind == "view" and not graph.consumers.get(table.name) and not table.self_references


def newest_of(parts: dict[int, Value]) -> dict[int, Value]:
    return {p: v for p, v in parts.items() if p == max(parts)}


def newest_ready(ready: set[int], shown: set[int], failed: set[int]) -> set[int]:
    """Of parts that could be computed the newest; no older one takes the place of one that failed."""
    able = {j for j in ready if j in shown or j > max(failed, default=j - 1)}
    return {max(able)} if able else set()
