"""CSV values with a line break inside, which must be in quotation marks.

Spark reads CSV line by line unless it is told otherwise, and would take half of such a value for a row. To be told
costs: a file is then read by one task. So files are looked at, cheaply, and only those that need it are read that way.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from itertools import chain
from typing import IO, cast

#: Put behind the last line: whoever is still inside a value there takes it in.
_END = "\0end"


class NeverClosed(Exception):
    """A value that begins with a quotation mark does not end; the message is meant for people."""


class Quotes:
    """Sees a text in pieces and tells whether some line has an odd number of quotation marks. Most have none at all."""

    def __init__(self) -> None:
        self._found = False
        self._begun = 0  # marks in the line that the last piece ended in

    def see(self, text: bytes) -> None:
        if self._found or (not self._begun and b'"' not in text):
            return
        lines = text.splitlines(keepends=True)
        if not lines:
            return
        *whole, last = lines
        counts = [line.count(b'"') for line in whole]
        if counts:
            counts[0] += self._begun
            self._begun = 0
        self._begun += last.count(b'"')
        if last.endswith((b"\n", b"\r")):
            counts.append(self._begun)
            self._begun = 0
        self._found = any(count % 2 for count in counts)

    def odd(self) -> bool:
        return self._found or self._begun % 2 == 1


def line_breaks_in(path: str, packed: bool) -> bool:
    """Whether some record takes more than one line. Marks inside a value, as in 5" pipe, mean nothing.

    Raises NeverClosed.
    """
    csv.field_size_limit(sys.maxsize)
    found, ended, first, last = False, False, 0, 0
    with cast("IO[bytes]", gzip.open(path) if packed else open(path, "rb")) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        records = csv.reader(chain(lines, [_END]))
        for record in records:
            first, last, ended = last + 1, records.line_num, record == [_END]
            found = found or last > first
    if not ended:
        raise NeverClosed(f"a quotation mark in line {first} is never closed")
    return found
