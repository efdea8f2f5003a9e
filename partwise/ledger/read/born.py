"""When parts were born, and which version of a forward dimension they therefore read.

A source part is born when it first exists; a part of a view when the last of all that it requires is born. Neither
depends on when anything was computed, so late rows, retries, backfills and rebuilt tables read the same version.
To those who read a part, when it was born is as much a part of it as its rows: if it changes, they are due.

Somebody may say that another version counts for a time range (`repin`). It counts for source parts that begin in it, and
for what was born with one of them: views over the same source parts read the same version, as they do without it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import bindparam, func, select

from partwise.ledger.database import Reading
from partwise.ledger.schema import catalog, generation, lost, part, repin, revision
from partwise.parts import FOREVER
from partwise.tables import DIMENSION_PART, Graph, Input, Table

_BORN = tuple(
    select(rows.c.part, rows.c.born, rows.c.born_at).where(
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
_REPINS = (
    select(repin.c.seq, repin.c.lo, repin.c.hi, repin.c.version)
    .where(repin.c.table == bindparam("t"))
    .order_by(repin.c.seq)
)


class Born(NamedTuple):
    """When a part was born: the sequence, and when the source part begins that was born then (the last of several).

    `at` is FOREVER where an older version of Partwise did not write it down.
    """

    seq: int
    at: int


#: Of a part that is made from nothing.
_NEVER = Born(0, -FOREVER)


@dataclass(frozen=True, slots=True)
class DimensionVersion:
    """One version of a dimension: the sequence that made it is its name."""

    seq: int
    rows: int
    at: float
    number: int = 0  # from 1


@dataclass(frozen=True, slots=True)
class Repin:
    """From sequence `seq` on this version counts for source parts that begin from `lo` to `hi`; None: as without it."""

    seq: int
    lo: int
    hi: int
    version: int | None


@dataclass(frozen=True, slots=True)
class Versions:
    """All versions of a forward dimension that are kept, the oldest first, and what was said of them since."""

    contents: tuple[DimensionVersion, ...]
    since: int
    repins: tuple[Repin, ...] = field(default=())

    def number_for(self, born: int) -> int:
        """Which one counts for a part that was born then: the last one by then, or by when there was one to count."""
        known = max(born, self.contents[0].seq, self.since)
        return bisect_right([content.seq for content in self.contents], known) - 1

    def at(self, born: Born, until: int = FOREVER) -> DimensionVersion:
        """What counts for a part, by what was said until a sequence."""
        said = self.repinned(born, until)
        return said if said is not None else self.contents[self.number_for(born.seq)]

    def repinned(self, born: Born, until: int = FOREVER) -> DimensionVersion | None:
        """The version that somebody said; None if nobody did, or what was current is to count again."""
        for item in reversed(self.repins):
            if item.seq <= until and item.lo <= born.at <= item.hi:
                return next((c for c in self.contents if c.seq == item.version), None)
        return None

    def changed(self, born: Born, after: int) -> int:
        """The last sequence after this one at which another version began to count for a part; -1 if there is none."""
        found = -1
        for item in self.repins:
            if item.seq > after and self.at(born, item.seq) != self.at(born, item.seq - 1):
                found = item.seq
        return found


def versions(r: Reading, dimension: str) -> Versions:
    rows = r.on.execute(_VERSIONS, {"t": dimension})
    since = r.on.execute(_SINCE, {"t": dimension}).scalar()
    said = r.on.execute(_REPINS, {"t": dimension})
    contents = tuple(DimensionVersion(row.seq, row.rows, row.at, row.revision) for row in rows)
    return Versions(contents, since or 0, tuple(Repin(*row) for row in said))


def repinned_since(r: Reading, dimension: str, view: str, j: int, seq: int) -> bool:
    """Whether another version counts for a part of a view than at a sequence, because somebody said so since."""
    if not any(row.seq > seq for row in r.on.execute(_REPINS, {"t": dimension})):
        return False
    known = versions(r, dimension)
    rows = [(row.born, row.born_at) for q in _BORN for row in r.on.execute(q, {"t": view, "a": j, "b": j})]
    return any(known.changed(stored(*born), seq) > seq for born in rows)


def borns(r: Reading, view: Table, start: int, parts: Iterable[int]) -> dict[int, Born]:
    """When each of these parts is born, from the parts that it requires as they are now.

    Upwards: what a part reads of its own table is among these parts, or stored.
    """
    wanted = sorted(parts)
    if not wanted:
        return {}
    known = {name: _of_inputs(r, view, name, wanted) for name in {i.table for i in (*view.initial, *view.inputs)}}
    found: dict[int, Born] = {}
    for j in wanted:
        found[j] = max(
            (
                b
                for item in (view.initial if j == start else view.inputs)
                for b in _required(item, view, start, j, known)
            ),
            default=_NEVER,
        )
        if view.name in known:
            known[view.name][j] = found[j]
    return found


def _required(item: Input, view: Table, start: int, j: int, known: Mapping[str, Mapping[int, Born]]) -> Iterable[Born]:
    if item.reference is None:
        return ()
    lo, hi = item.reference.requires(j)
    there = known[item.table]
    first = max(lo, start) if item.table == view.name else lo
    return (there[p] for p in range(first, hi + 1) if p in there)


def _of_inputs(r: Reading, view: Table, name: str, wanted: list[int]) -> dict[int, Born]:
    spans = [
        (item.reference.lo.at(wanted[0]), item.reference.hi.at(wanted[-1]))
        for item in (*view.initial, *view.inputs)
        if item.table == name and item.reference is not None
    ]
    if not spans:
        return {}
    span = {"t": name, "a": min(lo for lo, _ in spans), "b": max(hi for _, hi in spans)}
    return {p: stored(born, at) for query in _BORN for p, born, at in r.on.execute(query, span)}


def stored(born: int | None, at: int | None) -> Born:
    """As the ledger has it."""
    return Born(born or 0, FOREVER if at is None else at)


def same_birth(before: Born | None, now: Born | None) -> bool:
    """Whether readers need not look again; what was not written down is no difference."""
    if before is None or now is None:
        return before is now
    return before.seq == now.seq and (before.at == now.at or FOREVER in (before.at, now.at))


def to_store(born: Born | None) -> dict[str, int | None]:
    if born is None:
        return {"born": None, "born_at": None}
    return {"born": born.seq, "born_at": None if born.at == FOREVER else born.at}


def read_versions(
    r: Reading, graph: Graph, view: Table, start: int, born: Mapping[int, Born]
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
