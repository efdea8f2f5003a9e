"""What is known of the parts of tables inside a transaction: always as of now, so nothing is remembered."""

from __future__ import annotations

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.runs import existing
from partwise.parts import Parts


class LedgerParts:
    """Implements `partwise.plan.reach.PartFacts`."""

    def __init__(self, r: Reading) -> None:
        self._r = r

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        return existing(self._r, table, lo, hi)

    def start(self, table: str) -> int | None:
        return settled(self._r, table).start
