"""Steps that run now, as people see them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from partwise.backfill.bar import bar
from partwise.cli.views.show import as_json, moment_json, moment_text, say
from partwise.parts import duration_text, range_text

#: Seconds between two drawings.
_BETWEEN = 0.2

if TYPE_CHECKING:
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.ledger.records.running import Running
    from partwise.tables import Graph


def show_running(snapshot: Snapshot, json: bool, zone: str) -> None:
    if json:
        as_json({"running": running_json(snapshot)})
        return
    lines = running_lines(snapshot, zone)
    for line in lines or ["No step runs now."]:
        say(line)


def running_json(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "table": step.table,
            "parts": range_text(step.parts, snapshot.graph[step.table].length),
            "done": step.done,
            "of": step.of,
            "since": moment_json(step.since),
        }
        for step in _steps(snapshot)
    ]


def running_lines(snapshot: Snapshot, zone: str) -> list[str]:
    return [
        f"{progress_line(snapshot.graph, step, time.time() - step.since)}, since {moment_text(step.since, zone)}"
        for step in _steps(snapshot)
    ]


def computed_now(snapshot: Snapshot, table: str, part: int) -> str:
    """The end of a sentence, if a step that runs now has this part in its span."""
    for step in _steps(snapshot):
        if step.table == table and part in step.parts:
            return f" A step is at work on it: {step.done:,} of {step.of:,} parts are computed."
    return ""


def progress_line(graph: Graph, step: Running, seconds: float) -> str:
    """`total_loss[10:05..11:00] [######..] 12 of 40 parts, 28 left, about 40 seconds`."""
    where = range_text(step.parts, graph[step.table].length) if step.table in graph.tables else "..."
    return f"{step.table}[{where}] {bar(step.done, 0, step.of - step.done, seconds)}"


class TerminalLine:
    """A line on a terminal that is drawn over and over; nothing elsewhere."""

    def __init__(self, width: int = 110) -> None:
        self._width, self._drawn = width, 0.0
        self._shown = sys.stderr.isatty()

    def tell(self, text: str, often: bool = True) -> None:
        """`often`: may come many times a second, and is not worth drawing each time."""
        now = time.monotonic()
        if self._shown and not (often and now - self._drawn < _BETWEEN):
            self._drawn = now
            print(f"\r{text[: self._width]}".ljust(self._width), end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._drawn:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)


class Live(TerminalLine):
    """Follows the step which came further last, and loads of many files."""

    def __init__(self, graph: Callable[[], Graph]) -> None:
        super().__init__()
        self._graph = graph
        self._loaded: dict[str, str] = {}

    def draw(self, step: Running) -> None:
        # The first part of a step is told by the line of the step itself, when it is done.
        if self._shown and step.of > 1:
            self.tell(progress_line(self._graph(), step, time.time() - step.since))

    def working(self, step: Running) -> None:
        """Also where no part is finished for long: nobody should think that it hangs."""
        seconds = max(0, round(time.time() - step.since))
        self.tell(f"{progress_line(self._graph(), step, seconds)}; at work for {duration_text(seconds)}")

    def load(self, table: str, files: int, of: int) -> None:
        """So many files are loaded; the next ones are being read."""
        if of > 1:
            self._loaded[table] = f"{files:,} of {of:,} files loaded"
            self.tell(f"{table}: {self._loaded[table]} ...", often=False)

    def loading_since(self, table: str, since: float) -> None:
        """One large file, or a Delta table of others, has no files to count."""
        seconds = max(0, round(time.time() - since))
        self.tell(f"{table}: {self._loaded.get(table, 'being loaded')}; at work for {duration_text(seconds)}")


def _steps(snapshot: Snapshot) -> list[Running]:
    from partwise.ledger.records.running import running_steps

    return [step for step in running_steps(snapshot.r, time.time()) if step.table in snapshot.graph.tables]
