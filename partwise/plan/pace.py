"""How much of a long step is computed at once, so that something is published about every half minute.

A step that computes for an hour and publishes at its end shows nothing for an hour, and loses an hour when it is killed. So a
step ends after `seconds`, and the next one goes on. The first lot of a step is bounded by the rows it reads, since nobody
knows yet how long that takes; the lots after it by the time that the parts before have taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

#: Rows that the first lot reads: seconds for most queries.
FIRST_ROWS = 2_000_000
#: Fewer parts than this are waited for so many times as long.
FEW, PATIENCE = 10, 4


@dataclass
class Pace:
    seconds: float = 30.0
    stopping: Callable[[], bool] = lambda: False  # somebody waits for the step to end
    _spent: float = 0.0
    _parts: int = 0
    _last: float | None = None  # seconds a part, in the last lot

    def took(self, parts: int, seconds: float) -> None:
        self._spent += seconds
        self._parts += parts
        self._last = seconds / max(1, parts)

    @property
    def over(self) -> bool:
        """Whether it is time to publish. A few heavy parts are worth waiting for longer: each step has its own cost."""
        few = self._parts < FEW
        late = self.stopping() or self._spent >= self.seconds * (PATIENCE if few else 1)
        return self._parts > 0 and late

    @property
    def left(self) -> float:
        """Seconds until it is time to publish."""
        return self.seconds - self._spent

    def most_rows(self, limit: int) -> int:
        """Rows that the next lot may read."""
        return min(limit, FIRST_ROWS) if self._last is None else limit

    def most_parts(self, limit: int) -> int:
        """Parts that the next lot may have: what fits into the time that is left."""
        if not self._last:
            return limit
        return max(1, int(min(limit, self.left / self._last)))
