"""Upkeep goes from table to table: one that is being written, or that something is wrong with, does not stop the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import typer
from deltalake.exceptions import DeltaError
from pyarrow import ArrowException  # type: ignore[import-untyped]

from partwise.cli.views.show import say
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
        """Exit code 1 if something is wrong with a table."""
        if self.failed or wrong:
            raise typer.Exit(1)
