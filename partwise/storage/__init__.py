"""Delta tables without a JVM: read them, commit to them, query them.

What is imported from here brings delta-rs and pyarrow, about 0.1 s of CPU; `log`, `files` and `paths` alone do not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partwise.storage.errors import CommitRefused, Conflict, NoTable, StorageError, StoreProblem
    from partwise.storage.handle import File, Handle, Rewrite, rewrite
    from partwise.storage.log import Logged, entries
    from partwise.storage.schema import BadSchema
    from partwise.storage.staging import Swept, begin, discard, finish, staged, sweep, upload
    from partwise.storage.table import barrier, checkpoint, commit, create, exists, open_at, replace, unknown

__all__ = [
    "BadSchema",
    "CommitRefused",
    "Conflict",
    "File",
    "Handle",
    "Logged",
    "NoTable",
    "Rewrite",
    "StorageError",
    "StoreProblem",
    "Swept",
    "barrier",
    "begin",
    "checkpoint",
    "commit",
    "create",
    "discard",
    "entries",
    "exists",
    "finish",
    "open_at",
    "replace",
    "rewrite",
    "staged",
    "sweep",
    "unknown",
    "upload",
]
_HOMES = {
    "errors": ("CommitRefused", "Conflict", "NoTable", "StorageError", "StoreProblem"),
    "handle": ("File", "Handle", "Rewrite", "rewrite"),
    "log": ("Logged", "entries"),
    "schema": ("BadSchema",),
    "staging": ("Swept", "begin", "discard", "finish", "staged", "sweep", "upload"),
    "table": ("barrier", "checkpoint", "commit", "create", "exists", "open_at", "replace", "unknown"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(name)
    return getattr(import_module(f"partwise.storage.{_HOME_OF[name]}"), name)
