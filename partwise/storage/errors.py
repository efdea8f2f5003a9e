"""What goes wrong with tables. Every message is meant for people."""

from __future__ import annotations


class StorageError(Exception):
    """A table cannot be read or written as asked."""


class StoreProblem(StorageError):
    """The object store does not answer, or refuses: nothing is known about the table. Trying again later is right."""
