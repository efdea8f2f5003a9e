"""Takes the rows of files out again: a correction brings others, a retraction none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.ledger.records.files import TakenFile
from partwise.parts import Parts
from partwise.storage import File
from spark_jobs.ingest.files.rows import FILE, NO_CONTENT
from spark_jobs.ingest.job import Job
from spark_jobs.step import read
from spark_jobs.step.digest import digests


@dataclass(frozen=True)
class Removal:
    """Data files that go, what is staged again of them, and the digests of the rows that are gone, by part."""

    files: tuple[File, ...] = ()
    kept: tuple[File, ...] = ()
    digests: dict[int, str] = field(default_factory=dict)
    rows: DataFrame | None = None  # those that go


def removal(work: Job, files: Sequence[TakenFile]) -> Removal:
    spans = [(f.lo, f.hi) for f in files if f.lo is not None and f.hi is not None]
    maybe = work.handle.files_of(Parts.of(*spans))
    if not spans or not maybe:
        return Removal()
    spark, handle, ids = work.engine.spark, work.handle, [f.id for f in files]
    rows_there = read.files(spark, handle, maybe)
    theirs = F.col(FILE).isin(ids)  # only now: columns cannot be made before Spark has started
    # Row groups without these ids are skipped by their statistics: this reads next to nothing.
    hit = rows_there.where(theirs).select("_metadata.file_path").distinct().collect()
    paths = [row[0] for row in hit]
    gone = tuple(f for f in maybe if any(path.endswith("/" + f.path) for path in paths))
    if len(gone) != len(paths):
        raise AssertionError(f"{handle.path}: {len(paths)} files hold these rows, {len(gone)} were recognised")
    if not gone:
        return Removal()
    removed = digests(read.files(spark, handle, gone).where(theirs), handle.schema, leave_out=NO_CONTENT)
    rows = sum(f.rows or 0 for f in gone)
    kept = work.stage(read.files(spark, handle, gone).where(~theirs), expected=rows)
    work.engine.passed("kept")
    return Removal(gone, kept, removed, read.files(spark, handle, gone).where(theirs))
