"""The lineage of a part: parts of other tables, as texts and links. Generated helpers are looked through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from partwise.ledger.read.history import PartHistory
from partwise.ledger.read.snapshot import Snapshot
from partwise.parts import FOREVER, Parts, part_text, range_text
from partwise.plan.next import through_helpers
from partwise.plan.reach import fed, first_part
from partwise.tables import Graph, Table

#: Parts of one table that are listed one by one.
LISTED = 60


@dataclass(frozen=True, slots=True)
class LinkedParts:
    """Parts of another table. `links` are single parts, as long as they are few; `changed` those with a newer revision
    than the one that was read. `whole`: all of a dimension, or every part from now on. `through`: helpers in between."""

    table: str
    parts: tuple[str, ...]
    count: int
    links: tuple[str, ...]
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    revisions: Mapping[str, int] | None = None
    version: int | None = None
    whole: bool = False
    through: tuple[str, ...] = ()


def linked(graph: Graph, name: str, parts: Parts, missing: tuple[str, ...] = ()) -> LinkedParts:
    table = graph[name]
    whole = table.kind == "dimension" or (bool(parts) and parts.last >= FOREVER)
    few = not whole and parts.count <= LISTED
    return LinkedParts(
        table=name,
        parts=() if whole else texts(table, parts),
        count=0 if whole else parts.count,
        links=tuple(part_text(p, table.length) for p in parts) if few else (),
        missing=missing,
        whole=whole,
    )


def texts(table: Table, parts: Parts) -> tuple[str, ...]:
    if table.kind == "dimension":
        return (table.name,) if parts else ()
    return tuple(range_text(span, table.length) for span in parts.ranges)


def computed_from(graph: Graph, known: PartHistory) -> Iterator[LinkedParts]:
    """What was read, at which revisions."""
    for item in known.computed_from:
        of = graph[item.table]
        text = {p: of.name if of.kind == "dimension" else part_text(p, of.length) for p in item.revisions}
        yield replace(
            linked(graph, item.table, item.parts),
            changed=texts(of, Parts.single(*item.changed_since)),
            revisions={text[p]: number for p, number in item.revisions.items()},
            version=item.version,
        )


def upstream(snapshot: Snapshot, known: PartHistory) -> Iterator[LinkedParts]:
    """What the part is computed from, in terms of tables that people know."""
    graph = snapshot.graph
    direct = {item.table: item for item in computed_from(graph, known)}
    own = [need for need in known.needs if need.table == known.table.name]
    others = [need for need in known.needs if need.table != known.table.name]
    helpers = tuple(need.table for need in others if graph[need.table].helper_of is not None)
    for need in [*own, *through_helpers(graph, snapshot.facts, others, always=True)]:
        found = direct.get(need.table) or linked(graph, need.table, need.needed)
        between = () if any(need.table == each.table for each in known.needs) else helpers
        yield replace(found, missing=texts(graph[need.table], need.missing), through=between)


def downstream(snapshot: Snapshot, known: PartHistory) -> Iterator[LinkedParts]:
    """What reads the part, in terms of tables that people know."""
    graph = snapshot.graph
    found: dict[str, tuple[Parts, tuple[str, ...]]] = {}
    todo: list[tuple[str, Parts, tuple[str, ...]]] = [(item.table, item.parts, ()) for item in known.feeds]
    while todo:
        name, parts, between = todo.pop(0)
        if graph[name].helper_of is None or name == known.table.name:
            before = found.get(name, (Parts(), between))
            found[name] = (before[0] | parts, before[1] if len(before[1]) < len(between) else between)
            continue
        for reader in graph.consumers.get(name, ()):
            if reader != name and (touched := fed(graph[reader], _start(snapshot, graph[reader]), name, parts)):
                todo.append((reader, touched, (*between, name)))
    for name, (parts, between) in found.items():
        yield replace(linked(graph, name, parts), through=between)


def _start(snapshot: Snapshot, view: Table) -> int:
    start = snapshot.facts.start(view.name)
    if start is None:
        start = first_part(view, snapshot.facts)
    return -FOREVER if start is None else start
