"""Removes files, log entries and generations that no promised read needs any more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import bindparam, select

from partwise import storage
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.pin import Version
from partwise.ledger.read.promise import oldest
from partwise.ledger.schema import rebuild
from partwise.storage import log
from partwise.storage.files import Folder, folder
from partwise.storage.paths import table_path

_LOG = "_delta_log"
_VERSIONED = re.compile(r"(\d{20})\.(json|crc|checkpoint(?:\.[^/]+)?\.parquet|checkpoint\.[^/]+)")
#: A file that was written a moment ago may belong to a commit that is about to be made.
_YOUNG = timedelta(minutes=10)

_UNFINISHED = select(rebuild.c.table).where(rebuild.c.table == bindparam("t"), rebuild.c.whole.is_(None))


@dataclass(frozen=True)
class Cleaned:
    files: int = 0
    bytes: int = 0
    logs: int = 0
    generations: int = 0

    def __add__(self, other: Cleaned) -> Cleaned:
        return Cleaned(
            self.files + other.files,
            self.bytes + other.bytes,
            self.logs + other.logs,
            self.generations + other.generations,
        )


def clean(ledger: Ledger, warehouse: str, table: str, now: datetime) -> Cleaned:
    """Clean one table up to what the ledger promises. The caller holds its lease."""
    current = ledger.current(table)
    with ledger.database.reading() as r:
        needed = oldest(r, table)
        unfinished = r.on.execute(_UNFINISHED, {"t": table}).first() is not None
    if unfinished:
        return Cleaned()  # readers see an older generation until the new one is whole
    if needed is None or needed.version is None or current.version is None:
        return Cleaned()
    path = table_path(warehouse, table, needed.generation)
    if not storage.exists(path):
        return Cleaned()
    newest = current.version if current.generation == needed.generation else storage.open_at(path).version
    done = _generations(warehouse, table, needed)
    files = _files_between(path, needed.version, newest)
    return done if files is None else done + _data(path, files, now) + _log(path, needed.version)


def _generations(warehouse: str, table: str, needed: Version) -> Cleaned:
    root, gone = folder(warehouse), 0
    for generation in range(needed.generation):
        if storage.exists(table_path(warehouse, table, generation)):
            root.delete_folder(table_path("", table, generation).lstrip("/"))
            gone += 1
    return Cleaned(generations=gone)


def _files_between(path: str, first: int, last: int) -> set[str] | None:
    """Every file that is live in one of these versions; None if the log does not tell."""
    root = folder(path)
    found = {file.path for file in storage.open_at(path, first).files}
    for version in range(first + 1, last + 1):
        actions = log.actions_of(root, version)
        if actions is None:
            return None
        found |= {action["add"]["path"] for action in actions if "add" in action}
    return found


def clean_files(path: str, needed: Iterable[str], now: datetime) -> Cleaned:
    """Remove data files that are not among these, except young ones."""
    return _data(path, needed, now)


def _data(path: str, needed: Iterable[str], now: datetime) -> Cleaned:
    root, wanted = folder(path), set(needed)
    staging = {f"s-{note.name}" for note in root.listing("_staged")}
    files = size = 0
    for entry in root.listing(""):
        if not entry.folder or not entry.name.startswith("s-") or entry.name in staging:
            continue
        inside = root.listing(entry.name)
        gone = [f for f in inside if f"{entry.name}/{f.name}" not in wanted and f.changed <= now - _YOUNG]
        if len(gone) == len(inside):
            root.delete_folder(entry.name)
        else:
            root.delete(*(f"{entry.name}/{file.name}" for file in gone))
        data = [f for f in gone if f.name.endswith(".parquet")]
        files, size = files + len(data), size + sum(f.size for f in data)
    return Cleaned(files=files, bytes=size)


def _log(path: str, needed: int) -> Cleaned:
    """Log entries before the last checkpoint that a promised read can begin with."""
    root = folder(path)
    entries = [(int(match[1]), f.name) for f in root.listing(_LOG) if (match := _VERSIONED.fullmatch(f.name))]
    first = max((v for v, name in entries if "checkpoint" in name and v <= needed), default=None)
    if first is None or not _whole(root, first):
        return Cleaned()
    gone = [name for version, name in entries if version < first]
    # Entries first, checkpoints last: whatever is left after a crash can be read.
    for last in (False, True):
        root.delete(*(f"{_LOG}/{name}" for name in sorted(gone) if ("checkpoint" in name) is last))
    return Cleaned(logs=len(gone))


def _whole(root: Folder, version: int) -> bool:
    """Whether a table can be opened by this checkpoint alone: only single-file checkpoints are ours."""
    return root.size(f"{_LOG}/{version:020d}.checkpoint.parquet") is not None
