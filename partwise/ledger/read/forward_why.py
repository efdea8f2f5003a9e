"""Which versions of forward dimensions a part reads, and which source part decided it: for `why` and the Parts page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import bindparam, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.read.born import borns, versions
from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.schema import part
from partwise.parts import FOREVER, part_text
from partwise.plan.reach import first_part
from partwise.tables import Graph, Table, is_dated

_BORN = (
    select(part.c.part)
    .where(
        part.c.table == bindparam("t"),
        part.c.part.between(bindparam("a"), bindparam("b")),
        part.c.born == bindparam("born"),
    )
    .order_by(part.c.part.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class ReadVersion:
    """Version `number` (from 1) of `of`. `because`: of the source part that came last, or it was the first one, or the
    one there was when the dimension began to count forward, or somebody said so."""

    dimension: str
    number: int
    of: int
    because: Literal["born", "first", "turned", "repinned"]
    source: str | None = None
    part: int | None = None


def read_versions_of(r: Reading, graph: Graph, view: Table, j: int) -> tuple[ReadVersion, ...]:
    """Nothing for a view without forward dimensions, and for a part whose inputs are not known."""
    names = [name for name in view.input_names if name in graph.forward]
    if not names:
        return ()
    start = settled(r, view.name).start
    start = first_part(view, LedgerParts(r)) if start is None else start
    if start is None or j < start:
        return ()
    read = {i.table for i in (view.initial if j == start else view.inputs)}
    born = borns(r, view, start, [j])[j]
    found = []
    for name in (n for n in names if n in read):
        known = versions(r, name)
        if not known.contents:
            continue
        number, total = known.at(born).number, known.contents[-1].number
        if known.repinned(born) is not None:
            found.append(ReadVersion(name, number, total, "repinned"))
        elif born.seq >= max(known.contents[0].seq, known.since):
            found.append(ReadVersion(name, number, total, "born", *_last_of(r, graph, view, start, j, born.seq)))
        else:
            first = known.contents[0].seq >= known.since
            found.append(ReadVersion(name, number, total, "first" if first else "turned"))
    return tuple(found)


def read_by_window(r: Reading, graph: Graph, view: Table, j: int) -> tuple[ReadVersion, ...]:
    """Of a view over windows: which versions the rows of its newest part read, in the helpers where they are joined."""
    helpers = [t for t in graph.tables.values() if t.length == view.length and is_dated(view.name, t.name)]
    found = (item for helper in helpers for item in read_versions_of(r, graph, helper, j))
    return tuple(dict.fromkeys(found))


def version_text(graph: Graph, item: ReadVersion) -> str:
    """`rates: version 3 of 7, current when m[10:05] came to exist`, without a full stop."""
    if item.source is not None and item.part is not None:
        when = f"current when {item.source}[{part_text(item.part, graph[item.source].length)}] came to exist"
    elif item.because == "first":
        when = "the first one"
    elif item.because == "repinned":
        when = "by `partwise repin`"
    elif item.because == "turned":
        when = "current when it began to count forward"
    else:
        when = "current when the last of what it reads came to exist"
    return f"{item.dimension}: version {item.number} of {item.of}, {when}"


def versions_of_view(r: Reading, graph: Graph, view: str, j: int) -> list[str]:
    """What a part of a view, and of its helpers of the same part length, read of forward dimensions."""
    names = [view, *(name for name, table in graph.tables.items() if table.helper_of == view)]
    tables = [graph[name] for name in names if graph.forward & set(graph[name].input_names)]
    found = [item for t in tables if t.length == graph[view].length for item in read_versions_of(r, graph, t, j)]
    return list(dict.fromkeys(version_text(graph, item) for item in found))


def _last_of(r: Reading, graph: Graph, view: Table, start: int, j: int, born: int) -> tuple[str | None, int | None]:
    """The source part that came to exist last among all that a part is made from."""
    for item in view.initial if j == start else view.inputs:
        if item.reference is None:
            continue
        lo, hi = item.reference.requires(j)
        p = r.on.execute(_BORN, {"t": item.table, "a": lo, "b": hi, "born": born}).scalar()
        if p is None:
            continue
        if graph[item.table].kind == "source":
            return item.table, p
        begins = settled(r, item.table).start
        return _last_of(r, graph, graph[item.table], -FOREVER if begins is None else begins, p, born)
    return None, None
