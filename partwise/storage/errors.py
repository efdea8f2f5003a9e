"""What goes wrong with tables. Every message is meant for people."""

from __future__ import annotations


class StorageError(Exception):
    """A table cannot be read or written as asked."""


class StoreProblem(StorageError):
    """The object store does not answer, or refuses: nothing is known about the table. Trying again later is right."""


class NoTable(StorageError):
    """There is no Delta table at this path, or not in this version."""


class Conflict(StorageError):
    """Another commit took the version; nothing of ours is visible. Start over from a new handle."""


class CommitRefused(StorageError):
    """The commit would have damaged the table; nothing was written."""
