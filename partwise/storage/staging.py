"""Staged files: written into the table's folder, seen by no reader until a commit names them.

Each step writes into a folder of its own, `s-<step>`, and leaves a note in `_staged/` first, with the
version that it started from. Because a step can only commit as the version after that, one look into
the log tells for ever whether a leftover was committed: nothing needs to be guessed from ages.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from partwise.object_store import is_remote
from partwise.storage import log
from partwise.storage.errors import CommitRefused
from partwise.storage.files import Folder, folder, remember
from partwise.storage.handle import File, Handle
from partwise.storage.remote import Bucket
from partwise.storage.table import barrier, open_at

_NOTES = "_staged"
#: Words that Spark and Delta take literally: no hidden names, no `x=1` that looks like a partition.
_STEP = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


def folder_of(step: str) -> str:
    """The folder of a step inside its table."""
    if not _STEP.fullmatch(step):
        raise ValueError(f"'{step}' cannot name a staged folder: only letters, digits and '-'")
    return f"s-{step}"


def begin(handle: Handle, step: str) -> str:
    """Notes that this step stages files for this handle; returns the full path to write to."""
    name, note = folder_of(step), f"{_NOTES}/{step}"
    if is_remote(handle.path):
        # One conditional write instead of looking first. Files of a step are written conditionally, too.
        text = f"{handle.version} {uuid.uuid4().hex}"  # of nobody else: a lost answer is told from another try
        fresh = Bucket(handle.path).put_new(note, text.encode())
    else:
        root = folder(handle.path)
        if fresh := root.size(note) is None and not root.listing(name):
            root.write(note, str(handle.version).encode())
    if not fresh:
        # An earlier try may be committed already; writing into its folder would damage the table.
        raise CommitRefused(f"{handle.path}: '{step}' has staged files before; each try needs a name of its own")
    return f"{handle.path.rstrip('/')}/{name}"


def staged(path: str, step: str) -> tuple[File, ...]:
    """The Parquet files that a step has staged, in order of their names."""
    name = folder_of(step)
    found = [f for f in folder(path).listing(name) if not f.folder and f.name.endswith(".parquet")]
    return tuple(File(f"{name}/{f.name}", f.size) for f in sorted(found, key=lambda f: f.name))


#: Files that this process has put into an object store, by step: all of them, none is empty. None: it is not known which.
_put: dict[str, list[str] | None] = {}


def write(handle: Handle, step: str, name: str, content: bytes) -> File:
    """Puts a whole file, which has rows, into the folder of a step that has begun."""
    file = File(f"{folder_of(step)}/{name}", len(content))
    if not is_remote(handle.path):
        folder(handle.path).write(file.path, content)
        return file
    before, _put[step] = _put.get(step, []), None
    if not Bucket(handle.path).put_new(file.path, content):
        raise _taken(handle, file.path)
    remember(handle.path, file.path, content)
    _put[step] = None if before is None else [*before, file.path]
    return file


def upload(handle: Handle, step: str, here: Path) -> tuple[File, ...]:
    """Puts the Parquet files of a local folder, but for empty ones, into the folder of a step in an object store."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    name, root, found = folder_of(step), Bucket(handle.path), []
    for file in sorted(here.glob("*.parquet")):
        if pq.read_metadata(file).num_rows:
            if not root.upload(f"{name}/{file.name}", file):
                raise _taken(handle, f"{name}/{file.name}")
            found.append(File(f"{name}/{file.name}", file.stat().st_size))
            remember(handle.path, found[-1].path, file)
    _put[step] = [file.path for file in found]
    return tuple(found)


def _taken(handle: Handle, name: str) -> CommitRefused:
    return CommitRefused(f"{handle.path}: {name} is there already; each try needs a name of its own")


def finish(path: str, step: str) -> None:
    """After the commit: the files are the table's now. A folder of empty files, of which it took none, goes."""
    root = folder(path)
    if _put.pop(step, None) is None:
        actions = _follower(root, step)
        if actions is not None and not _names(actions, step):
            root.delete_folder(folder_of(step))
    root.delete(f"{_NOTES}/{step}")


def discard(path: str, step: str) -> None:
    """Throws staged files away (unchanged content, failed check). Only for files never committed."""
    root, note = folder(path), f"{_NOTES}/{step}"
    if (files := _put.pop(step, None)) is not None:
        root.delete(*files, note)  # one request: there is no folder to look into
        return
    root.delete_folder(folder_of(step))
    root.delete(note)  # last, so that a crash leaves the note and the sweep finds it


@dataclass(frozen=True, slots=True)
class Swept:
    """Steps whose leftovers are gone, and the version that the sweep committed, if it had to."""

    steps: tuple[str, ...]
    version: int | None


def sweep(path: str, keep: Collection[str], *, older_than: timedelta, now: datetime) -> Swept:
    """Deletes what crashed steps staged. The caller holds the table's lease.

    A step that still lives somewhere without the lease must not commit files while they go. So an
    empty commit comes first: from then on no older handle can commit, and what the log does not name
    by now it will never name. Raises Conflict if somebody commits meanwhile: try again.
    """
    root = folder(path)
    old = [n.name for n in root.listing(_NOTES) if n.changed <= now - older_than]
    leftovers = [step for step in old if step not in keep and _STEP.fullmatch(step)]
    if not leftovers:
        return Swept((), None)
    handle = open_at(path)
    version = barrier(handle, {"kind": "sweep", "steps": leftovers})
    live = {file.path.split("/", 1)[0] for file in open_at(path, version).files}
    gone = [step for step in leftovers if folder_of(step) not in live and not _committed(root, step)]
    for step in leftovers:
        if step in gone:
            discard(path, step)
        else:
            finish(path, step)
    return Swept(tuple(gone), version)


def _committed(root: Folder, step: str) -> bool:
    """Whether the log names, or may once have named, the files of this step."""
    if _begun_at(root, step) is None:
        return False  # the note is written before anything is staged
    actions = _follower(root, step)
    # The log file is cleaned away: keep, older versions may need the files.
    return actions is None or _names(actions, step)


def _begun_at(root: Folder, step: str) -> int | None:
    version = (root.read(f"{_NOTES}/{step}") or b"").partition(b" ")[0].strip()
    return int(version) if version.isdigit() else None


def _follower(root: Folder, step: str) -> list[dict[str, Any]] | None:
    """What the only version says that this step could have committed; None where that cannot be told any more."""
    begun = _begun_at(root, step)
    return None if begun is None else log.actions_of(root, begun + 1)


def _names(actions: list[dict[str, Any]], step: str) -> bool:
    prefix = folder_of(step) + "/"
    return any(action.get("add", {}).get("path", "").startswith(prefix) for action in actions)
