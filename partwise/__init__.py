"""Partwise keeps materialised views over time-partitioned data exact and fresh.

For programs: `partwise.open(workspace)` reads tables and asks what is there and what would run; see docs/api.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from os import PathLike

    from partwise.api import PartwiseError, Reader

__version__ = "0.2.0"
__all__ = ["PartwiseError", "__version__", "open"]


def open(workspace: str | PathLike[str] | None = None) -> Reader:
    """Open a workspace for reading: a folder, or by default what PARTWISE_WORKSPACE or the current folder means.

    Raises PartwiseError if there is no workspace.
    """
    from partwise.api import open_reader

    return open_reader(workspace)


def __getattr__(name: str) -> Any:
    # Imported when used: `import partwise` is on the way of every command and stays light.
    if name == "PartwiseError":
        from partwise.api import PartwiseError

        return PartwiseError
    raise AttributeError(f"module 'partwise' has no attribute {name!r}")
