"""The layout of rolling tables alone: after any turns the files hold exactly the rows that are shown, each once."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from partwise.parts import Parts, Range
from partwise.storage.wheel import Turn, WheelCell, cell_of, ends_at, turn

#: Rows by the part in which they came and their last part.
Rows = Counter[tuple[int, int]]


class Table:
    """Files with their rows; the rows of the grid are what they should be."""

    def __init__(self, rng: random.Random, width: int, fifo: bool = False) -> None:
        self.rng, self.width, self.fifo = rng, width, fifo
        self.grid: dict[int, Rows] = {}
        self.files: dict[WheelCell, Rows] = {}
        self.position: int | None = None
        self.written = self.came = self.moved = 0

    def arrive(self, part: int) -> None:
        """Rows that come about in a part: any last part up to the width, or the same one for all."""
        ends = [part + self.width - 1] if self.fifo else range(part, part + self.width)
        some = [end for end in ends if self.rng.random() < 0.7]
        self.grid[part] = Counter({(part, end): self.rng.randint(1, 3) for end in some})

    def read(self, cell: WheelCell) -> Rows:
        found: Rows = Counter()
        for part in range(cell.came.lo, cell.came.hi + 1):
            found.update(
                {k: n for k, n in self.grid.get(part, Counter()).items() if cell.ends.lo <= k[1] <= cell.ends.hi}
            )
        return found

    def move(self, position: int, changed: Parts) -> Turn:
        found = turn(self.files, position, self.width, changed)
        moved_out: Rows = Counter()
        for cell in found.shifted:
            moved_out += self.files[cell]
        for cell in (*found.gone, *found.shifted):
            del self.files[cell]
        moved_in: Rows = Counter()
        for cell in (*found.fresh, *found.settled):
            rows = self.read(cell)
            self.written += sum(rows.values())
            if cell in found.settled:
                moved_in += rows
            if rows:
                assert cell not in self.files
                self.files[cell] = rows
        assert moved_in == moved_out, "what only moves is the same rows"
        self.moved += sum(moved_in.values())
        self.position = position
        return found

    def shown(self) -> Rows:
        assert self.position is not None
        found: Rows = Counter()
        for part in range(self.position - self.width + 1, self.position + 1):
            found.update({k: n for k, n in self.grid.get(part, Counter()).items() if k[1] >= self.position})
        return found

    def check(self) -> None:
        held: Rows = Counter()
        for rows in self.files.values():
            held += rows
        assert held == self.shown()


@pytest.mark.parametrize("seed", range(40))
def test_files_hold_what_is_shown(seed: int) -> None:
    rng = random.Random(seed)
    table = Table(rng, rng.choice([1, 2, 3, 5, 16, 17, 50]), fifo=seed % 4 == 0)
    first = rng.choice([-30, 0, 12_345])
    at = first
    for part in range(first, first + 3):
        table.arrive(part)
    known = Parts()
    for _ in range(60):
        step = rng.choice([1, 1, 1, 1, 2, table.width + 3])
        for part in range(at + 1, at + step + 1):
            table.arrive(part)
        late = [p for p in table.grid if rng.random() < 0.02]
        for part in late:
            table.arrive(part)
        at += rng.choice([0, step]) if late else step
        changed = Parts.single(*late) | (Parts.of((at - table.width + 1, at)) - known)
        table.move(at, changed & Parts.of((at - table.width + 1, at)))
        known = Parts.of((at - table.width + 1, at))
        table.check()
        again = table.move(at, Parts())
        assert again == Turn() or not (again.gone or again.fresh), "a step that runs twice changes nothing"
        table.check()


@pytest.mark.parametrize(("width", "files", "share"), [(50, 90, 6.0), (200, 150, 8.0)])
def test_few_files_and_little_written(width: int, files: int, share: float) -> None:
    table = Table(random.Random(1), width)
    for part in range(4 * width):
        table.arrive(part)
        table.move(part, Parts.single(part))
        if part == 2 * width:
            table.written = table.moved = 0
    table.check()
    new = sum(sum(table.grid[p].values()) for p in range(2 * width + 1, 4 * width))
    assert len(table.files) <= files
    assert table.written / new < share, "rows written for each new one"


def test_what_leaves_is_whole_files() -> None:
    table = Table(random.Random(2), 20, fifo=True)
    for part in range(60):
        table.arrive(part)
        found = table.move(part, Parts.single(part))
        assert all(cell.ends.hi < part for cell in found.gone)


def test_groups_of_last_parts() -> None:
    assert ends_at(0, 20) == [
        Range(0, 0), Range(1, 1), Range(2, 2), Range(3, 3),
        Range(4, 7), Range(8, 11), Range(12, 15), Range(16, 31),
    ]  # fmt: skip
    assert ends_at(3, 3) == [Range(3, 3), Range(4, 7)]
    assert ends_at(-1, 2)[0] == Range(-1, -1)
    assert ends_at(-1, 2)[1].lo == 0, "parts before 1970 are no other parts"


def test_names_tell_what_a_file_holds() -> None:
    cell, digest = WheelCell(Range(5, 8), Range(-3, 4)), "12:" + "0f" * 16
    assert cell_of("s-1/" + cell.name(digest)) == (cell, digest)
    assert cell_of("s-1/part-0.snappy.parquet") is None
