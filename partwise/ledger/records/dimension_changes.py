"""Which parts changes of dimensions can matter for: those that read a row with one of the changed keys.

Whoever changes a dimension looks up, before the commit, which parts of the tables that it is joined with hold a changed
key, old or new. A part that changes between that look and the commit counts as well: it may have been computed from, with
the old dimension, by then. So what is kept of a change is a set of parts for each table and columns; of all others it
is kept that the change matters everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, insert, select

from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import dimension_change, lost, part
from partwise.parts import Parts
from partwise.tables import DIMENSION_PART, Keyed, Table

_ADD = insert(dimension_change)
_SINCE = tuple(
    select(rows.c.part).where(rows.c.table == bindparam("t"), rows.c.changed_seq > bindparam("s"))
    for rows in (part, lost)
)
_CHANGES = (
    select(dimension_change.c.seq, dimension_change.c.by, dimension_change.c.parts)
    .where(dimension_change.c.table == bindparam("t"), dimension_change.c.seq > bindparam("s"))
    .order_by(dimension_change.c.seq)
)
_NEWEST = tuple(
    select(rows.c.changed_seq).where(rows.c.table == bindparam("t"), rows.c.part == DIMENSION_PART)
    for rows in (part, lost)
)


@dataclass(frozen=True, slots=True)
class Met:
    """As of sequence `seen`, these parts of `table` held in `columns` a key that changed, and no others.

    The key is what `own` columns of the dimension held in changed rows, before or after.
    """

    own: tuple[str, ...]
    table: str
    columns: tuple[str, ...]
    parts: Parts
    seen: int

    @property
    def by(self) -> str:
        return _by(self.own, self.table, self.columns)

    def to_json(self) -> list[Any]:
        return [self.own, self.table, self.columns, [list(r) for r in self.parts.ranges], self.seen]

    @classmethod
    def from_json(cls, raw: Sequence[Any]) -> Met:
        own, table, columns, ranges, seen = raw
        return cls(tuple(own), table, tuple(columns), Parts.of(*((lo, hi) for lo, hi in ranges)), seen)


def _by(own: tuple[str, ...], table: str, columns: tuple[str, ...]) -> str:
    return json.dumps([own, table, columns])


def of_keyed(item: Keyed) -> str:
    return _by(item.own, item.table, item.columns)


def note_change(w: Writing, dimension: str, found: Iterable[Met] = ()) -> dict[str, Parts]:
    """Record that a dimension changed, in this transaction. Returns the parts that count, by what they are joined by."""
    known: dict[str, Parts] = {}
    for met in found:
        since = [p for query in _SINCE for p in w.on.execute(query, {"t": met.table, "s": met.seen}).scalars()]
        known[met.by] = met.parts | Parts.single(*since)
    rows: list[dict[str, Any]] = [{"table": dimension, "seq": w.seq, "n": 0, "by": None, "parts": None}]
    for n, (by, parts) in enumerate(known.items(), 1):
        ranges = json.dumps([list(r) for r in parts.ranges])
        rows.append({"table": dimension, "seq": w.seq, "n": n, "by": by, "parts": ranges})
    w.on.execute(_ADD, rows)
    return known


def touched(view: Table, dimension: str, known: Mapping[str, Parts]) -> Parts | None:
    """Parts of a view that a change can matter for; None: all of them."""
    keyed = view.keyed_by(dimension)
    if not keyed or any(of_keyed(item) not in known for item in keyed):
        return None
    found = Parts()
    for item in keyed:
        found |= item.reference.feeds_parts(known[of_keyed(item)])
    return found


@dataclass(frozen=True)
class ChangesSince:
    """Changes of a dimension as far as they matter for a view: the newest that matters everywhere, and the others after
    it, with their parts, in order."""

    everywhere: int
    others: tuple[tuple[int, Parts], ...] = ()

    def newest(self, j: int) -> int:
        """The newest one that matters for part j; -1 if none does."""
        return next((seq for seq, parts in reversed(self.others) if j in parts), self.everywhere)

    def by_part(self, lo: int, hi: int) -> dict[int, int]:
        """The same for the parts of a range for which one of the others is it."""
        return {j: seq for seq, parts in self.others for j in parts.within(lo, hi)}


def changes_since(r: Reading, view: Table, dimension: str, seq: int) -> ChangesSince:
    """Changes after a sequence."""
    newest = max(
        (n for query in _NEWEST if (n := r.on.execute(query, {"t": dimension}).scalar()) is not None), default=-1
    )
    if newest <= seq or not view.keyed_by(dimension):
        return ChangesSince(newest if newest > seq else -1)
    known: dict[int, dict[str, Parts]] = {}
    for row in r.on.execute(_CHANGES, {"t": dimension, "s": seq}):
        of_change = known.setdefault(row.seq, {})
        if row.by is not None:
            of_change[row.by] = Parts.of(*((lo, hi) for lo, hi in json.loads(row.parts)))
    everywhere, others = newest if newest not in known else -1, list[tuple[int, Parts]]()
    for at, by in known.items():
        parts = touched(view, dimension, by)
        if parts is None:
            everywhere = max(everywhere, at)
        else:
            others.append((at, parts))
    return ChangesSince(everywhere, tuple((at, parts) for at, parts in others if at > everywhere))
