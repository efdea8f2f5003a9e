"""From parts by state to cells: a cell is one part, or all parts that begin in a stretch of time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from partwise.page.states import LETTERS, RANK, Word
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.model import parts_of_due
from partwise.plan.planner import Look
from partwise.tables import Table

NONE = Parts()


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of one row. Cell k holds the parts that begin in [k * cell, (k + 1) * cell), in seconds."""

    length: int  # of a part
    cell: int
    first: int
    last: int

    @classmethod
    def over(cls, begin: int, end: int, resolution: int, length: int) -> Grid:
        """The cells that overlap begin..end: parts themselves where those are longer than the resolution."""
        cell = max(length, resolution)
        return cls(length, cell, begin // cell, (end - 1) // cell)

    @property
    def parts(self) -> Range:
        """All parts of these cells."""
        return Range(self.parts_of(self.first).lo, self.parts_of(self.last).hi)

    def parts_of(self, k: int) -> Range:
        return Range(-(-k * self.cell // self.length), -(-(k + 1) * self.cell // self.length) - 1)

    def cell_of(self, part: int) -> int:
        return part * self.length // self.cell


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """What is known of one table within a window."""

    there: Parts
    look: Look | None = None
    failed: Parts = NONE
    opened: Parts = NONE
    written: bool = False  # somebody holds its lease
    should: Range | None = None  # from the first part that should be there to the newest that is or could be


def states_of(table: Table, facts: WindowFacts) -> dict[Word, Parts]:
    """The parts of a table by state, each part in one of them. As `partwise.ledger.read.reports.state_of`, by ranges."""
    look, there, failed = facts.look, facts.there, facts.failed
    due = parts_of_due(look.due) if look else Parts()
    left = due - failed
    manual = left & look.manual if look else Parts()
    ready = (left - manual) & look.ready if look else Parts()
    deferred = (left - manual) & look.deferred if look else Parts()
    blocked = left - manual - ready - deferred
    building = ready if facts.written else Parts()
    ready -= building
    opened = facts.opened - there - due - failed
    known = there | due | failed | opened
    gaps = Parts.of(facts.should) - known if facts.should and table.kind != "dimension" else Parts()
    found: dict[Word, Parts] = {
        "fresh": there - due - failed,
        "open": opened,
        "building": building,
        "missing": (ready - there) | gaps,
        "deferred": deferred,
        "manual": manual,
        "stale": ready & there,
        "blocked": blocked,
        "failed": failed,
    }
    return {word: parts for word, parts in found.items() if parts}


def paint(
    grid: Grid,
    states: Mapping[Word, Parts],
    repaired: Iterable[int] = (),
    empty: Mapping[int, int] | None = None,
) -> str:
    """One letter per cell, run by run: `12f1s` is twelve fresh cells and a stale one. The worst state wins.

    `repaired` are cells with a fresh part that was repaired, `empty` counts parts without rows by cell.
    """
    size = grid.last - grid.first + 1
    cells = bytearray(size)
    for word in sorted(states, key=RANK.__getitem__):
        rank = bytes([RANK[word]])
        for lo, hi in states[word].ranges:
            a = max(grid.cell_of(max(lo, -FOREVER)) - grid.first, 0)
            b = min(grid.cell_of(hi) - grid.first, size - 1)
            if a <= b:
                cells[a : b + 1] = rank * (b - a + 1)
    fresh, fresh_rank = states.get("fresh", NONE), RANK["fresh"]
    whole, inside = _whole_cells(grid, fresh)
    for k, count in (empty or {}).items():
        at = k - grid.first
        if not 0 <= at < size or cells[at] != fresh_rank:
            continue
        if count >= (whole if k in inside else _count(fresh, grid.parts_of(k))):
            cells[at] = RANK["empty"]
    for k in repaired:
        at = k - grid.first
        if 0 <= at < size and cells[at] in (RANK["fresh"], RANK["empty"]):
            cells[at] = RANK["repaired"]
    return _packed(LETTERS[rank] for rank in cells)


def changes(grid: Grid, changed: Iterable[int], letter: str = "c") -> str:
    """`20-5c`: twenty cells, then five with a part whose content changed since the chosen time, in whatever state."""
    inside = {k for k in changed if grid.first <= k <= grid.last}
    return _packed(letter if k in inside else "-" for k in range(grid.first, grid.last + 1))


def _packed(letters: Iterable[str]) -> str:
    return "".join(f"{len(list(run))}{letter}" for letter, run in groupby(letters))


def _whole_cells(grid: Grid, parts: Parts) -> tuple[int, range]:
    """How many parts a cell holds, and in which cells all of them are there for sure; the rest has to be counted."""
    if grid.cell % grid.length or len(parts.ranges) != 1:
        return 1, range(grid.first, grid.last + 1) if grid.cell == grid.length else range(0)
    lo, hi = parts.ranges[0]
    return grid.cell // grid.length, range(grid.cell_of(lo - 1) + 1, grid.cell_of(hi + 1))


def _count(parts: Parts, span: Range) -> int:
    at = max(0, bisect_right(parts.ranges, (span.lo, FOREVER * 4)) - 1)
    count = 0
    while at < len(parts.ranges) and parts.ranges[at].lo <= span.hi:
        lo, hi = max(parts.ranges[at].lo, span.lo), min(parts.ranges[at].hi, span.hi)
        count += max(0, hi - lo + 1)
        at += 1
    return count
