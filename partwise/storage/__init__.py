"""Delta tables without a JVM: read them, commit to them, query them.

Importing this costs about 0.2 s (delta-rs and pyarrow), so commands import it only when they need it.
"""

from partwise.storage.errors import Conflict, NoTable, Refused, StorageError, StoreProblem
from partwise.storage.handle import File, Handle, Rewrite, rewrite
from partwise.storage.log import Logged, entries
from partwise.storage.schema import BadSchema
from partwise.storage.staging import Swept, begin, discard, finish, staged, sweep, upload
from partwise.storage.table import barrier, checkpoint, commit, create, exists, open_at, replace

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
    "upload",
]
