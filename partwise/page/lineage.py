"""Which table is computed from which, for drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from partwise.ledger.read import reports
from partwise.ledger.read.snapshot import Snapshot
from partwise.page.rows import depths
from partwise.page.states import Word
from partwise.parts import part_text
from partwise.tables import Graph


@dataclass(frozen=True, slots=True)
class LineageNode:
    """A table. `depth`: steps of computing from the sources; `state` the worst that it has; `trouble` counts parts."""

    table: str
    kind: str
    helper_of: str | None
    depth: int
    length: int
    parts: int
    last: str | None
    updated: float | None
    state: Word
    trouble: Mapping[Word, int]


@dataclass(frozen=True, slots=True)
class LineageEdge:
    """`reads` are the references, as written; of a dimension all of it is read."""

    source: str
    view: str
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lineage:
    sequence: int
    nodes: tuple[LineageNode, ...]
    edges: tuple[LineageEdge, ...]


def lineage(snapshot: Snapshot, helpers: bool = False) -> Lineage:
    """All tables; without helpers their views read what the helpers read."""
    graph = snapshot.graph
    shown = {name for name in graph.tables if helpers or graph[name].helper_of is None}
    edges = tuple(_edges(graph, shown))
    level = depths(graph) if helpers else _levels(graph, shown, edges)
    nodes = []
    for row in reports.tables(snapshot):
        table = row.table
        if table.name not in shown:
            continue
        trouble: dict[Word, int] = {
            "failed": row.failed,
            "blocked": row.blocked,
            "manual": row.manual,
            "stale": max(0, row.stale - row.blocked - row.manual - row.deferred),
            "deferred": row.deferred,
            "missing": row.missing,
        }
        trouble = {word: count for word, count in trouble.items() if count}
        nodes.append(
            LineageNode(
                table=table.name,
                kind=table.kind,
                helper_of=table.helper_of,
                depth=level[table.name],
                length=0 if table.kind == "dimension" else table.length,
                parts=row.parts,
                last=None if row.last is None or table.kind == "dimension" else part_text(row.last, table.length),
                updated=row.last_updated,
                state=next(iter(trouble), "fresh" if row.parts else "none"),
                trouble=trouble,
            )
        )
    return Lineage(snapshot.r.seq, tuple(nodes), edges)


def _edges(graph: Graph, shown: set[str]) -> Iterator[LineageEdge]:
    for name in (n for n in graph.order if n in shown):
        found: dict[str, dict[str, None]] = {}
        todo, seen = list(graph[name].inputs + graph[name].initial), set()
        while todo:
            item = todo.pop(0)
            if item.table == name or item.table not in graph.tables:
                continue
            if item.table in shown:
                text = "all of it" if item.reference is None else item.reference.text()
                found.setdefault(item.table, {})[text] = None
            elif item.table not in seen:
                seen.add(item.table)
                todo += graph[item.table].inputs + graph[item.table].initial
        yield from (LineageEdge(source, name, tuple(reads)) for source, reads in found.items())


def _levels(graph: Graph, shown: set[str], edges: tuple[LineageEdge, ...]) -> dict[str, int]:
    above: dict[str, list[str]] = {}
    for edge in edges:
        above.setdefault(edge.view, []).append(edge.source)
    found: dict[str, int] = {}
    for name in (n for n in graph.order if n in shown):
        found[name] = max((found[other] + 1 for other in above.get(name, ())), default=0)
    return found
