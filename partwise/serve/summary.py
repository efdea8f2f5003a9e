"""What is there now, in a few lines: read from the ledger, without a JVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from partwise.cli.views.show import moment_text, part_or_none

if TYPE_CHECKING:
    from rich.table import Table as Shown

    from partwise.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One table, as people see it."""

    table: str
    kind: str
    parts: int
    newest: str
    stale: int
    waiting: int
    failed: int
    updated: str


def lines(ledger: Ledger, now: float, zone: str = "UTC") -> list[SummaryLine]:
    """Every table that is not a helper, with the definitions that the ledger has taken over."""
    from partwise.ledger.read import reports
    from partwise.ledger.read.snapshot import as_defined

    with as_defined(ledger, ledger.graph(), now) as snapshot:
        return [
            SummaryLine(
                table=found.table.name,
                kind=found.table.kind,
                parts=found.parts,
                newest=part_or_none(found.last, found.table.length, found.table.kind) or "",
                stale=found.stale,
                waiting=found.missing,
                failed=found.failed,
                updated=moment_text(found.last_updated, zone, short=True),
            )
            for found in reports.tables(snapshot)
            if found.table.helper_of is None
        ]


def view_parts(found: list[SummaryLine]) -> int:
    return sum(line.parts for line in found if line.kind == "view")


def one_line(found: list[SummaryLine]) -> str:
    """For a log: what changes while it works."""
    sources = sum(line.parts for line in found if line.kind == "source")
    stale, waiting = sum(line.stale for line in found), sum(line.waiting for line in found)
    failed = sum(line.failed for line in found)
    said = f"{sources} source parts, {view_parts(found)} view parts, {stale} stale, {waiting} missing"
    return f"{said}, {failed} failed" if failed else said


def table(found: list[SummaryLine], title: str) -> Shown:
    from rich import box
    from rich.table import Table as Shown

    shown = Shown(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, header_style="bold")
    for heading in ("table", "kind", "parts", "newest", "stale", "missing", "failed", "last updated"):
        shown.add_column(heading, justify="right" if heading in ("parts", "stale", "missing", "failed") else "left")
    for line in found:
        shown.add_row(
            line.table,
            line.kind,
            str(line.parts or ""),
            line.newest,
            f"[yellow]{line.stale}" if line.stale else "",
            f"[yellow]{line.waiting}" if line.waiting else "",
            f"[bold red]{line.failed}" if line.failed else "",
            line.updated,
        )
    return shown
