"""What readers see at one moment: the version of every table, and which parts of the sources exist by then.

A source's table also holds rows of parts that are not closed yet. Those parts do not exist for anyone, and
readers who come through Partwise do not see them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import bindparam, func, select

from partwise.ledger.database import Database, Reading
from partwise.ledger.read.pin import Version
from partwise.ledger.runs import existing
from partwise.ledger.schema import catalog, due, lost, rebuild, revision, version
from partwise.parts import Parts

_SOURCES = select(catalog.c.table).where(catalog.c.kind == "source")
_SEQUENCE = select(func.max(version.c.seq)).where(version.c.at <= bindparam("m"))
_THERE = (
    select(revision.c.part)
    .where(revision.c.table == bindparam("t"), revision.c.at <= bindparam("m"))
    .distinct()
    .order_by(revision.c.part)
)
_BEGAN = select(func.min(version.c.at), func.min(version.c.seq)).where(
    version.c.table == bindparam("t"), version.c.generation == bindparam("g")
)
_BEFORE = (
    select(version.c.generation, version.c.version)
    .where(version.c.table == bindparam("t"), version.c.seq < bindparam("s"))
    .order_by(version.c.seq.desc())
    .limit(1)
)
_LOST = select(lost.c.part).where(lost.c.table == bindparam("t"))
_REBUILDS = select(rebuild.c.generation, rebuild.c.whole).where(rebuild.c.table == bindparam("t"))
_HISTORY = (
    select(version.c.generation, version.c.version)
    .where(version.c.table == bindparam("t"), version.c.seq <= bindparam("s"))
    .order_by(version.c.seq.desc())
)
_DUE = select(due.c.lo).where(due.c.table == bindparam("t"), due.c.since <= bindparam("a")).limit(1)


@dataclass(frozen=True, slots=True)
class Readable:
    """A table as a reader sees it. `parts` are those that exist; None: everything in the version does."""

    version: Version
    parts: Parts | None = None


def readable(
    database: Database, names: Collection[str], read: Collection[str], moment: float | None = None
) -> dict[str, Readable]:
    """These tables as of one moment, now by default. Which parts exist is looked up for those that are `read`."""
    with database.reading() as r:
        seq = 2**62 if moment is None else sequence_at(r, moment)
        known = versions_at(r, seq)
        sources = set(r.on.execute(_SOURCES).scalars())
        found = {name: Readable(at) for name, at in known.items() if name in names}
        for name in found.keys() & set(read):
            if name in sources:
                found[name] = _source(r, name, known[name], seq, moment)
            elif known[name].generation:
                found[name] = Readable(_whole(r, name, known[name], seq, now=moment is None))
        return found


def _source(r: Reading, name: str, newest: Version, seq: int, moment: float | None) -> Readable:
    kept = _before_rebuild(r, name, newest, seq) or newest
    there = _existing(r, name, moment)
    if kept != newest:  # its parts are those that the old table had
        there |= Parts.single(*r.on.execute(_LOST, {"t": name}).scalars())
    return Readable(kept, there)


def _whole(r: Reading, name: str, newest: Version, seq: int, now: bool) -> Version:
    """A view that is built again with other columns is read as it was, until its new table has all parts."""
    kept = _before_rebuild(r, name, newest, seq)
    if kept is not None:
        return kept
    began, first = r.on.execute(_BEGAN, {"t": name, "g": newest.generation}).one()
    before = r.on.execute(_BEFORE, {"t": name, "s": min(seq, first)}).one_or_none()
    # Long ago nobody knows what was due; the first commit brings all parts, unless there are hundreds.
    unfinished = r.on.execute(_DUE, {"t": name, "a": began}).first() is not None if now else newest.version == 0
    return Version(*before) if before is not None and unfinished else newest


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
    """The last sequence that made a version at or before a moment."""
    return int(r.on.execute(_SEQUENCE, {"m": moment}).scalar() or 0)


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


def _existing(r: Reading, name: str, moment: float | None) -> Parts:
    if moment is None:
        return existing(r, name)
    # A part exists from its first revision on; closing one by hand makes a revision, but no version.
    found = enumerate(r.on.execute(_THERE, {"t": name, "m": moment}).scalars())
    runs = ([p for _, p in members] for _, members in groupby(found, key=lambda item: item[1] - item[0]))
    return Parts.of(*((run[0], run[-1]) for run in runs))
