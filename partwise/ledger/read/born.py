"""When parts were born, and which version of a forward dimension they therefore read.

A source part is born when it first exists; a part of a view when the last of all that it requires is born. Neither
depends on when anything was computed, so late rows, retries, backfills and rebuilt tables read the same version.
To those who read a part, when it was born is as much a part of it as its rows: if it changes, they are due.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from partwise.ledger.database import Reading
from partwise.ledger.schema import catalog, generation, lost, part, revision
from partwise.tables import DIMENSION_PART, Graph, Input, Table

_BORN = tuple(
    select(rows.c.part, rows.c.born).where(
        rows.c.table == bindparam("t"), rows.c.part.between(bindparam("a"), bindparam("b"))
    )
    for rows in (lost, part)
)
_VERSIONS = (
    select(revision.c.seq, revision.c.revision, revision.c.rows, revision.c.at)
    .where(
        revision.c.table == bindparam("t"),
        revision.c.part == DIMENSION_PART,
        revision.c.seq
        >= func.coalesce(
            select(func.max(generation.c.began_seq)).where(generation.c.table == bindparam("t")).scalar_subquery(), 0
        ),
    )
    .order_by(revision.c.seq)
)
_SINCE = select(catalog.c.forward_since).where(catalog.c.table == bindparam("t"))


@dataclass(frozen=True, slots=True)
class DimensionVersion:
    """One version of a dimension: the sequence that made it is its name."""

    seq: int
    rows: int
    at: float


@dataclass(frozen=True, slots=True)
class Versions:
    """All versions of a forward dimension, the oldest first."""

    contents: tuple[DimensionVersion, ...]
    since: int

    def number_for(self, born: int) -> int:
        """Which one counts for a part that was born then: the last one by then, or by when there was one to count."""
        known = max(born, self.contents[0].seq, self.since)
        return bisect_right([content.seq for content in self.contents], known) - 1

    def at(self, born: int) -> DimensionVersion:
        return self.contents[self.number_for(born)]


def versions(r: Reading, dimension: str) -> Versions:
    rows = r.on.execute(_VERSIONS, {"t": dimension})
    since = r.on.execute(_SINCE, {"t": dimension}).scalar()
    return Versions(tuple(DimensionVersion(row.seq, row.rows, row.at) for row in rows), since or 0)


def borns(r: Reading, view: Table, start: int, parts: Iterable[int]) -> dict[int, int]:
    """When each of these parts is born, from the parts that it requires as they are now.

    Upwards: what a part reads of its own table is among these parts, or stored.
    """
    wanted = sorted(parts)
    if not wanted:
        return {}
    known = {name: _of_inputs(r, view, name, wanted) for name in {i.table for i in (*view.initial, *view.inputs)}}
    found: dict[int, int] = {}
    for j in wanted:
        found[j] = max(
            (
                b
                for item in (view.initial if j == start else view.inputs)
                for b in _required(item, view, start, j, known)
            ),
            default=0,
        )
        if view.name in known:
            known[view.name][j] = found[j]
    return found


def _required(item: Input, view: Table, start: int, j: int, known: Mapping[str, Mapping[int, int]]) -> Iterable[int]:
    if item.reference is None:
        return ()
    lo, hi = item.reference.requires(j)
    there = known[item.table]
    first = max(lo, start) if item.table == view.name else lo
    return (there[p] for p in range(first, hi + 1) if p in there)


def _of_inputs(r: Reading, view: Table, name: str, wanted: list[int]) -> dict[int, int]:
    spans = [
        (item.reference.lo.at(wanted[0]), item.reference.hi.at(wanted[-1]))
        for item in (*view.initial, *view.inputs)
        if item.table == name and item.reference is not None
    ]
    if not spans:
        return {}
    span = {"t": name, "a": min(lo for lo, _ in spans), "b": max(hi for _, hi in spans)}
    return {p: born or 0 for query in _BORN for p, born in r.on.execute(query, span)}


def read_versions(
    r: Reading, graph: Graph, view: Table, start: int, born: Mapping[int, int]
) -> dict[int, dict[str, int]]:
    """By part the versions that it reads of forward dimensions, by their names. Empty if the view reads none of them."""
    first, later = ({i.table for i in items if i.table in graph.forward} for items in (view.initial, view.inputs))
    # One that only later parts read may not be loaded yet.
    known = {name: found for name in sorted(first | later) if (found := versions(r, name)).contents}
    if not first | later:
        return {}
    return {
        j: {name: known[name].at(b).seq for name in (first if j == start else later) if name in known}
        for j, b in born.items()
    }
