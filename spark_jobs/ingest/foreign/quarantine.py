"""Rows of a foreign table that have no part: what is in quarantine follows the files that came and went."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.definitions import Source
from partwise.ledger.records import files as ledger_files
from partwise.ledger.records.files import Quarantined
from partwise.sources.bounds import AHEAD, Bounds, reason_text
from spark_jobs.ingest.files import rows as r
from spark_jobs.ingest.files.rows import Shape
from spark_jobs.ingest.job import Job
from spark_jobs.ingest.quarantine import keep


@dataclass(frozen=True)
class Aside:
    """`rows` are told; `batch` holds all that is in quarantine from now on, instead of the batches that are dropped."""

    rows: int = 0
    batch: str | None = None
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChangedRows:
    """Rows of files that came and of files that went, in the form that files have after reading."""

    added: DataFrame | None
    removed: DataFrame | None


def all_aside(work: Job, rows: DataFrame, shape: Shape, limits: Bounds) -> Aside:
    """All rows of the table that have no part take the place of those that were in quarantine before."""
    placed = r.placed(rows, shape, limits, text=True)
    count = keep(work, placed, {0: work.table.delta or ""}, limits, 0)
    return Aside(count, work.batch if count else None, _batches(waiting(work)))


def changed_aside(work: Job, changed: ChangedRows, shape: Shape, limits: Bounds) -> Aside | None:
    """The same from the changed files alone. None: what went is not what was in quarantine, so look at everything."""
    before, gone = waiting(work), Counter(text for _, text in _bad(changed.removed, shape, limits))
    stay = []
    for row in before:
        if gone[row.row]:
            gone[row.row] -= 1
        else:
            stay.append((row.file_id, row.file, row.reason, row.row, row.layout, None))
    if gone.total():
        return None
    time = work.table.time.column if isinstance(work.table, Source) else ""
    came = [
        (0, work.table.delta or "", reason_text(why, limits, shape.length, time), text, None, None)
        for why, text in _bad(changed.added, shape, limits)
    ]
    if stay or came:
        with work.engine.ledger.database.writing(work.engine.now()) as w:
            ledger_files.set_aside(w, work.name, work.batch, [*stay, *came], 0)
    return Aside(len(came), work.batch if stay or came else None, _batches(before))


def waiting(work: Job) -> list[Quarantined]:
    with work.engine.ledger.database.reading() as reading:
        return ledger_files.quarantined(reading, work.name)


def any_ahead(work: Job) -> bool:
    """Whether rows wait only because their time had not come: by now they may have a part."""
    return any(AHEAD in row.reason for row in waiting(work))


def _bad(rows: DataFrame | None, shape: Shape, limits: Bounds) -> list[tuple[int, str]]:
    if rows is None:
        return []
    found = r.placed(rows, shape, limits, text=True).where(F.col(r.WHY) != 0).select(r.WHY, r.TEXT)
    return [(row[0], row[1]) for row in found.toLocalIterator()]


def _batches(rows: list[Quarantined]) -> tuple[str, ...]:
    return tuple(sorted({row.batch for row in rows}))
