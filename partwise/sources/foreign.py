"""What happened to a Delta table that others write, from the actions in its log.

Files are compared as the state at one version with the state at another. Cancelling what was added and
removed in between would be wrong: RESTORE adds an old path again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A data file; with another deletion vector it counts as another file."""

    path: str
    vector: str | None
    partition: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    added: tuple[ForeignFile, ...]
    removed: tuple[ForeignFile, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def difference(commits: Iterable[Iterable[Mapping[str, Any]]]) -> Difference:
    """Files that are live after these commits and were not before, and the other way round.

    The first action on a file tells whether it was live before, the last one whether it is after. Commits that
    only move rows to other files (OPTIMIZE) leave a difference of files, and none of content.
    """
    was: dict[tuple[str, str | None], bool] = {}
    now: dict[tuple[str, str | None], bool] = {}
    found: dict[tuple[str, str | None], ForeignFile] = {}
    for actions in commits:
        # Within a commit the removal of a file comes before its addition, in whatever order they are written.
        ordered = sorted(actions, key=lambda action: "add" in action)
        for action in ordered:
            kind = "add" if "add" in action else "remove" if "remove" in action else None
            if kind is None:
                continue
            file = _file(action[kind])
            key = (file.path, file.vector)
            was.setdefault(key, kind == "remove")
            now[key] = kind == "add"
            if kind == "add" or key not in found:
                found[key] = file
    added = tuple(found[key] for key in now if now[key] and not was[key])
    removed = tuple(found[key] for key in now if was[key] and not now[key])
    return Difference(added, removed)


def only_moved(commits: Iterable[Iterable[Mapping[str, Any]]]) -> bool:
    """Whether no commit says that it changed rows."""
    acts = (action.get("add") or action.get("remove") for actions in commits for action in actions)
    return not any(act and act.get("dataChange", True) for act in acts)


def _file(raw: Mapping[str, Any]) -> ForeignFile:
    vector = raw.get("deletionVector")
    unique = None
    if vector:
        unique = f"{vector.get('storageType')}{vector.get('pathOrInlineDv')}@{vector.get('offset')}"
    values = raw.get("partitionValues") or {}
    return ForeignFile(unquote(raw["path"]), unique, tuple(sorted(values.items())))
