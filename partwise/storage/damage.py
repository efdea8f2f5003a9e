"""Whether a table is still there: its log, and the files that the log names. One look, nothing is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from partwise.storage.errors import StorageError, StoreProblem
from partwise.storage.files import Folder, folder
from partwise.storage.table import has_log, open_at


@dataclass(frozen=True, slots=True)
class Damage:
    """`files` are those that are missing; without a log nobody knows which there should be."""

    log: str | None = None  # why the log cannot be read
    files: tuple[str, ...] = ()
    of: int = 0  # how many files there should be

    def text(self) -> str:
        if self.log is not None:
            return "its Delta log is missing or damaged"
        some = self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more"
        return f"{len(self.files):,} of its {self.of:,} data files are missing ({some})"


def damage(path: str, version: int, most: int | None = None) -> Damage | None:
    """What is missing of a table at a version. Above `most` files only the log is looked at. Raises StoreProblem."""
    try:
        handle = open_at(path, version)
        if not has_log(handle):
            return Damage(log=f"{path}: version {version} is gone")
        files = handle.files
    except StoreProblem:
        raise  # nobody knows what is there
    except StorageError as why:
        return Damage(log=str(why))
    if most is not None and len(files) > most:
        return None
    gone = missing(folder(path), [file.path for file in files])
    return Damage(files=tuple(sorted(gone)), of=len(files)) if gone else None


def missing(root: Folder, paths: Iterable[str]) -> list[str]:
    """Those of these files that are not there. Each folder is listed once."""
    there: dict[str, set[str]] = {}
    gone = []
    for path in paths:
        under, _, name = path.rpartition("/")
        if under not in there:
            there[under] = {entry.name for entry in root.listing(under)}
        if name not in there[under]:
            gone.append(path)
    return gone
