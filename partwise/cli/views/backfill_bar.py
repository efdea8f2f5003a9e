"""A backfill that is under way, as people watch it, whoever carries it out: a bar, then a report. The ledger tells."""

from __future__ import annotations

import json as jsons
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from partwise.backfill import bar
from partwise.cli.views.backfill_plan import report, report_json
from partwise.cli.views.show import plural, say
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.backfills import Backfill, Done, progress, still_asked
from partwise.ledger.records.running import Running

_WIDTH = 100
#: Seconds between two drawings inside a step.
_BETWEEN = 0.2


@dataclass
class Watching:
    """`expected`: seconds for what is left, to go by while nothing is done yet."""

    ledger: Ledger
    found: Backfill
    expected: float | None = None
    _began: float = field(default_factory=time.monotonic)
    _before: int = 0
    _published: Collection[Done] = ()
    _drawn: float = 0.0

    def __post_init__(self) -> None:
        self._before = sum(each.recomputed.count for each in self.done().values())

    def done(self) -> dict[str, Done]:
        with self.ledger.database.reading() as r:
            return progress(r, self.ledger.graph(), self.found)

    def draw(self) -> None:
        """On a terminal only."""
        if sys.stderr.isatty():
            self._published = self.done().values()
            self._draw(0)

    def step(self, step: Running) -> None:
        """So far a step has come that is not published yet."""
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._drawn >= _BETWEEN:
            self._draw(step.done)

    def _draw(self, more: int) -> None:
        self._drawn = time.monotonic()
        done, elapsed = self._published, self._drawn - self._began
        left = sum(each.left.count for each in done)
        count, left = sum(each.recomputed.count for each in done) + min(more, left), left - min(more, left)
        unchanged = sum(each.unchanged.count for each in done)
        # What was done before, by whoever was interrupted, took no time of this one's.
        rate = elapsed * count / (count - self._before) if count > self._before else elapsed
        print(
            f"\r{bar(count, unchanged, left, rate, self.expected)}".ljust(_WIDTH), end="", file=sys.stderr, flush=True
        )

    def clear(self) -> None:
        if sys.stderr.isatty():
            print("\r" + " " * _WIDTH + "\r", end="", file=sys.stderr, flush=True)

    def conclude(self, json: bool, stopped: bool = False, more: Mapping[str, Any] | None = None) -> bool:
        """The report; whether everything that was requested is done."""
        self.clear()
        done, graph = self.done(), self.ledger.graph()
        left = still_asked(self.found, done)
        if json:
            print(jsons.dumps({"report": report_json(graph, done), **(more or {})}), flush=True)
            return not left
        report(graph, done)
        if stopped or left:
            say(f"Not finished: `partwise backfill {self.found.table} --resume` continues it.", "yellow")
        elif others := sum(each.left.count for each in done.values()):
            say(f"{plural(others, 'part')} wait for other stale parts; the next run computes them.", "yellow")
        return not left
