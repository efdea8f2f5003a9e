"""What is known of the parts of tables inside a transaction: always as of now, so nothing is remembered."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.runs import existing
from partwise.ledger.schema import lost
from partwise.parts import Parts
from partwise.plan.reach import EVERYTHING, buildable, first_part
from partwise.tables import Table

_LOST = select(lost.c.part).where(lost.c.table == bindparam("t")).order_by(lost.c.part)


class LedgerParts:
    """Implements `partwise.plan.reach.PartFacts`."""

    def __init__(self, r: Reading) -> None:
        self._r = r

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        return existing(self._r, table, lo, hi)

    def start(self, table: str) -> int | None:
        return settled(self._r, table).start

    def lost(self, table: str) -> Parts:
        return Parts.single(*self._r.on.execute(_LOST, {"t": table}).scalars())


class PartsToCome(LedgerParts):
    """The same, but of helpers that are new or computed in another way what can be built of them, and nothing else.

    A view whose window is kept in another way reads other helpers. They have no parts yet, but will have them. Old
    parts that cannot be built again are of no use: they were computed in the other way.
    """

    def __init__(self, r: Reading) -> None:
        super().__init__(r)
        self._coming: dict[str, tuple[int, Parts]] = {}

    def expect(self, table: Table) -> None:
        if table.helper_of is None:
            return
        start = super().start(table.name)
        if start is None and table.of_sample and table.self_references:
            start = super().start(table.helper_of)
        start = start if start is not None else first_part(table, self)
        if start is not None:
            self._coming[table.name] = (start, buildable(table, start, EVERYTHING, Parts(), self))

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        if table in self._coming:
            return self._coming[table][1].within(lo, hi)
        return super().existing(table, lo, hi) | self.lost(table).within(lo, hi)  # what is made again will be there

    def start(self, table: str) -> int | None:
        return self._coming[table][0] if table in self._coming else super().start(table)
