"""Upkeep goes from table to table: one that is being written, or that something is wrong with, does not stop the rest."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import typer
from deltalake.exceptions import DeltaError
from pyarrow import ArrowException  # type: ignore[import-untyped]

from partwise.cli.views.running import TerminalLine
from partwise.cli.views.show import plural, say
from partwise.ledger.write.leases import Busy, Fenced
from partwise.ledger.write.orphans import Foreign
from partwise.storage import Conflict, StorageError
from partwise.upkeep.rewriting import Different

#: What can be wrong with one table. What is wrong with the ledger is wrong for all, and ends the command.
_TROUBLE = (StorageError, Different, Foreign, DeltaError, ArrowException, OSError)


@dataclass
class SkippedTables:
    """Tables that were left alone: `busy` ones by their writers, `failed` ones by what is wrong."""

    busy: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    stopped: bool = False
    _line: TerminalLine = field(default_factory=TerminalLine)
    _now: str = ""

    def through(self, names: Iterable[str], doing: str) -> Iterator[str]:
        """One after the other, with a line on a terminal that says which; none once somebody has pressed Ctrl-C."""
        wanted = list(names)
        for count, name in enumerate(wanted):
            if self.stopped:
                return
            self._now = f"{doing} {name}, {count} of {plural(len(wanted), 'table')} done"
            self._line.tell(f"{self._now} ...")
            yield name
        self._line.clear()

    def inside(self, done: int, of: int) -> None:
        """How far the table at hand is, if it is a large one."""
        if of > 1:
            self._line.tell(f"{self._now}; {done:,} of {of:,} groups of files merged ...")

    @contextmanager
    def until_ctrl_c(self) -> Iterator[None]:
        """What was done to a table by then is committed; the rest is as it was."""
        try:
            yield
        except KeyboardInterrupt:
            self.stopped = True

    @contextmanager
    def each(self, name: str) -> Iterator[None]:
        try:
            yield
        except Busy as why:
            self.busy[name] = why.holder
        except (Conflict, Fenced):
            self.busy.setdefault(name, "another process")
        except _TROUBLE as why:
            self.failed.setdefault(name, f"{str(why).strip() or type(why).__name__}".partition("\n")[0])

    def tell(self) -> None:
        for name in sorted(self.busy):
            say(f"{name} is being written just now by {self.busy[name]}; left for the next time.", "yellow")
        for name in sorted(self.failed):
            say(f"{name} was left as it is: {self.failed[name]}", "red")

    def end(self, wrong: bool = False) -> None:
        """Exit code 130 after Ctrl-C, 1 if something is wrong with a table."""
        if self.stopped:
            print("partwise: stopped; what is done stays, the next call goes on with the rest", file=sys.stderr)
            raise typer.Exit(130)
        if self.failed or wrong:
            raise typer.Exit(1)
