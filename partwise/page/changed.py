"""What changed since a given time, over all tables or in one."""

from __future__ import annotations

from dataclasses import dataclass

from partwise.ledger.read.reports import changes_since
from partwise.ledger.read.snapshot import Snapshot
from partwise.parts import part_text
from partwise.tables import Table

LIMIT = 500


@dataclass(frozen=True, slots=True)
class ChangedPart:
    part: str | None
    revision: int
    rows: int
    at: float
    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class ChangedParts:
    """The newest change of each part, newest first. `more`: there are others."""

    table: str
    since: float
    parts: tuple[ChangedPart, ...]
    more: bool


def changed(snapshot: Snapshot, table: Table, since: float) -> ChangedParts:
    rows, more = changes_since(snapshot, table.name, since, LIMIT)
    parts = tuple(
        ChangedPart(
            None if table.kind == "dimension" else part_text(row.part, table.length),
            row.revision,
            row.rows,
            row.at,
            row.reason,
            row.times,
        )
        for row in rows
    )
    return ChangedParts(table.name, since, parts, more)
