"""Delta tables without a JVM: read them, commit to them, query them.

What is imported from here brings delta-rs and pyarrow, about 0.1 s of CPU; `log`, `files` and `paths` alone do not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partwise.storage.log import Logged, entries
    from partwise.storage.schema import BadSchema
    from partwise.storage.staging import Swept, begin, discard, finish, staged, sweep
    from partwise.storage.table import (
        Conflict,
        File,
        Handle,
        NoTable,
        Refused,
        Rewrite,
        StorageError,
        barrier,
        checkpoint,
        commit,
        create,
        exists,
        open_at,
        replace,
        rewrite,
    )

__all__ = [
    "BadSchema",
    "Conflict",
    "File",
    "Handle",
    "Logged",
    "NoTable",
    "Refused",
    "Rewrite",
    "StorageError",
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
]
_HOMES = dict.fromkeys(("Logged", "entries"), "log") | {"BadSchema": "schema"}
_HOMES |= dict.fromkeys(("Swept", "begin", "discard", "finish", "staged", "sweep"), "staging")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module(f"partwise.storage.{_HOMES.get(name, 'table')}"), name)
