"""Forgets versions of forward dimensions that no part reads any more.

What is kept may be computed again, so the version that counts for it is kept as well: that of the part that was born
first, of all that there are, and every later one. What somebody says counts for a time range is kept, too.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import delete, func, select

from partwise import storage
from partwise.ledger.database import Reading
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.born import versions
from partwise.ledger.schema import catalog, lost, part, revision
from partwise.ledger.write.lease_holding import holding
from partwise.parts import FOREVER, Parts
from partwise.storage import File
from partwise.storage.paths import versions_path
from partwise.upkeep.clean import clean_files
from partwise.upkeep.groups import TARGET
from partwise.upkeep.rewriting import rewrite_rows

_HAVE_PARTS = select(catalog.c.table).where(catalog.c.kind != "dimension", catalog.c.retired.is_(False))
_FIRST = tuple(select(func.min(rows.c.born)).where(rows.c.table.in_(_HAVE_PARTS)) for rows in (part, lost))


def first_needed(r: Reading, dimension: str) -> int | None:
    """The oldest version, by its sequence, that is still read or may be; None if it was never loaded."""
    known = versions(r, dimension)
    if not known.contents:
        return None
    borns = [found for query in _FIRST if (found := r.on.execute(query).scalar()) is not None]
    oldest = known.contents[known.number_for(min(borns, default=FOREVER))].seq
    return min([oldest, *(item.version for item in known.repins if item.version is not None)])


def forget_versions(ledger: Ledger, warehouse: str, dimension: str, now: Callable[[], float]) -> int:
    """Returns how many versions were forgotten. Raises Busy, Conflict.

    The ledger comes first: what it does not name any more is not read. Files that were given up earlier go; those that
    are given up now may just be read.
    """
    path = versions_path(warehouse, dimension)
    with holding(ledger, warehouse, dimension, now):
        with ledger.database.writing(now()) as w:
            floor = first_needed(w, dimension)
            if floor is None:
                return 0
            old = delete(revision).where(revision.c.table == dimension, revision.c.seq < floor)
            gone = int(w.on.execute(old).rowcount)
        if storage.exists(path):
            handle = storage.open_at(path)
            clean_files(path, {file.path for file in handle.files}, datetime.fromtimestamp(now(), UTC))
            _drop(path, floor)
        return gone


def _drop(path: str, floor: int) -> None:
    handle = storage.open_at(path)
    change = storage.rewrite(handle, Parts.of((-FOREVER, floor - 1)))
    if not change.removed:
        return
    adds: tuple[File, ...] = ()
    step = uuid.uuid4().hex[:16]
    if change.mixed:
        rewrite_rows(handle, change.mixed, step, TARGET, floor)
        adds = storage.staged(path, step)
    storage.commit(handle, adds, change.removed, {"kind": "retain"})
    if change.mixed:
        storage.finish(path, step)
