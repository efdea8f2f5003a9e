"""What was due, and which parts existed, as of an earlier sequence."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import bindparam, select

from partwise.ledger.database import Reading
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.read.as_of import existing_at, versions_at
from partwise.ledger.runs import all_due
from partwise.ledger.schema import was_due
from partwise.parts import Parts
from partwise.plan.model import Cause, Due

_PAST = select(was_due).where(was_due.c.since_seq <= bindparam("s"), was_due.c.until_seq > bindparam("s"))
_UNKNOWN = Cause("start")


class PastFacts(LedgerFacts):
    """As far as it is on record: see `partwise.ledger.read.newest_settled.on_record`."""

    def __init__(self, reading: Reading, seq: int) -> None:
        super().__init__(reading)
        self._at, self._seq = reading, seq
        self._versions = versions_at(reading, seq)

    def due(self) -> Mapping[str, list[Due]]:
        found = {name: [row for row in rows if row.since_seq <= self._seq] for name, rows in all_due(self._at).items()}
        for row in self._at.on.execute(_PAST, {"s": self._seq}):
            found.setdefault(row.table, []).append(Due(row.lo, row.hi, row.since_seq, 0.0, _UNKNOWN, row.since_seq))
        return {name: rows for name, rows in found.items() if rows}

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        at = self._versions.get(table)
        return Parts() if at is None else existing_at(self._at, table, at.generation, self._seq).within(lo, hi)
