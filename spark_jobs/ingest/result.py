"""What an ingest tells."""

from __future__ import annotations

from dataclasses import dataclass, field

from partwise.parts import Parts
from spark_jobs.ingest.difference import RowChange


@dataclass(frozen=True)
class Ingested:
    """What one source (or dimension) took in. `closed` are parts that exist since, `changed` those that existed and
    have other content now; `refused` are files that were not taken, with the reason; `notes` are for people. `failed` are
    parts that are not closed because of their checks, `held` files that are not taken in because parts that exist
    would fail; `warned` are parts whose checks only warn. `rounded` counts values that a declared decimal rounds,
    `ignored_columns` are columns that nobody declared, `same_content` files that hold what another one brought, and
    `left` counts files of lots that are not loaded yet."""

    source: str
    files: int = 0
    rows: int = 0
    late_rows: int = 0
    quarantined: int = 0
    closed: Parts = field(default_factory=Parts)
    changed: Parts = field(default_factory=Parts)
    refused: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    held: list[tuple[str, str]] = field(default_factory=list)
    warned: dict[int, str] = field(default_factory=dict)
    row_change: RowChange = field(default_factory=RowChange)
    rounded: int = 0
    ignored_columns: list[str] = field(default_factory=list)
    same_content: list[tuple[str, str]] = field(default_factory=list)
    left: int = 0

    def then(self, other: Ingested) -> Ingested:
        """Both together: what was taken in before, and what the next lot took in."""
        a, b = self.row_change, other.row_change
        return Ingested(
            source=self.source,
            files=self.files + other.files,
            rows=self.rows + other.rows,
            late_rows=self.late_rows + other.late_rows,
            quarantined=self.quarantined + other.quarantined,
            closed=self.closed | other.closed,
            changed=self.changed | other.changed,
            refused=[*dict.fromkeys((*self.refused, *other.refused))],
            notes=[*dict.fromkeys((*self.notes, *other.notes))],
            failed={**self.failed, **other.failed},
            held=[*dict.fromkeys((*self.held, *other.held))],
            warned={**self.warned, **other.warned},
            row_change=RowChange(a.added + b.added, a.removed + b.removed, a.changed + b.changed),
            rounded=self.rounded + other.rounded,
            ignored_columns=[*dict.fromkeys((*self.ignored_columns, *other.ignored_columns))],
            same_content=[*dict.fromkeys((*self.same_content, *other.same_content))],
            left=other.left,
        )
