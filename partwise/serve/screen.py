"""What people see while a workspace is served: a table that follows the ledger, or lines where there is no terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from partwise.serve import summary
from partwise.serve.site.environment import Keys
from partwise.serve.site.site import Site
from partwise.serve.supervise.supervisor import Supervisor

if TYPE_CHECKING:
    from partwise.ledger.ledger import Ledger

EVERY = 2.0  # seconds between two looks at the ledger


class Screen:
    """Reads the ledger now and then and shows what is there."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._ledger: Ledger | None = None
        self._live: Any = None
        self._next = 0.0
        self._said = ""
        self._found: list[summary.SummaryLine] = []
        self._began = time.monotonic()

    def __enter__(self) -> Screen:
        from partwise.ledger.open import open_ledger

        self._ledger = open_ledger(self._site.ledger_url, time.time())
        if sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._ledger is not None:
            self._ledger.database.close()

    def say(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            print(text, flush=True)

    def greet(self, keys: Keys, seconds: float) -> None:
        self.say(
            f"Airflow answers after {seconds:.0f} s: {self._site.address}   user {keys.user}   password {keys.password}"
        )

    def refresh(self, supervisor: Supervisor) -> int:
        """Shows what is there, if it is time. Returns the number of view parts at the last look."""
        now = time.monotonic()
        if now >= self._next and self._ledger is not None:
            self._found = self._look() or self._found
            self._show(supervisor)
            self._next = time.monotonic() + EVERY
        return summary.view_parts(self._found)

    def _look(self) -> list[summary.SummaryLine] | None:
        from sqlalchemy.exc import DBAPIError

        assert self._ledger is not None
        try:
            return summary.lines(self._ledger, time.time())
        except DBAPIError:  # PostgreSQL is being started again
            return None

    def _show(self, supervisor: Supervisor) -> None:
        if self._live is not None:
            self._live.update(summary.table(self._found, self._title(supervisor)), refresh=True)
            return
        said = summary.one_line(self._found)
        if said != self._said:
            self._said = said
            self.say(f"{time.monotonic() - self._began:4.0f} s  {said}")

    def _title(self, supervisor: Supervisor) -> str:
        if not supervisor.all_ready:
            return f"starting: {', '.join(supervisor.not_ready())} ..."
        return f"{self._site.address}   Ctrl-C stops"
