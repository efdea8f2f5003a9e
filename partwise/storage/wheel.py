"""The expiry wheel: which files a rolling table has, so that what leaves is whole files and little is written again.

A cell is a file: rows that came about in parts `came`, each shown up to a last part within `ends`. Rows that leave soon
lie in files of one last part each, those that leave later in files of 4, 16, 64.. last parts. As the table moves on,
files of many last parts are split into finer ones, and files that came one after another are merged. What a table of a
position holds is exact, so a cell without a file is known to be empty until a part of it changes.

    turn = files that go, files of changed rows that come, and files that only move rows

Pure: what the rows are is left to whoever carries out a turn.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from partwise.parts import Parts, Range

#: How many finer files one is split into.
FAN = 4
#: So many files of the same last parts stay as they are; of more the newest are merged.
FEW = 4
#: A file is merged with newer ones that came in at least this share of as many parts.
SHARE = 1 / 2

#: More parts than lie before 1970; a multiple of every size.
_BEFORE = FAN**30

_NAME = re.compile(r"(?:.*/)?w\.(-?\d+)\.(-?\d+)\.(-?\d+)\.(-?\d+)\.(\d+:?[0-9a-f]*|\d+-[0-9a-f]+)\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class WheelCell:
    """Rows that came about in parts `came` and leave after one of the parts `ends`."""

    ends: Range
    came: Range

    def name(self, digest: str) -> str:
        """Of its file: what it holds can be told without reading it."""
        lo, hi = self.came
        return f"w.{lo}.{hi}.{self.ends.lo}.{self.ends.hi}.{digest.replace(':', '-')}.parquet"


def cell_of(path: str) -> tuple[WheelCell, str] | None:
    """The cell and the digest of a file by its name; None for a file of another layout."""
    found = _NAME.fullmatch(path)
    if found is None:
        return None
    came_lo, came_hi, ends_lo, ends_hi = (int(found[n]) for n in range(1, 5))
    return WheelCell(Range(ends_lo, ends_hi), Range(came_lo, came_hi)), found[5].replace("-", ":")


@dataclass(frozen=True)
class Turn:
    """`gone` and `fresh` change what the table holds; `shifted` and `settled` move the same rows to other files."""

    gone: tuple[WheelCell, ...] = ()
    fresh: tuple[WheelCell, ...] = ()
    shifted: tuple[WheelCell, ...] = ()
    settled: tuple[WheelCell, ...] = ()


@dataclass(frozen=True, slots=True)
class _Atom:
    """Consecutive parts of one row of the wheel. `old`: the files that hold them now; none of changed rows."""

    came: Range
    old: tuple[WheelCell, ...] = ()
    stays: bool = False


def ends_at(position: int, width: int) -> list[Range]:
    """The last parts that rows shown at this position can have, as files group them: finer where they are near."""
    found, at = [], position
    while at < position + width:
        size = 1
        while (at + _BEFORE) // (size * FAN) != (position + _BEFORE) // (size * FAN):
            size *= FAN
        first = at // size * size
        found.append(Range(first, first + size - 1))
        at = first + size
    return found


def turn(old: Collection[WheelCell], position: int, width: int, changed: Parts) -> Turn:
    """Move a table to a position. `changed`: parts whose rows are others than those in the old files, new ones included.

    No row is shown longer than `width` parts.
    """
    rows = {ends: _Row() for ends in ends_at(position, width)}
    gone: list[WheelCell] = []
    shifted: list[WheelCell] = []
    for cell in old:
        same = cell.ends in rows and not changed.within(*cell.came)
        if same:
            rows[cell.ends].atoms.append(_Atom(cell.came, (cell,), stays=True))
            continue
        moves = cell.ends.lo >= position and not changed.within(*cell.came)
        (shifted if moves else gone).append(cell)
        for ends in rows:
            if ends.lo >= cell.ends.lo and ends.hi <= cell.ends.hi:
                rows[ends].atoms.append(_Atom(cell.came, (cell,) if moves else ()))
    fresh: list[WheelCell] = []
    settled: list[WheelCell] = []
    for ends, row in rows.items():
        lowest = max(position, ends.lo) - width + 1
        row.add_changed(changed.within(lowest, position))
        for atom in row.merged():
            if atom.stays:
                continue
            (settled if atom.old else fresh).append(WheelCell(ends, atom.came))
            shifted += [cell for cell in atom.old if cell.ends == ends]
    return Turn(tuple(sorted(gone)), tuple(fresh), tuple(sorted(set(shifted))), tuple(settled))


@dataclass
class _Row:
    """Files of the same last parts."""

    atoms: list[_Atom] = field(default_factory=list)

    def add_changed(self, parts: Parts) -> None:
        """Parts of which the rows are read again, besides those of files that go because of them."""
        covered = Parts.of(*(atom.came for atom in self.atoms))
        self.atoms += [_Atom(span) for span in (parts - covered).ranges]

    def merged(self) -> list[_Atom]:
        """Neighbours of a kind as one file; of too many that stay the newest together."""
        found: list[_Atom] = []
        for _, run in _runs(sorted(self.atoms, key=lambda atom: atom.came)):
            found += _fewer(run) if run[0].old else [_joined(run)]
        return found


def _runs(atoms: Iterable[_Atom]) -> Iterable[tuple[bool, list[_Atom]]]:
    """Neighbours that are all changed, or all not."""
    run: list[_Atom] = []
    for atom in atoms:
        if run and bool(run[-1].old) != bool(atom.old):
            yield bool(run[-1].old), run
            run = []
        run.append(atom)
    if run:
        yield bool(run[-1].old), run


def _fewer(run: Sequence[_Atom]) -> list[_Atom]:
    """What has to move anyway moves into one file with its neighbours that do; then the newest are merged, if many."""
    found: list[_Atom] = []
    for atom in run:
        if found and not atom.stays and not found[-1].stays:
            found[-1] = _joined([found[-1], atom])
        else:
            found.append(atom)
    if len(found) <= FEW:
        return found
    last = found.pop()
    while found and SHARE * found[-1].came.size <= last.came.size:
        last = _joined([found.pop(), last])
    return [*found, last]


def _joined(atoms: Sequence[_Atom]) -> _Atom:
    if len(atoms) == 1:
        return atoms[0]
    old = tuple(cell for atom in atoms for cell in atom.old)
    return _Atom(Range(atoms[0].came.lo, max(atom.came.hi for atom in atoms)), old)
