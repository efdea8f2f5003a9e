"""When a component that ended is started again, and when it is given up."""

from __future__ import annotations

from dataclasses import dataclass, replace

FIRST, LONGEST = 1.0, 30.0  # seconds between an end and the next start
STEADY = 60.0  # a component that ran for so long may start from the first delay again
TRIES = 4  # of a component that has never been ready


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of one component's past."""

    failures: int = 0  # in a row
    was_ready: bool = False
    restarts: int = 0  # in all

    def ready(self) -> Record:
        return replace(self, was_ready=True)

    def ended(self, ran: float) -> Record:
        return replace(self, failures=1 if ran >= STEADY else self.failures + 1, restarts=self.restarts + 1)


def delay(record: Record) -> float | None:
    """Seconds until the next start; None: something is wrong that another start will not mend.

    A component that has worked before is always started again: what stopped it may pass.
    """
    if not record.was_ready and record.failures >= TRIES:
        return None
    return min(LONGEST, FIRST * 2.0 ** max(0, record.failures - 1))
