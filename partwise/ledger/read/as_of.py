"""What readers see as of one sequence: the version of every table, and which parts of the sources exist by then.

A source's table also holds rows of parts that are not closed yet. Those parts do not exist for anyone, and
readers who come through Partwise do not see them.

Everything here goes by the sequence, never by a clock, and from records that do not change once they are written:
the same sequence gives the same answer, whenever it is asked.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import bindparam, func, select, text

from partwise.ledger.catalog import settled
from partwise.ledger.database import Database, Reading
from partwise.ledger.read.pin import Version
from partwise.ledger.runs import existing
from partwise.ledger.schema import catalog, generation, rebuild, revision, version
from partwise.parts import FOREVER, Parts

_SOURCES = select(catalog.c.table).where(catalog.c.kind == "source")
# Closing a part of a source manually makes a revision, but no version. Time grows with the sequence, so that the last
# row by time is the last one by sequence.
_SEQUENCE = text(
    "SELECT (SELECT seq FROM version WHERE at <= :m ORDER BY at DESC, seq DESC LIMIT 1), "
    '(SELECT MAX((SELECT r.seq FROM revision AS r WHERE r."table" = c."table" AND r.at <= :m '
    "ORDER BY r.at DESC LIMIT 1)) FROM catalog AS c WHERE c.kind = 'source')"
)
_AT = select(version.c.at).where(version.c.seq <= bindparam("s")).order_by(version.c.at.desc()).limit(1)
_NEWER = select(revision.c.part).where(
    revision.c.table == bindparam("t"),
    revision.c.at > bindparam("a"),
    revision.c.seq > bindparam("s"),
    revision.c.revision == 1,
)
_THERE = (
    select(revision.c.part)
    .where(revision.c.table == bindparam("t"), revision.c.seq <= bindparam("s"), revision.c.seq >= bindparam("b"))
    .distinct()
    .order_by(revision.c.part)
)
_GENERATION = select(generation.c.began_seq, generation.c.whole_seq).where(
    generation.c.table == bindparam("t"), generation.c.generation == bindparam("g")
)
_BEFORE = (
    select(version.c.generation, version.c.version)
    .where(version.c.table == bindparam("t"), version.c.seq <= bindparam("s"), version.c.generation < bindparam("g"))
    .order_by(version.c.seq.desc())
    .limit(1)
)
_REBUILDS = select(rebuild.c.generation, rebuild.c.whole).where(rebuild.c.table == bindparam("t"))
_HISTORY = (
    select(version.c.generation, version.c.version)
    .where(version.c.table == bindparam("t"), version.c.seq <= bindparam("s"))
    .order_by(version.c.seq.desc())
)


@dataclass(frozen=True, slots=True)
class Readable:
    """A table as a reader sees it. `parts` are those that exist; None: everything in the version does.

    `rebuilding`: it is read as it was before, because its new content does not have all parts yet.
    """

    version: Version
    parts: Parts | None = None
    rebuilding: bool = False


def readable(
    database: Database, names: Collection[str], read: Collection[str], seq: int | None = None
) -> dict[str, Readable]:
    """These tables as of one sequence, the newest by default. Existing parts are looked up for those that are `read`."""
    with database.reading() as r:
        return readable_at(r, names, read, r.seq if seq is None else seq)


def readable_at(r: Reading, names: Collection[str], read: Collection[str], seq: int) -> dict[str, Readable]:
    known = versions_at(r, seq)
    sources = set(r.on.execute(_SOURCES).scalars())
    found = {name: Readable(at) for name, at in known.items() if name in names}
    for name in found.keys() & set(read):
        kept = _before_rebuild(r, name, known[name], seq)
        at = _whole(r, name, known[name], seq) if kept is None and name not in sources else kept or known[name]
        parts = existing_at(r, name, at.generation, seq) if name in sources else None
        found[name] = Readable(at, parts, rebuilding=at != known[name])
    return found


def _whole(r: Reading, name: str, newest: Version, seq: int) -> Version:
    """A view that is built again with other columns is read as it was, until its new table has all parts."""
    found = newest
    while found.generation:
        row = r.on.execute(_GENERATION, {"t": name, "g": found.generation}).one_or_none()
        if row is None or (row.whole_seq is not None and row.whole_seq <= seq):
            return found
        before = r.on.execute(_BEFORE, {"t": name, "s": seq, "g": found.generation}).one_or_none()
        if before is None:
            return newest
        found = Version(*before)
    return found


def _before_rebuild(r: Reading, name: str, newest: Version, seq: int) -> Version | None:
    """What readers see of a table that is being made again, or was then: the last generation that was whole."""
    begun = {row.generation: row for row in r.on.execute(_REBUILDS, {"t": name})}
    if newest.generation not in begun:
        return None
    rows = r.on.execute(_HISTORY, {"t": name, "s": seq})
    for row in rows:
        found = begun.get(row.generation)
        if found is None or (found.whole is not None and found.whole <= seq):
            return Version(row.generation, row.version)
    return newest  # there never was another one


def sequence_at(r: Reading, moment: float) -> int:
    """The last sequence that changed what readers see, at or before a moment."""
    return max(0, *(found or 0 for found in r.on.execute(_SEQUENCE, {"m": moment}).one()))


def time_of(r: Reading, seq: int) -> float:
    """When a sequence was recorded; of one that changed nothing for readers, when the last one before it was that did."""
    found = r.at if seq >= r.seq else r.on.execute(_AT, {"s": seq}).scalar()
    return 0.0 if found is None else found


def versions_at(r: Reading, seq: int) -> dict[str, Version]:
    """The content of every table as of one sequence; tables that had none by then are left out."""
    newest = select(version.c.table, func.max(version.c.seq).label("seq")).where(version.c.seq <= seq)
    last = newest.group_by(version.c.table).subquery()
    rows = r.on.execute(
        select(version.c.table, version.c.generation, version.c.version).join(
            last, (version.c.table == last.c.table) & (version.c.seq == last.c.seq)
        )
    )
    return {row.table: Version(row.generation, row.version) for row in rows}


def existing_at(r: Reading, name: str, of_generation: int, seq: int) -> Parts:
    """The parts of a source that existed. A part exists from its first revision on, until it expires."""
    now = settled(r, name)
    if now.generation != of_generation:
        return _by_revisions(r, name, of_generation, seq)
    there = existing(r, name)
    if now.floor is not None:
        # What has expired since was there. Parts below the floor that never existed have no rows: nothing shows up.
        there |= Parts.of((-FOREVER, now.floor - 1))
    if seq >= r.seq:
        return there
    # Not by the sequence alone, for which there is no index.
    bounds = {"t": name, "s": seq, "a": time_of(r, seq)}
    return there - Parts.single(*r.on.execute(_NEWER, bounds).scalars())


def _by_revisions(r: Reading, name: str, of_generation: int, seq: int) -> Parts:
    """Of a table that has begun again since: from its history alone."""
    row = r.on.execute(_GENERATION, {"t": name, "g": of_generation}).one_or_none()
    found = enumerate(r.on.execute(_THERE, {"t": name, "s": seq, "b": row.began_seq if row else 0}).scalars())
    runs = ([p for _, p in members] for _, members in groupby(found, key=lambda item: item[1] - item[0]))
    return Parts.of(*((run[0], run[-1]) for run in runs))
