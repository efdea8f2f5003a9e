"""What repairs of large parts took: the next choice of a repair learns from it, and `status` says how good choices were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import bindparam, insert, select

from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import repair

By = Literal["recompute", "keys", "merge"]

#: So many of the newest repairs of a view say what the next one takes.
NEWEST = 20

_OF = select(repair).where(repair.c.table == bindparam("t")).order_by(repair.c.seq.desc()).limit(NEWEST)
_ALL = select(repair).order_by(repair.c.table, repair.c.seq)


@dataclass(frozen=True, slots=True)
class MeasuredRepair:
    """A repair that was carried out: what had been foreseen of it, and what it took, in seconds."""

    by: By
    costs: Mapping[By, float]
    foreseen: float
    seconds: float

    @property
    def is_close(self) -> bool:
        """Whether the estimate was within a factor of two."""
        return self.foreseen <= 2 * self.seconds and self.seconds <= 2 * self.foreseen


@dataclass(frozen=True, slots=True)
class RecordedRepair:
    """A repair of `parts` parts. `changed` rows of inputs touched `keys` keys."""

    outcome: MeasuredRepair
    parts: int
    changed: int
    keys: int
    rows_read: int
    rows_copied: int


def note(w: Writing, table: str, done: RecordedRepair) -> None:
    found = done.outcome
    w.on.execute(
        insert(repair),
        {
            "table": table,
            "seq": w.seq,
            "by": found.by,
            "costs": json.dumps({by: round(seconds, 4) for by, seconds in found.costs.items()}),
            "foreseen": found.foreseen,
            "seconds": found.seconds,
            "parts": done.parts,
            "changed": done.changed,
            "keys": done.keys,
            "rows_read": done.rows_read,
            "rows_copied": done.rows_copied,
            "at": w.at,
        },
    )


def outcomes(r: Reading, table: str) -> list[MeasuredRepair]:
    """The newest ones of a view, the newest last."""
    return [_outcome(row) for row in r.on.execute(_OF, {"t": table})][::-1]


def all_outcomes(r: Reading) -> dict[str, list[MeasuredRepair]]:
    found: dict[str, list[MeasuredRepair]] = {}
    for row in r.on.execute(_ALL):
        found.setdefault(row.table, []).append(_outcome(row))
    return found


def _outcome(row: object) -> MeasuredRepair:
    return MeasuredRepair(row.by, json.loads(row.costs), row.foreseen, row.seconds)  # type: ignore[attr-defined]
