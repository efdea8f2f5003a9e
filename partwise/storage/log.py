"""What the Delta log says, read directly: no snapshot is built for it.

Commits of Partwise carry the ledger's entry in their metadata. After a crash the ledger is completed
from here ("adoption"), so the reading must never skip a version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from partwise.storage.files import Folder, folder

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


def entries(path: str, after_version: int) -> list[Logged]:
    """Every version after this one, in order, without gaps. `-1` means from the beginning."""
    return list(_entries(folder(path), after_version))


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
    return root.size(_name(version + 1)) is not None or last_checkpoint(root) > version


def actions_of(root: Folder, version: int) -> list[dict[str, Any]] | None:
    """The actions of one commit; None where its log file is not there."""
    content = root.read(_name(version))
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


def _name(version: int) -> str:
    return f"_delta_log/{version:020d}.json"
