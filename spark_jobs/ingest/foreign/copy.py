"""Delta tables that others write: watched through their log, copied part by part into a table of our own.

Our copy is what pins and as-of reads need: its owner may vacuum his at any time. Only files that the
log names are read to see which parts changed, and then only those parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from partwise import storage
from partwise.checks.results import Checked
from partwise.definitions import Dimension, Source
from partwise.ledger.records import checks as ledger_checks
from partwise.ledger.records import files as ledger_files
from partwise.ledger.records.files import Delivery
from partwise.ledger.write.commit import EMPTY, Content
from partwise.parts import Parts
from partwise.sources.bounds import Bounds, bounds
from partwise.sources.sums import plus
from partwise.storage import schema as schemas
from partwise.workspace import Workspace
from spark_jobs.checks.source import HeldBack, tell
from spark_jobs.engine import Engine
from spark_jobs.ingest.difference import RowChange, row_change
from spark_jobs.ingest.dimension import replace_content
from spark_jobs.ingest.files import rows as r
from spark_jobs.ingest.files.find import RefusedFile
from spark_jobs.ingest.files.rows import Shape
from spark_jobs.ingest.foreign.look import Watched, look_at
from spark_jobs.ingest.foreign.quarantine import Aside, ChangedRows, all_aside, any_ahead, changed_aside
from spark_jobs.ingest.foreign.watch import Vacuumed, in_time, rows_added_and_removed
from spark_jobs.ingest.job import Job, contents_of, shape_of
from spark_jobs.ingest.publish import TableChange, publish
from spark_jobs.ingest.result import Ingested
from spark_jobs.retry import SPARK_ERRORS, message_of
from spark_jobs.step import read
from spark_jobs.step.digest import digests

_HIDDEN = {schemas.PART, schemas.PART_TIMESTAMP, r.FILE}


def columns_of(engine: Engine, workspace: Workspace, table: Source | Dimension) -> dict[str, str]:
    """As declared, or else as the Delta table has them."""
    if table.columns or table.delta is None:
        return dict(table.columns)
    watched = look_at(workspace.locate(table.delta))
    schema = read.foreign(engine.spark, watched.path, watched.version).schema
    return {field.name: field.dataType.simpleString() for field in schema if field.name not in _HIDDEN}


@dataclass(frozen=True)
class Affected:
    """Parts whose content differs; `bad` whether the rows that have no part do. None: everything is new.

    `changed` are the rows that tell, if they can be told from the files that came and went.
    """

    parts: Parts | None
    bad: bool
    note: str | None = None
    changed: ChangedRows | None = None


def load_foreign(work: Job, columns: dict[str, str]) -> Ingested:
    delta = work.table.delta
    assert delta is not None
    watched, intake = look_at(work.workspace.locate(delta)), work.state.intake
    shape = shape_of(work.table, columns)
    position = Delivery(origin=watched.origin, position=watched.version)
    again = _again(work)
    if (intake.origin, intake.position) == (watched.origin, watched.version) and not again:
        if isinstance(work.table, Dimension):
            return Ingested(work.name)
        published = publish(work, TableChange())
        notes, failed, warned = list(published.notes), dict(published.failed), dict(published.warned)
        return Ingested(work.name, closed=published.closed, notes=notes, failed=failed, warned=warned)
    rows = foreign_rows(work, watched.path, watched.version, shape)
    reason = f"version {watched.version} of {delta}"
    if isinstance(work.table, Dimension):
        return _whole(work, rows, shape, position, reason)
    # Without a bound ahead, one row of the year 9999 would close every part.
    limits = bounds(None, work.engine.now(), None, work.table.late.future, work.state.floor)
    affected = _affected(work, watched, rows, shape, limits)
    if affected.parts is not None:
        affected = replace(affected, parts=affected.parts | again)
    held: dict[int, str] = {}
    while True:
        try:
            done = _copy(work, rows, shape, limits, affected, position, reason)
        except HeldBack as why:
            # The parts stay as they were; the ledger remembers that they lag behind.
            tell(work, why.found.values())
            work.settle(committed=False)
            with work.engine.ledger.database.writing(work.engine.now()) as w:
                ledger_files.forget_batch(w, work.name, work.batch)
            held |= {p: found.message() for p, found in why.found.items()}
            assert affected.parts is not None  # the first copy meets no part that exists
            affected = replace(affected, parts=affected.parts - Parts.single(*why.found))
            continue
        done.failed.update(held)
        return done


def _again(work: Job) -> Parts:
    """Parts that were held back, and may pass by now: their checks changed, or somebody accepted them."""
    with work.engine.ledger.database.reading() as reading:
        return Parts.single(*ledger_checks.lagging(reading, work.name)) & work.state.existing


def _whole(work: Job, rows: DataFrame, shape: Shape, position: Delivery, reason: str) -> Ingested:
    """A dimension: all of it, if it differs."""
    files = work.stage(r.placed(rows, shape, Bounds()).where(f"{r.WHY} = 0").drop(r.WHY, r.WHEN, r.ROUNDED))
    aside = all_aside(work, rows, shape, Bounds())
    delivery = replace(position, batch=aside.batch, dropped=aside.dropped)
    try:
        done = replace_content(work, files, delivery, reason)
    except HeldBack as why:
        news = {p: found.message() for p, found in why.found.items() if not _told(work, found)}
        tell(work, why.found.values())
        work.settle(committed=False)
        return Ingested(work.name, failed=news)
    return Ingested(
        work.name, 1, done.rows, 0, aside.rows, changed=done.changed, warned=done.warned, row_change=done.row_change
    )


def _told(work: Job, found: Checked) -> bool:
    """Whether this very content was held back before: it is looked at again, but nobody is told twice."""
    with work.engine.ledger.database.reading() as reading:
        before = ledger_checks.kept(reading, work.name, found.part)
    return found.part in work.state.failing and before is not None and before.digest == found.digest


def foreign_rows(work: Job, path: str, version: int, shape: Shape) -> DataFrame:
    return fitted(read.foreign(work.engine.spark, path, version), shape)


def fitted(rows: DataFrame, shape: Shape) -> DataFrame:
    """The declared columns, in the form that files have after reading. Raises BadFile."""
    have = {name.lower(): name for name in rows.columns}
    missing = [name for name in shape.columns if name.lower() not in have]
    if missing:
        raise RefusedFile(f"the Delta table has no column {missing[0]}; its columns are {', '.join(rows.columns)}")
    return rows.select(
        *(F.col(schemas.quoted(have[name.lower()])).alias(name) for name in shape.columns),
        F.lit(None).cast("string").alias(r.BAD),
        F.lit(0).alias(r.FILE),
        F.lit(None).cast("string").alias(r.LAYOUT),
        F.lit(None).cast("long").alias(r.LINE),
    )


def _affected(work: Job, watched: Watched, rows: DataFrame, shape: Shape, limits: Bounds) -> Affected:
    """From the files that came and went since the last look; from everything if they are no longer there."""
    intake = work.state.intake
    if intake.position is None:
        return Affected(None, True)
    try:
        files = rows_added_and_removed(work.engine.spark, watched, intake)
        changed_files = ChangedRows(*(None if rows is None else fitted(rows, shape) for rows in files))
        sums: list[dict[int | None, str]] = []
        for frame in (changed_files.added, changed_files.removed):
            if frame is None:
                sums.append({})
                continue
            placed = r.placed(frame, shape, limits)
            made = digests(placed, work.handle.schema, leave_out=r.NO_CONTENT)
            sums.append({p: digest for p, digest in made.items()})  # noqa: C416  # keys of a wider type
        after, before = sums
        net = {p: plus(after.get(p, EMPTY.digest), before.get(p, EMPTY.digest), -1) for p in {*after, *before}}
        changed = {p for p, digest in net.items() if digest != EMPTY.digest}
        parts_changed = Parts.single(*(p for p in changed if p is not None))
        if changed and any_ahead(work):
            return Affected(parts_changed, True)
        return Affected(parts_changed, None in changed, changed=changed_files)
    except (Vacuumed, *SPARK_ERRORS) as why:
        note = (
            f"what changed since version {intake.position} of the Delta table cannot be read any more "
            f"({message_of(why).splitlines()[0][:200]}); all of it was compared by digests instead"
        )
    now = digests(r.placed(rows, shape, limits), work.handle.schema, leave_out=r.NO_CONTENT)
    known = work.contents({*work.state.existing, *work.state.opened})
    parts = {*now, *known}
    differ = (p for p in parts if p is not None and now.get(p, EMPTY.digest) != known.get(p, EMPTY).digest)
    return Affected(Parts.single(*differ), True, note)


def _copy(
    work: Job, rows: DataFrame, shape: Shape, limits: Bounds, affected: Affected, position: Delivery, reason: str
) -> Ingested:
    """Replace the affected parts of our table by what the foreign one holds now."""
    notes = [affected.note] if affected.note else []
    wanted = affected.parts
    files: tuple[storage.File, ...] = ()
    newest, rounded = None, 0
    if wanted is None or wanted:
        chosen = rows if wanted is None else rows.where(in_time(rows, shape, wanted))
        placed, seen = r.placed(chosen, shape, limits), Observation()
        good = placed.where(f"{r.WHY} = 0")
        good = good if wanted is None else good.where(read.in_parts(wanted))
        good = good.observe(seen, F.max(r.WHEN).alias("newest"), F.sum(r.ROUNDED).alias("rounded"))
        files = work.stage(good.drop(r.WHY, r.WHEN, r.ROUNDED))
        newest, rounded = seen.get["newest"], seen.get["rounded"] or 0
    work.engine.passed("staged")
    found = contents_of(work.digests(files))
    after = found if wanted is None else {p: found.get(p, EMPTY) for p in wanted}
    before = work.contents(after)
    plan = storage.rewrite(work.handle, Parts.single(*before))
    kept = read.survivors(work.engine.spark, work.handle, plan)
    again = () if kept is None else work.stage(kept)
    aside = _aside(work, rows, shape, limits, affected)
    row_counts = _row_change(work, files, wanted, found)
    arrived = {p: c.rows - before.get(p, EMPTY).rows for p, c in after.items()}
    delivery = Delivery(
        batch=aside.batch,
        dropped=aside.dropped,
        watermark=newest,
        origin=position.origin,
        position=position.position,
    )
    change = TableChange(
        adds=[*files, *again],
        removes=plan.removed,
        touched=after,
        arrived={p: n for p, n in arrived.items() if n > 0},
        delivery=delivery,
        reason=reason,
    )
    done = publish(work, change)
    rows_in = sum(change.arrived.values())
    return Ingested(
        work.name,
        1,
        rows_in,
        done.late_rows,
        aside.rows,
        done.closed,
        done.changed,
        notes=[*notes, *done.notes],
        failed=dict(done.failed),
        warned=dict(done.warned),
        row_change=row_counts,
        rounded=rounded,
    )


def _row_change(
    work: Job, files: Sequence[storage.File], wanted: Parts | None, found: Mapping[int, Content]
) -> RowChange:
    """Before the commit: the parts as they will be, against what they hold."""
    if wanted is None:
        return RowChange(added=sum(content.rows for content in found.values()))
    if not wanted:
        return RowChange()
    spark, handle = work.engine.spark, work.handle
    there = handle.files_of(wanted)
    old = read.files(spark, handle, there).where(read.in_parts(wanted)) if there else None
    return row_change(read.staged(spark, handle, files) if files else None, old)


def _aside(work: Job, rows: DataFrame, shape: Shape, limits: Bounds, affected: Affected) -> Aside:
    if not affected.bad:
        return Aside()
    found = None if affected.changed is None else changed_aside(work, affected.changed, shape, limits)
    return found or all_aside(work, rows, shape, limits)
