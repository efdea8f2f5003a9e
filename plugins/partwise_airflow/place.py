"""Where the work is: the workspace and its ledger, for tasks and triggers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from partwise.ledger.ledger import Ledger
from partwise.workspace import Workspace, open_workspace


@contextmanager
def ledger_at(workspace: str | None, take_over: bool = False) -> Iterator[tuple[Workspace, Ledger]]:
    """The ledger of a workspace (PARTWISE_WORKSPACE, unless one is named), closed afterwards."""
    found = open_workspace(workspace)
    ledger = found.open_ledger(time.time())
    try:
        if take_over:
            found.take_over(ledger, found.load(), time.time())
        yield found, ledger
    finally:
        ledger.database.close()
