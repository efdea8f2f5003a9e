"""What the Delta log says, read directly: no snapshot is built for it.

Commits of Partwise carry the ledger's entry in their metadata. After a crash the ledger is completed
from here ("adoption"), so the reading must never skip a version.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from partwise.storage.files import Folder, folder

if TYPE_CHECKING:
    from deltalake.transaction import AddAction, RemoveAction

#: The commit's metadata key that holds the ledger entry, as JSON text.
ENTRY = "partwise"
#: Names one attempt to commit, so that a lost answer can be told from a lost race.
ATTEMPT = "partwiseAttempt"


class Logged(NamedTuple):
    """One version of a table. `entry` is None for commits by others and for versions whose log file
    is gone; the latter count as changes of data, because nothing says otherwise."""

    version: int
    entry: dict[str, Any] | None
    data_change: bool


def entries(path: str, after_version: int, whole: bool = True) -> list[Logged]:
    """Every version after this one, in order, without gaps. `-1` means from the beginning.

    Without `whole` nothing follows where the next log file is not there: nobody can have cleaned it away.
    """
    root = folder(path)
    if (
        not whole and root.read(name_of(after_version + 1)) is None
    ):  # the answer to a look at its size would have no reasons
        return []
    return list(_entries(root, after_version))


def _entries(root: Folder, after: int) -> Iterator[Logged]:
    version = after + 1
    cleaned_up_to = last_checkpoint(root)
    while (actions := actions_of(root, version)) is not None or version <= cleaned_up_to:
        if actions is None:  # behind a checkpoint, log files may have been cleaned away
            yield Logged(version, None, True)
        else:
            yield Logged(version, entry_of(actions), any(_changes_data(action) for action in actions))
        version += 1


def exists_after(root: Folder, version: int) -> bool:
    """Whether the table has moved on. The checkpoint counts too: the next log file may be cleaned away."""
    return root.size(name_of(version + 1)) is not None or last_checkpoint(root) > version


def actions_of(root: Folder, version: int) -> list[dict[str, Any]] | None:
    """The actions of one commit; None where its log file is not there."""
    content = root.read(name_of(version))
    if content is None:
        return None
    return [json.loads(line) for line in content.splitlines() if line.strip()]


def entry_of(actions: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The ledger entry of a commit; None if it is not one of ours."""
    found = commit_info(actions).get(ENTRY)
    try:
        entry = json.loads(found) if isinstance(found, str) else None
    except json.JSONDecodeError:
        return None
    return entry if isinstance(entry, dict) else None


def written(actions: Iterable[AddAction | RemoveAction], metadata: Mapping[str, str]) -> bytes:
    """A commit as a file of the log, for stores in which one conditional write makes it: delta-rs takes five requests.

    The same as delta-rs writes. Paths are ours, so that nothing in them needs to be escaped.
    """
    from deltalake.transaction import AddAction  # only writers pay for delta-rs

    now = time.time_ns() // 1_000_000
    operation = {"operation": "WRITE", "operationParameters": {"mode": "Append", "partitionBy": "[]"}}
    lines: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": now, **operation, "engineInfo": "partwise", **metadata}}
    ]
    for action in actions:
        if isinstance(action, AddAction):
            lines.append(
                {
                    "add": {
                        "path": action.path,
                        "partitionValues": {},
                        "size": action.size,
                        "modificationTime": action.modification_time,
                        "dataChange": action.data_change,
                        "stats": action.stats,
                    }
                }
            )
        else:
            lines.append(
                {
                    "remove": {
                        "path": action.path,
                        "dataChange": action.data_change,
                        "deletionTimestamp": action.deletion_timestamp,
                        "extendedFileMetadata": True,
                        "partitionValues": {},
                        "size": action.size,
                    }
                }
            )
    return "\n".join(json.dumps(line, separators=(",", ":")) for line in lines).encode()


def commit_info(actions: list[dict[str, Any]]) -> dict[str, Any]:
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})


def last_checkpoint(root: Folder) -> int:
    """The version of the newest checkpoint that the log points to; -1 without one."""
    content = root.read("_delta_log/_last_checkpoint")
    try:
        return int(json.loads(content)["version"]) if content else -1
    except (ValueError, KeyError):
        return -1  # a hint only: damaged is the same as absent


def _changes_data(action: dict[str, Any]) -> bool:
    found = action.get("add") or action.get("remove") or {}
    return bool(found.get("dataChange", False))


def name_of(version: int) -> str:
    return f"_delta_log/{version:020d}.json"
