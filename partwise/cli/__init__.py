"""The command line. `main` is what `partwise` runs; each command is one file in `commands/`."""

from __future__ import annotations

from partwise.cli.app import main

__all__ = ["main"]
