"""Rows that cannot be placed: kept with their file and the reason, and taken in after all on request."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.definitions import Source
from partwise.ledger.records import files as ledger_files
from partwise.ledger.records.files import Delivery, Quarantined
from partwise.sources.bounds import UNFIT, Bounds, reason_text
from partwise.sources.misfit import misfit
from partwise.sources.sums import changed as contents_after
from spark_jobs.ingest.difference import RowChange
from spark_jobs.ingest.files import rows as r
from spark_jobs.ingest.files.find import FoundFile
from spark_jobs.ingest.files.layout import Layout
from spark_jobs.ingest.files.lines import SetAside, by_file, located
from spark_jobs.ingest.files.links import LinkedFiles
from spark_jobs.ingest.job import Job, shape_of
from spark_jobs.ingest.publish import TableChange, publish
from spark_jobs.ingest.result import Ingested
from spark_jobs.step.read import union

#: Rows that are written to the ledger at once.
_AT_ONCE = 5_000


def set_aside(work: Job, links: LinkedFiles, ids: dict[int, FoundFile], bad: Sequence[int], limits: Bounds) -> int:
    """Read the files with bad rows again and keep those rows; they count once the batch is committed."""
    groups: dict[Layout, list[str]] = {}
    for number in bad:
        layout, path = links.paths[number]
        groups.setdefault(layout, []).append(path)
    shape, count = shape_of(work.table), 0
    for layout, paths in groups.items():
        found = r.placed(r.read(work.engine.spark, layout, paths, shape, numbered=True), shape, limits, text=True)
        find = partial(_find, ids, layout, r.telling(shape))
        count += keep(work, found, {n: f.name for n, f in ids.items()}, limits, count, find)
    return count


def _find(
    ids: dict[int, FoundFile], layout: Layout, telling: Sequence[str], rows: Sequence[SetAside]
) -> list[SetAside]:
    return [row for number, some in by_file(rows).items() for row in located(some, ids[number], layout, telling)]


def keep(
    work: Job,
    placed: DataFrame,
    names: dict[int, str],
    limits: Bounds,
    first: int,
    find: Callable[[Sequence[SetAside]], list[SetAside]] = list,
) -> int:
    """Write the bad ones of these rows to the ledger; returns how many there were. `find` looks up their lines."""
    bad = placed.where(F.col(r.WHY) != 0).select(r.FILE, r.WHY, r.TEXT, r.LAYOUT, r.LINE, r.RAW).toLocalIterator()
    rows = (SetAside(*row) for row in bad)
    time = work.table.time.column if isinstance(work.table, Source) else ""
    length, count = shape_of(work.table).length, 0
    while some := list(islice(rows, _AT_ONCE)):
        # Lines are told apart by their order, so all rows of a file have to be there.
        known = find(some) if not count and len(some) < _AT_ONCE else some
        texts = [
            (x.file_id, names[x.file_id], _reason(work, x, limits, length, time), x.text, x.layout, x.line)
            for x in known
        ]
        with work.engine.ledger.database.writing(work.engine.now()) as w:
            ledger_files.set_aside(w, work.name, work.batch, texts, first + count)
        count += len(some)
    return count


def _reason(work: Job, row: SetAside, limits: Bounds, length: int, time: str) -> str:
    said = reason_text(row.why, limits, length, time)
    if said != UNFIT:
        return said
    columns = {name: kind for name, kind in work.table.columns.items() if name.lower() != time.lower()}
    what = misfit(row.text, json.loads(row.layout) if row.layout else None, columns)
    return f"{said}: {what}" if what else said


def release(work: Job, waiting: Sequence[Quarantined]) -> Ingested:
    """Take in what has an event time, however late or early; the rest stays, with today's reason.

    The rows keep the id of their file: a correction or a retraction of it takes them out as well. They do not
    move the watermark: a row from far ahead would close everything before it.
    """
    spark, shape = work.engine.spark, shape_of(work.table)
    limits = Bounds(floor=work.state.floor)
    by_layout: dict[str | None, list[tuple[str, int, int | None]]] = {}
    for row in waiting:
        by_layout.setdefault(row.layout, []).append((row.row, row.file_id, row.line))
    names = {row.file_id: row.file for row in waiting}
    parsed = [
        r.placed(
            r.again(spark.createDataFrame(found, f"{r.TEXT} string, {r.FILE} int, {r.LINE} long"), layout, shape),
            shape,
            limits,
            text=True,
        )
        for layout, found in by_layout.items()
    ]
    frame = union(parsed)
    good = frame.where(F.col(r.WHY) == 0)
    files = work.stage(good.drop(r.WHY, r.WHEN, r.ROUNDED, r.TEXT, r.LAYOUT, r.LINE, r.RAW), expected=len(waiting))
    added = work.digests(files)
    rows = sum(int(d.partition(":")[0]) for d in added.values())
    left = keep(work, frame, names, limits, 0) if rows < len(waiting) else 0
    if rows + left != len(waiting):
        raise AssertionError(f"{work.name}: {len(waiting)} rows in quarantine, {rows} taken in, {left} left")
    work.engine.passed("staged")
    if not rows:
        _forget(work)
        return Ingested(work.name, quarantined=left)
    spans = (min(added), max(added))
    released = {row.file_id for row in waiting}
    known = [replace_span(f, spans) for f in work.state.files.values() if f.id in released and f.state == "loaded"]
    delivery = Delivery(
        files=tuple(known),
        batch=work.batch if left else None,
        dropped=tuple(sorted({row.batch for row in waiting})),
        last_file=work.state.intake.last_file,
    )
    change = TableChange(
        adds=files,
        touched=contents_after(work.contents(added), added, {}),
        arrived={p: int(d.partition(":")[0]) for p, d in added.items()},
        delivery=delivery,
        reason="released from quarantine",
    )
    done = publish(work, change)
    return Ingested(
        work.name,
        0,
        rows,
        done.late_rows,
        left,
        done.closed,
        done.changed,
        notes=list(done.notes),
        row_change=RowChange(added=rows),
    )


def replace_span(taken: ledger_files.TakenFile, span: tuple[int, int]) -> ledger_files.TakenFile:
    """The parts in which rows of this file may be, wider by those that come in now."""
    lows = [p for p in (taken.lo, span[0]) if p is not None]
    highs = [p for p in (taken.hi, span[1]) if p is not None]
    return taken._replace(lo=min(lows), hi=max(highs))


def _forget(work: Job) -> None:
    """Nothing could be taken in: what was quarantined again in this try goes."""
    work.settle(committed=False)
    with work.engine.ledger.database.writing(work.engine.now()) as w:
        ledger_files.forget_batch(w, work.name, work.batch)
