"""What a sample says of a part before it is refreshed, and how right it was so far."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select

from partwise.compile.program import Program
from partwise.fresh.asked.refused import Refused
from partwise.fresh.probe import part_answer
from partwise.ledger.database import Reading
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.estimates import checks_of, coverage
from partwise.ledger.records.readers import reading
from partwise.ledger.schema import step
from partwise.ledger.write.lease_holding import who
from partwise.tables import Table

_TOOK = select(step.c.seconds, step.c.parts).where(step.c.table == bindparam("t")).order_by(step.c.seq.desc()).limit(20)


@dataclass(frozen=True, slots=True)
class EstimatedLine:
    """One column's sum, or the number of rows. Without an estimate `why` says the reason."""

    column: str
    published: float | None
    estimate: float | None
    low: float | None
    high: float | None
    method: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """What was estimated before the newest refresh, and what the refresh gave."""

    column: str
    estimate: float
    low: float
    high: float
    truth: float
    covered: bool


@dataclass(frozen=True, slots=True)
class EstimatedPart:
    """`lines` are empty where the part is not stale or missing, or `problem` says why nothing is known. `coverage`: so
    far. `sample_seconds` and `refresh_seconds`: what a part of the sample takes, and one of the view."""

    table: str
    as_of: float | None
    lines: tuple[EstimatedLine, ...]
    problem: str | None
    compared: tuple[ComparedLine, ...]
    coverage: str | None
    sample_seconds: float | None
    refresh_seconds: float | None


def estimated(ledger: Ledger, program: Program, warehouse: str, table: Table, p: int) -> EstimatedPart:
    """Raises Refused for a table without a sample."""
    view = program.views.get(table.name)
    if view is None or view.sampled is None:
        raise Refused("no-sample", f"{table.name} has no sample")
    sampled, problem = view.sampled, None
    lines: tuple[EstimatedLine, ...] = ()
    at: float | None = None
    try:
        with reading(ledger.database, time.time, who()):  # upkeep leaves the files that it reads
            found, at = part_answer(ledger, warehouse, view, sampled, p)
        lines = tuple(
            EstimatedLine(
                name,
                _number(cell.published),
                _number(cell.estimate),
                _number(cell.low),
                _number(cell.high),
                cell.method,
                None if cell.refused is None else cell.refused.message,
            )
            for row in (found.rows if found is not None else ())
            for name, cell in row.cells.items()
        )
    except Refused as why:
        problem = why.message
    with ledger.database.reading() as r:
        known = coverage(r, table.name, sampled.sample)
        compared = tuple(
            ComparedLine(c.column, c.estimate, c.low, c.high, c.truth, c.covered) for c in checks_of(r, table.name, p)
        )
        helpers = [_seconds(r, name) for name in (sampled.sample, sampled.sizes) if name is not None]
        took = [s for s in helpers if s is not None]
        return EstimatedPart(
            table.name,
            at,
            lines,
            problem,
            compared,
            None if known is None else known.text(),
            sum(took) if took else None,
            _seconds(r, table.name),
        )


def _seconds(r: Reading, name: str) -> float | None:
    """Of one part, by the newest steps."""
    rows = r.on.execute(_TOOK, {"t": name}).all()
    parts = sum(row.parts for row in rows)
    return sum(row.seconds for row in rows) / parts if parts else None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
