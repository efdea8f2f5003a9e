"""How far a step has come: told to whoever runs it, and noted in the ledger for others who watch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from partwise.ledger.heartbeat import heartbeat
from partwise.ledger.read.pin import Pin
from partwise.ledger.records.running import Running, note
from partwise.ledger.write.leases import Lease
from partwise.parts import Range
from spark_jobs.engine import Engine

#: Seconds between notes. A step that takes less leaves none.
EVERY = 2.0


class StepProgress:
    def __init__(self, engine: Engine, held: Lease, pin: Pin, since: float) -> None:
        self._engine, self._held, self._due = engine, held, pin.due.count
        self.now = Running(pin.table.name, Range(pin.due.first, pin.due.last), 0, self._due, since)

    def came(self, parts: int) -> None:
        """So many more parts are computed. A repair may go on beyond what was due."""
        done = self.now.done + parts
        self.now = replace(self.now, done=done, of=max(self._due, done))
        self._engine.progress(self.now)

    @contextmanager
    def noted(self) -> Iterator[StepProgress]:
        def tell() -> bool:
            self._engine.working(self.now)
            try:
                note(self._engine.ledger.database, self._held, self.now)
            except Exception:  # it is only for people; the step itself tells what is wrong with the ledger
                return False
            return True

        with heartbeat(EVERY, tell):
            yield self
