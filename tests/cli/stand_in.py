"""Lets the demo go on without an engine: the ledger is told what would have been loaded and computed.

The contents are made up; everything that is decided from them (what is due, ready, stale, and why) is real.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from partwise.compile import Choice
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.strategies import Settlement, tables_of
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import parse_range
from partwise.tables import DIMENSION_PART
from partwise.workspace import open_workspace

_HOLDER = "the demo"


def load_rows(folder: Path, source: str, parts: str, rows: int) -> None:
    """Let parts of a source hold so many rows."""
    ledger, now = _open(folder), time.time()
    with closing(ledger.database):
        span = parse_range(parts, ledger.graph()[source].length)
        contents = {p: Content(rows, f"{rows}:{p}") for p in range(span.lo, span.hi + 1)}
        _commit(ledger, source, contents, "loaded", now)


def load_dimension(folder: Path, name: str, rows: int) -> None:
    ledger, now = _open(folder), time.time()
    with closing(ledger.database):
        _commit(ledger, name, {DIMENSION_PART: Content(rows, f"{rows}:{name}")}, "loaded", now)


def build_what_is_ready(folder: Path) -> bool:
    """Record every step of the plan as done; whether there was one."""
    ledger, now = _open(folder), time.time()
    with closing(ledger.database):
        tables = dict.fromkeys(step.table for step in ledger.plan(now).steps)
        for name in tables:
            held = ledger.take(name, _HOLDER, 60, now)
            pinned = ledger.pin(held, now)
            if pinned is None:
                ledger.release(held, now)
                continue
            contents = {p: Content(3, f"3:{p}.{pinned.seq}") for p in pinned.due}
            ledger.commit(held, pinned.entry(contents), (pinned.own.version or 0) + 1, now)
        return bool(tables)


def settle(folder: Path, view: str, strategy: str, rows: int, groups: int) -> None:
    """As a step does before the first part of a window."""
    ledger = _open(folder)
    with closing(ledger.database):
        now = open_workspace(str(folder), {}).definitions(ledger)
        after = now.choosing({view: Choice(strategy, "counted")})  # type: ignore[arg-type]
        item = Settlement(view, strategy, now.views[view].mark, "counted", rows, groups)  # type: ignore[union-attr]
        assert ledger.settle(item, tables_of(now.graph(), view), tables_of(after.graph(), view), time.time())


def _open(folder: Path) -> Ledger:
    workspace, now = open_workspace(str(folder), {}), time.time()
    ledger = workspace.open_ledger(now)
    workspace.take_over(ledger, workspace.load(), now)
    return ledger


def _commit(ledger: Ledger, name: str, contents: Mapping[int, Content], reason: str, now: float) -> None:
    held = ledger.take(name, _HOLDER, 60, now)
    at = ledger.current(name)
    entry = Entry(name, at.generation, ledger.graph()[name].fingerprint, None, parts=contents, reason=reason)
    ledger.commit(held, entry, 0 if at.version is None else at.version + 1, now)
