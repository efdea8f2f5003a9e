"""Dimensions: small tables without parts. The newest file is their content; unchanged content changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.definitions import Dimension
from partwise.ledger.read.born import versions as versions_of
from partwise.ledger.read.pin import Superseded, version_then
from partwise.ledger.records.files import Delivery, TakenFile, touched
from partwise.ledger.write.commit import EMPTY, Content, Entry
from partwise.parts import Parts
from partwise.sources.bounds import Bounds
from partwise.storage import File
from partwise.storage import schema as schemas
from partwise.tables import DIMENSION_PART
from spark_jobs import versions
from spark_jobs.checks.source import HeldBack, checked_dimension, tell
from spark_jobs.ingest.difference import RowChange, look_up, row_change
from spark_jobs.ingest.files import rows as r
from spark_jobs.ingest.files.links import linked
from spark_jobs.ingest.job import Job, contents_of
from spark_jobs.ingest.load import Seen, find_new, hold_files, let_go, read_quickly, stage_all, unchanged
from spark_jobs.ingest.publish import record
from spark_jobs.ingest.result import Ingested
from spark_jobs.ingest.validity import changed_times
from spark_jobs.step import read
from spark_jobs.step.digest import digests, row_count


def load_dimension(work: Job, settle: float, failed: dict[str, str]) -> Ingested:
    dimension = work.table
    assert isinstance(dimension, Dimension)
    taking = find_new(work.workspace, dimension, work, settle, failed)
    if taking.same:
        with work.engine.ledger.database.writing(work.engine.now()) as w:
            touched(w, work.name, [(f.name, f.size, f.mtime) for f in taking.same])
    chosen = taking.files
    if not chosen:
        let_go(work, taking.let_go, Parts.single(DIMENSION_PART))
        return Ingested(work.name, refused=taking.refused)
    number, found, _ = chosen[0]
    read_here, content = read_quickly(work, chosen[:1], Bounds(), DIMENSION_PART), None
    if read_here is not None:
        files, seen = work.stage_rows(read_here.rows, read_here.digests), Seen(rows=read_here.rows.num_rows)
        content = contents_of(read_here.digests).get(DIMENSION_PART, EMPTY)
    else:
        with linked(work.workspace, work.name, work.batch, chosen, work.sees_disk) as links:
            files, seen = stage_all(work, links, {number: found}, Bounds())
    work.engine.passed("staged")
    unchanged([found])
    taken = TakenFile(number, found.name, found.look.size, found.look.mtime, found.hash)
    delivery = Delivery(
        files=(taken,),
        gone=tuple(f.id for f in work.state.files.values()),
        batch=work.batch if seen.bad else None,
        last_file=taking.last_file,
    )
    try:
        done = replace_content(work, files, delivery, f"content of {found.name}", content)
    except HeldBack as why:
        raise hold_files(work, replace(taking, files=chosen), files, (), why) from why
    let_go(work, [*work.state.held], Parts.single(DIMENSION_PART))
    return Ingested(
        work.name,
        1,
        done.rows,
        0,
        seen.bad,
        changed=done.changed,
        refused=taking.refused,
        warned=done.warned,
        row_change=done.row_change,
        rounded=seen.rounded,
        ignored_columns=taking.ignored,
    )


class Replaced(NamedTuple):
    changed: Parts
    rows: int
    warned: dict[int, str]
    row_change: RowChange = RowChange()


def replace_content(
    work: Job, files: tuple[File, ...], delivery: Delivery, reason: str, content: Content | None = None
) -> Replaced:
    """The staged files become the whole content, unless they hold what is there already. `content`: theirs, if it is
    known. Raises HeldBack."""
    dimension = work.table
    assert isinstance(dimension, Dimension)
    content = content or _content(work, files)
    before = work.contents([DIMENSION_PART])
    same = bool(before) and before[DIMENSION_PART].digest == content.digest
    names = {f.id: f.name for f in delivery.files}
    warned = {} if same else checked_dimension(work, files, content, names)
    entry = Entry(
        work.name,
        work.state.generation,
        work.fingerprint,
        None,
        None,
        {DIMENSION_PART: content},
        reason,
        delivery=delivery,
    )
    if same:
        work.settle(committed=False)
        tell(work, (), fine=[DIMENSION_PART])
        record(work, entry, (), ())
        return Replaced(Parts(), content.rows, warned)
    if dimension.change == "forward":
        _keep_versions(work, bool(before))
    elif before:
        entry = replace(entry, met=look_up(work.engine, work.name, work.handle, files))
        work.engine.passed("looked up")
    rows = RowChange(added=content.rows)
    if before:
        spark = work.engine.spark
        new, old = read.staged(spark, work.handle, files) if files else None, read.parts(spark, work.handle)
        rows = row_change(new, old)
        if dimension.valid_from is not None:
            entry = replace(entry, times=changed_times(dimension, new, old))
    record(work, entry, files, work.handle.files)
    return Replaced(Parts.single(DIMENSION_PART), content.rows, warned, rows)


def _keep_versions(work: Job, loaded: bool) -> None:
    """What the dimension held since it counts forward is still read by parts that were born then."""
    with work.engine.ledger.database.reading() as r:
        known = versions_of(r, work.name)
        since = known.number_for(0) if known.contents else 0
        old = [Superseded(c.seq, c.rows, c.at, version_then(r, work.name, c.seq)) for c in known.contents[since:]]
    versions.keep(work.engine, work.name, work.handle if loaded else None, old)


def _content(work: Job, files: tuple[File, ...]) -> Content:
    if not files:
        return EMPTY
    rows: DataFrame = read.staged(work.engine.spark, work.handle, files)
    found = digests(
        rows.withColumn(schemas.PART, F.lit(DIMENSION_PART).cast("long")), work.handle.schema, leave_out=r.NO_CONTENT
    )
    digest = found.get(DIMENSION_PART, EMPTY.digest)
    return Content(row_count(digest), digest)
