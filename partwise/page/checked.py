"""What the checks of a part found, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from partwise.checks.results import KeptResults
from partwise.parts import part_text
from partwise.tables import Table


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One check of one part. `rows` are a sample of those that are against it, as JSON texts."""

    part: str | None
    at: float
    outcome: str
    check: str
    severity: str
    ok: bool
    message: str
    rows: tuple[str, ...]
    accepted_by: str | None


def lines_of(table: Table, kept: KeptResults) -> Iterator[CheckLine]:
    text = None if table.kind == "dimension" else part_text(kept.part, table.length)
    for item in kept.results:
        yield CheckLine(
            text, kept.at, kept.outcome, item.title, item.severity, item.ok, item.message, item.rows, kept.accepted_by
        )
