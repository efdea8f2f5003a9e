"""Delta tables without a JVM: read them, commit to them, query them.

Importing this costs about 0.2 s (delta-rs and pyarrow), so commands import it only when they need it.
"""

from partwise.storage.log import Logged, entries
from partwise.storage.schema import BadSchema
from partwise.storage.staging import Swept, begin, discard, finish, staged, sweep
from partwise.storage.table import (
    CommitRefused,
    Conflict,
    File,
    Handle,
    NoTable,
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
    "CommitRefused",
    "Conflict",
    "File",
    "Handle",
    "Logged",
    "NoTable",
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
