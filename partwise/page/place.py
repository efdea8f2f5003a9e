"""Where the page looks: one workspace, its ledger kept open, its definitions read again when their files change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from partwise.ledger.catalog import Catalog
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import LedgerProblem
from partwise.ledger.read.snapshot import Snapshot
from partwise.ledger.write.define import Changes
from partwise.workspace import BadSetting, NoWorkspace, Workspace, open_workspace

if TYPE_CHECKING:
    from partwise.compile.program import Program


class Unavailable(Exception):
    """There is nothing to look at now; the message is meant for people."""


class PageWorkspace:
    """The ledger's own definitions are shown: what the page says is what the next step will do.

    Opened at the first question and not before: an Airflow whose workspace is broken must start all the same.
    """

    def __init__(self, workspace: str | None = None) -> None:
        self._given = workspace
        self._lock = Lock()
        self._reading = Lock()  # of its own: no answer waits while definitions are read
        self._workspace: Workspace | None = None
        self._ledger: Ledger | None = None
        self._catalog = Catalog()
        self._known: tuple[object, ...] = ()
        self._definitions: Program | None = None

    @contextmanager
    def snapshot(self, now: float | None = None) -> Iterator[Snapshot]:
        ledger = self._open()
        with ledger.database.reading() as r:
            with self._lock:
                graph = self._catalog.graph(r)
            yield Snapshot(r, graph, time.time() if now is None else now, Changes())

    def workspace(self) -> Workspace:
        if self._workspace is None:
            try:
                self._workspace = open_workspace(self._given)
            except (NoWorkspace, BadSetting) as why:
                raise Unavailable(str(why)) from None
        return self._workspace

    def definitions(self) -> Program:
        """As they run here. Read again when files have changed, or strategies have been settled."""
        from partwise.choose.settled import settled
        from partwise.ledger.records.strategies import Settlements

        files = tuple(_stamps(self.workspace().definitions_folder))
        strategies = self._open().strategies() if self.workspace().has_ledger() else Settlements({})
        known = (files, strategies, strategies.owners)
        with self._reading:
            if self._definitions is None or known != self._known:
                self._definitions, self._known = settled(self.workspace().load(), strategies), known
            return self._definitions

    def ledger(self) -> Ledger:
        return self._open()

    def _open(self) -> Ledger:
        with self._lock:
            if self._ledger is None:
                workspace = self.workspace()
                if not workspace.has_ledger():
                    raise Unavailable(f"{workspace.folder} has no ledger yet; the first run makes it.")
                try:
                    self._ledger = workspace.open_ledger(time.time())
                except LedgerProblem as why:
                    raise Unavailable(str(why)) from None
            return self._ledger

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.database.close()
            self._ledger = None


def _stamps(folder: Path) -> Iterator[tuple[str, int, int]]:
    for file in sorted(folder.rglob("*.y*ml")):
        try:
            stat = file.stat()
        except OSError:
            continue  # it was there a moment ago
        yield str(file), stat.st_mtime_ns, stat.st_size
