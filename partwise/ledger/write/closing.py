"""Closing parts of a source manually, and declaring parts that will never come."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import bindparam, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.ledger import Ledger
from partwise.ledger.runs import existing
from partwise.ledger.schema import open_part
from partwise.ledger.write.commit import EMPTY, Content, Entry, Recorded
from partwise.ledger.write.lease_holding import leased
from partwise.ledger.write.leases import Lease
from partwise.parts import Parts, Range, part_text, range_text
from partwise.plan.next import parts_text
from partwise.tables import Table

_OPEN = select(open_part.c.part, open_part.c.rows, open_part.c.digest).where(
    open_part.c.table == bindparam("t"), open_part.c.part.between(bindparam("a"), bindparam("b"))
)

#: Completes the ledger from the table's log, under its lease: every writer does this first.
Adopt = Callable[[Ledger, Lease], object]


class ClosingRefused(Exception):
    """Why a part cannot be closed or declared empty; the message is meant for people."""


def close(
    ledger: Ledger, name: str, parts: int | Range, holder: str, now: float, adopt: Adopt | None = None
) -> Recorded:
    """Close parts with the rows that have arrived for them; without rows they close as empty parts."""
    span = Range(parts, parts) if isinstance(parts, int) else parts
    return _record(ledger, name, span, "closed manually", holder, now, adopt, rows_allowed=True)


def closable(ledger: Ledger, name: str, parts: Range) -> list[int]:
    """Those of the parts that are to be closed. Raises ClosingRefused if none can be."""
    with ledger.database.reading() as r:
        return sorted(_contents(r, ledger.graph()[name], parts, rows_allowed=True))


def declare_empty(
    ledger: Ledger, name: str, parts: Range, holder: str, now: float, adopt: Adopt | None = None
) -> Recorded:
    """Let those of the parts that are missing exist without rows. Rows that arrive for them later are late rows, as for any other part."""
    return _record(ledger, name, parts, "declared empty", holder, now, adopt, rows_allowed=False)


def _record(
    ledger: Ledger,
    name: str,
    parts: Range,
    reason: str,
    holder: str,
    now: float,
    adopt: Adopt | None,
    rows_allowed: bool,
) -> Recorded:
    table = ledger.graph()[name]
    with leased(ledger, name, holder, lambda: now) as held:
        if adopt is not None:
            adopt(ledger, held)
        with ledger.database.reading() as r:
            contents = _contents(r, table, parts, rows_allowed)
            generation = settled(r, name).generation
        entry = Entry(name, generation, table.fingerprint, None, parts=contents, reason=reason)
        return ledger.commit(held, entry, None, now, keep=True)


def _contents(r: Reading, table: Table, parts: Range, rows_allowed: bool) -> dict[int, Content]:
    there = existing(r, table.name, parts.lo, parts.hi)
    if there.count == parts.size:
        each = "exists already" if parts.size == 1 else "exist already"
        raise ClosingRefused(f"{table.name}[{parts_text(there, table.length)}] {each}; nothing was changed.")
    floor = settled(r, table.name).floor
    if floor is not None and parts.lo < floor:
        raise ClosingRefused(
            f"{table.name}[{range_text(parts, table.length)}] is expired: "
            f"the first part that is kept is {part_text(floor, table.length)}."
        )
    rows = r.on.execute(_OPEN, {"t": table.name, "a": parts.lo, "b": parts.hi})
    opened = {row.part: Content(row.rows, row.digest) for row in rows}
    if opened and not rows_allowed:
        some = Parts.single(*opened)
        first = part_text(some.first, table.length)
        raise ClosingRefused(
            f"Rows have arrived for {table.name}[{parts_text(some, table.length)}], so it is not empty. "
            f"`partwise close {table.name} {first}` closes it with its rows."
        )
    return {p: opened.get(p, EMPTY) for p in Parts.of(parts) - there}
