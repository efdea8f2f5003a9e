"""The ledger as the planner reads it: one snapshot, few rows, each requested once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import bindparam, func, select

from partwise.ledger.catalog import Settled
from partwise.ledger.database import Reading
from partwise.ledger.records.refreshes import refreshed
from partwise.ledger.runs import all_due, existing_together
from partwise.ledger.schema import catalog, failure, have, lost
from partwise.parts import Parts, Range
from partwise.plan.model import Due, Failure, Window
from partwise.plan.refresh import Refreshed

_FAILURES = select(failure)
_RUN = select(have.c.hi).where(have.c.table == catalog.c.table).limit(1)
_FIRST = select(func.min(have.c.lo)).where(have.c.table == catalog.c.table).scalar_subquery()
# Runs are ordered by both of their ends, so that the ends of the first and the last one are found by the index.
_FIRST_END = _RUN.order_by(have.c.lo).scalar_subquery()
_LAST_END = _RUN.order_by(have.c.lo.desc()).scalar_subquery()
_SETTLED = select(
    catalog.c.table, catalog.c.start, catalog.c.floor, catalog.c.generation, _FIRST, _FIRST_END, _LAST_END
).where(catalog.c.table.in_(bindparam("names", expanding=True)))
_LOST = select(lost.c.table, lost.c.part)
_TOGETHER = 500


class LedgerFacts:
    """Implements `partwise.plan.model.Facts` on one reading transaction.

    What is expected is read with the first thing that is requested: a statement costs more than its rows. `keep`: what is
    due is read once, because nothing changes while many tables are looked at.
    """

    def __init__(self, reading: Reading, keep: bool = False) -> None:
        self._reading = reading
        self._keep = keep
        self._due: dict[str, list[Due]] | None = None
        self._failures: dict[str, dict[int, Failure]] | None = None
        self._windows: dict[str, dict[tuple[int, int], Parts]] = {}
        self._expected_windows: dict[Window, None] = {}
        self._settled: dict[str, Settled] = {}
        self._runs: dict[str, tuple[Range, int]] = {}
        self._expected: set[str] = set()
        self._lost: dict[str, Parts] | None = None
        self._refreshed: Mapping[str, Refreshed] | None = None

    def expect(self, tables: Iterable[str] = (), windows: Iterable[Window] = ()) -> None:
        self._expected.update(tables)
        self._expected_windows.update((window, None) for window in windows)

    def due(self) -> Mapping[str, list[Due]]:
        if self._due is not None:
            return self._due
        found = all_due(self._reading)
        self._due = found if self._keep else None
        return found

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        found = self._known(table, lo, hi)
        if found is None:
            self._expected_windows[table, lo, hi] = None
            asked = [window for window in self._expected_windows if self._known(*window) is None]
            for (name, first, last), parts in existing_together(self._reading, asked).items():
                self._windows.setdefault(name, {})[first, last] = parts
            self._expected_windows.clear()
            found = self._windows[table][lo, hi]
        return found

    def _known(self, table: str, lo: int, hi: int) -> Parts | None:
        """From a window that holds this one, if there is one."""
        windows = self._windows.get(table)
        if not windows:
            return None
        if (lo, hi) in windows:
            return windows[lo, hi]
        return next((parts.within(lo, hi) for (a, b), parts in windows.items() if a <= lo and hi <= b), None)

    def lost(self, table: str) -> Parts:
        return self.all_lost().get(table, Parts())

    def all_lost(self) -> dict[str, Parts]:
        if self._lost is None:
            found: dict[str, list[int]] = {}
            for name, p in self._reading.on.execute(_LOST):
                found.setdefault(name, []).append(p)
            self._lost = {name: Parts.single(*parts) for name, parts in found.items()}
        return self._lost

    def first_run(self, table: str) -> Range | None:
        self.settled(table)
        return self._runs[table][0] if table in self._runs else None

    def newest(self, table: str) -> int | None:
        self.settled(table)
        return self._runs[table][1] if table in self._runs else None

    def start(self, table: str) -> int | None:
        return self.settled(table).start

    def settled(self, table: str) -> Settled:
        if table not in self._settled:
            names = [table, *(self._expected - self._settled.keys() - {table})]
            self._settled.update((name, Settled(None, None, 0)) for name in names)
            for at in range(0, len(names), _TOGETHER):
                rows = self._reading.on.execute(_SETTLED, {"names": names[at : at + _TOGETHER]})
                for name, start, floor, generation, lo, hi, last in rows:
                    self._settled[name] = Settled(start, floor, generation)
                    if lo is not None:
                        self._runs[name] = (Range(lo, hi), last)
            self._expected.clear()
        return self._settled[table]

    def refreshed(self) -> Mapping[str, Refreshed]:
        if self._refreshed is None:
            self._refreshed = refreshed(self._reading)
        return self._refreshed

    def failures(self) -> Mapping[str, Mapping[int, Failure]]:
        if self._failures is not None:
            return self._failures
        found: dict[str, dict[int, Failure]] = {}
        for row in self._reading.on.execute(_FAILURES):
            found.setdefault(row.table, {})[row.part] = Failure(
                row.kind, row.pin, row.attempts, row.retry_at, row.at, row.message
            )
        self._failures = found if self._keep else None
        return found
