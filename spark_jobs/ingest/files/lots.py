"""How many files are loaded at once.

Thousands of files come in lots, and each lot is published: a kill or Ctrl-C loses what is being read and nothing else.
Parts are closed with the last lot, since the rows of one delivery are not late for one another, and lateness is
measured against the times of all files, not of one lot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from partwise.sources.bounds import Bounds
from spark_jobs.ingest.files.find import FoundFile

#: Bytes of the first lot, of which nobody knows yet how long it takes.
_FIRST_BYTES = 512 << 20
#: A lot has at most so many times what the one before had, and at least as small a fraction of it.
_STEP = 4


@dataclass
class Lots:
    """`seconds`: what a lot should take; `files` and `size` (bytes): the most that the next one has."""

    seconds: float
    files: int
    size: float = _FIRST_BYTES
    limits: Bounds | None = None  # which event times are believed, once the times of all files are known
    loaded: int = 0

    def room(self, files: int, size: int) -> bool:
        """Whether one more file belongs into a lot of so many. One file always does."""
        return not files or (files < self.files and size < self.size)

    def fitting(self, files: Iterable[FoundFile]) -> int:
        """How many of these files, from the first on, are one lot."""
        count = size = 0
        for found in files:
            if not self.room(count, size):
                break
            count, size = count + 1, size + found.look.size
        return count

    def took(self, files: int, size: int, seconds: float) -> None:
        """The next lot is as large as fits into the time, by what this one took."""
        self.loaded += files
        factor = min(_STEP, max(1 / _STEP, self.seconds / max(seconds, 0.01)))
        self.files, self.size = max(1, int(files * factor)), max(1, size * factor)
