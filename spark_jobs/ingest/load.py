"""Loads the files of one source: find, look into, place, stage, commit. All new files in one pass."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from partwise.definitions import Dimension, Source
from partwise.ledger.records.checks import HeldFile, release_files
from partwise.ledger.records.files import Delivery, TakenFile, touched
from partwise.parts import Parts
from partwise.sources.bounds import Bounds, bounds, newest_known, too_old
from partwise.sources.closing import MICROS
from partwise.sources.files import ListedFile, newest, to_read
from partwise.sources.sums import changed as contents_after
from partwise.storage import File
from partwise.workspace import Workspace
from spark_jobs.checks.source import HeldBack, tell
from spark_jobs.ingest.difference import RowChange, row_change
from spark_jobs.ingest.files import rows as r
from spark_jobs.ingest.files.culprit import culprit
from spark_jobs.ingest.files.find import FoundFile, RefusedFile, listing, look, look_into, still_growing
from spark_jobs.ingest.files.layout import Layout, layout_of, undeclared
from spark_jobs.ingest.files.links import LinkedFiles, linked
from spark_jobs.ingest.files.lots import Lots
from spark_jobs.ingest.job import Job, shape_of
from spark_jobs.ingest.publish import TableChange, publish
from spark_jobs.ingest.quarantine import set_aside
from spark_jobs.ingest.remove import Removal, removal
from spark_jobs.ingest.result import Ingested
from spark_jobs.retry import SPARK_ERRORS
from spark_jobs.step import read
from spark_jobs.step.read import union
from spark_jobs.step.stage import ROWS_PER_FILE

if TYPE_CHECKING:
    from spark_jobs.ingest.files.by_arrow import ReadRows

log = logging.getLogger("partwise.ingest")

#: Bytes of text that a row takes, roughly: it decides only how many files are written.
_BYTES_PER_ROW = 40
#: From so many bytes on, reading is worth more than one task.
_WORTH_TWO_TASKS = 4 << 20
#: Up to so many bytes rows come as Arrow, and are written without Spark.
_SMALL = 8 << 20
#: Spark keeps the reader of every file until its task ends: thousands in one task fill the heap.
_FILES_PER_TASK = 500


class FileChanged(Exception):
    """A file was written to while it was being loaded; nothing was committed. Start over."""


class FilesHeld(Exception):
    """Files that are not taken in because of checks; they are recorded as held. Start over without them."""

    def __init__(self, files: dict[str, str]) -> None:
        super().__init__(", ".join(files))
        self.files = files


@dataclass
class Taking:
    """Files to take in now, each with the id that its rows will carry, and what is not taken."""

    files: list[tuple[int, FoundFile, Layout]] = field(default_factory=list)
    same: list[ListedFile] = field(default_factory=list)  # other time stamp, same content
    refused: list[tuple[str, str]] = field(default_factory=list)
    last_file: int = 0
    let_go: list[str] = field(default_factory=list)  # held files that are taken now, or gone
    ignored: list[str] = field(default_factory=list)  # columns that nobody declared
    copies: list[tuple[str, str]] = field(default_factory=list)  # files with the content of another one
    left: int = 0  # files for the next lots

    def cut(self, lots: Lots) -> None:
        """Keep what belongs into one lot."""
        count = lots.fitting(found for _, found, _ in self.files)
        self.left += len(self.files) - count
        self.files = self.files[:count]
        self.last_file = self.files[-1][0] if self.files else self.last_file


@dataclass(frozen=True)
class PlacedRows:
    """What was staged. `digests` are of the new rows alone, by part."""

    files: tuple[File, ...]
    digests: dict[int, str]
    rows: int
    bad: int
    watermark: int | None
    rounded: int = 0


def load_files(work: Job, settle: float, failed: Sequence[tuple[str, str]], lots: Lots) -> Ingested:
    """One pass over the files of a source: over all of them, or a lot. `failed` are files that Spark could not read
    in an earlier try."""
    source, began = work.table, time.monotonic()
    assert isinstance(source, Source)
    # What a table that is made again held before counts only once all of it is back.
    in_lots = lots if not work.state.lost else None
    taking = find_new(work.workspace, source, work, settle, dict(failed), in_lots)
    if taking.same:
        with work.engine.ledger.database.writing(work.engine.now()) as w:
            touched(w, work.name, [(f.name, f.size, f.mtime) for f in taking.same])
    if not taking.files:
        published = publish(work, TableChange())
        let_go(work, taking.let_go, work.state.existing)
        return Ingested(
            work.name,
            closed=published.closed,
            refused=taking.refused,
            notes=list(published.notes),
            failed=dict(published.failed),
            warned=dict(published.warned),
        )
    if in_lots is not None:
        _first_look(work, source, taking, lots)
        taking.cut(lots)
    state, ids = work.state, {number: found for number, found, _ in taking.files}
    work.engine.loading(work.name, lots.loaded, lots.loaded + len(ids) + taking.left)
    if (placed := place_quickly(work, taking, lots.limits)) is None:
        with linked(work.workspace, work.name, work.batch, taking.files, work.sees_disk) as links:
            limits = lots.limits or limits_of(work, source, links, ids)
            placed = place(work, links, ids, limits)
    work.engine.passed("staged")
    unchanged(ids.values())
    gone = [state.files[f.name] for f in ids.values() if f.name in state.files]
    old = removal(work, [f for f in gone if f.state == "loaded"])
    try:
        done = _commit(work, taking, placed, old, gone)
    except HeldBack as why:
        raise hold_files(work, taking, placed.files, gone, why) from why
    let_go(work, taking.let_go, work.state.existing)
    lots.took(len(ids), sum(f.look.size for f in ids.values()), time.monotonic() - began)
    return done


def _first_look(work: Job, source: Source, taking: Taking, lots: Lots) -> None:
    """Where lateness is bounded, the times of all files decide which are too old, whatever lot they are in."""
    found = {number: found for number, found, _ in taking.files}
    bounded = lots.limits is None and source.late.accept is not None
    if bounded and lots.fitting(found.values()) < len(found):
        with linked(work.workspace, work.name, work.batch, taking.files, work.sees_disk) as links:
            lots.limits = limits_of(work, source, links, found)


def limits_of(work: Job, source: Source, links: LinkedFiles, ids: dict[int, FoundFile]) -> Bounds:
    """Which event times are believed. Where lateness is bounded, the times of the load itself are looked at first."""
    late, watermark = source.late, work.state.intake.watermark
    limits = bounds(None, work.engine.now(), late.accept, late.future, work.state.floor)
    folders = {layout: folder for layout, folder in links.folders.items() if layout.has_rows}
    if late.accept is None or not folders:
        return limits
    if work.state.lost:  # rows that were in time then are in time again
        return replace(limits, oldest=work.state.lost.first * source.part * MICROS)
    shape = shape_of(source)

    def reader(layout: Layout, paths: Sequence[str]) -> DataFrame:
        return r.placed(r.read(work.engine.spark, layout, paths, shape), shape, limits)

    try:
        times = union([reader(layout, [folder]) for layout, folder in folders.items()]).where(f"{r.WHY} = 0")
        # Of an even number of rows the later one in the middle: percentiles round down.
        newest, median = times.selectExpr(f"max({r.WHEN})", f"-approx_percentile(-{r.WHEN}, 0.5)").collect()[0]
    except SPARK_ERRORS as why:
        unchanged(ids.values())
        raise culprit(reader, links, ids, why) from why
    return replace(limits, oldest=too_old(newest_known(watermark, newest, median, late.accept), late.accept))


def let_go(work: Job, names: Sequence[str], existing: Parts) -> None:
    """These files are held back no longer."""
    if names:
        with work.engine.ledger.database.writing(work.engine.now()) as w:
            release_files(w, work.name, names, existing)


def hold_files(
    work: Job, taking: Taking, staged: Sequence[File], gone: Sequence[TakenFile], why: HeldBack
) -> FilesHeld:
    """Files with rows in parts that would fail are not taken in at all: half a file is nothing that anyone delivered."""
    parts = Parts.single(*why.found)
    rows = read.staged(work.engine.spark, work.handle, list(staged))
    rows = rows.where(read.in_parts(parts)) if isinstance(work.table, Source) else rows
    ids = {row[0] for row in rows.select(r.FILE).distinct().collect()}
    # A correction that takes rows out of such a part is as much a cause as one that brings some.
    corrected = {f.name for f in gone if f.lo is not None and f.hi is not None and parts.within(f.lo, f.hi)}
    files = [
        HeldFile(f.name, f.look.size, f.look.mtime, f.hash, parts.first, parts.last)
        for number, f, _ in taking.files
        if number in ids or f.name in corrected or isinstance(work.table, Dimension)
    ]
    if not files:
        raise AssertionError(f"{work.name}: no file brings the rows of {parts}") from why
    tell(work, why.found.values(), files)
    return FilesHeld({f.name: str(why) for f in files})


def _commit(work: Job, taking: Taking, placed: PlacedRows, old: Removal, gone: list[TakenFile]) -> Ingested:
    parts = placed.digests
    lo, hi = (min(parts), max(parts)) if parts else (None, None)
    taken = tuple(
        TakenFile(number, f.name, f.look.size, f.look.mtime, f.hash, "loaded", lo, hi) for number, f, _ in taking.files
    )
    delivery = Delivery(
        files=taken,
        gone=tuple(f.id for f in gone),
        batch=work.batch if placed.bad else None,
        watermark=placed.watermark,
        last_file=taking.last_file,
    )
    after = contents_after(work.contents({*parts, *old.digests}), parts, old.digests)
    rows = RowChange(added=placed.rows)
    if old.rows is not None:
        new = read.staged(work.engine.spark, work.handle, placed.files) if placed.files else None
        rows = row_change(new, old.rows)
    arrived = {p: int(digest.partition(":")[0]) for p, digest in parts.items()}
    change = TableChange(
        adds=[*placed.files, *old.kept],
        removes=old.files,
        touched=after,
        arrived=arrived,
        delivery=delivery,
        reason=_reason(taking, {f.name for f in gone}),
    )
    done = publish(work, change, not taking.left)
    return Ingested(
        source=work.name,
        files=len(taken),
        rows=placed.rows,
        late_rows=done.late_rows,
        quarantined=placed.bad,
        closed=done.closed,
        changed=done.changed,
        refused=taking.refused,
        notes=list(done.notes),
        failed=dict(done.failed),
        warned=dict(done.warned),
        row_change=rows,
        rounded=placed.rounded,
        ignored_columns=taking.ignored,
        same_content=taking.copies,
        left=taking.left,
    )


def _reason(taking: Taking, corrected: set[str]) -> str:
    names = [f.name for _, f, _ in taking.files]
    some = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more files"
    return f"corrected by {some}" if corrected >= set(names) else f"rows of {some}"


def find_new(
    workspace: Workspace,
    table: Source | Dimension,
    work: Job,
    settle: float,
    failed: dict[str, str],
    lots: Lots | None = None,
) -> Taking:
    """Which files to take: new ones, and those with other content than before. With `lots`, those of one lot are looked
    into where that is enough; corrections come before new files, so that what they take out and bring is one change."""
    marker = table.close.marker if isinstance(table, Source) else None
    paths = listing(workspace, table.files, marker)
    looks = look(paths)
    known = work.state.files
    if isinstance(table, Dimension):
        # Files taken in before the last one are no content any more: delivered again, they are news.
        looks, known = newest(looks, known)
    news = {f.name: f for f in to_read(looks.values(), known)}
    # A held file that is no news is gone, or was taken in by a run that crashed before it could say so.
    gone = [name for name in work.state.held if name not in news]
    for name in still_growing(paths, news, settle):
        del news[name]  # still being written: the next time
    for name, seen in [*news.items()]:
        if work.state.is_held(name, seen.size, seen.mtime):
            del news[name]
    taking = Taking(refused=list(failed.items()), last_file=work.state.intake.last_file, let_go=gone)
    time_column = table.time.column if isinstance(table, Source) else None
    by_content: dict[str, str] = {}
    for before in sorted(known.values(), key=lambda f: f.id):
        if before.state == "loaded":
            by_content.setdefault(before.hash, before.name)
    bounded = isinstance(table, Source) and table.late.accept is not None
    one_lot = lots is not None and (lots.limits is not None or not bounded)
    order = sorted(news, key=lambda name: name not in known) if lots is not None else list(news)
    size = 0
    for at, name in enumerate(order):
        if name in failed:
            continue
        if one_lot and lots is not None and not lots.room(len(taking.files), size):
            taking.left = sum(rest not in failed for rest in order[at:])
            break
        seen = news[name]
        try:
            found = look_into(paths[name], seen)
            last = known.get(name)
            if last is not None and last.hash == found.hash:
                taking.same.append(seen)
                taking.let_go += [name] if name in work.state.held else []  # its last content is back
                continue
            layout = layout_of(found, table.columns, time_column)
        except FileNotFoundError:
            continue
        except (RefusedFile, OSError) as why:
            taking.refused.append((name, str(why)))
            continue
        if name in work.state.held:
            taking.let_go.append(name)
        taking.last_file += 1
        taking.files.append((taking.last_file, found, layout))
        size += seen.size
        taking.ignored += [column for column in undeclared(found, table.columns) if column not in taking.ignored]
        if isinstance(table, Source) and by_content.setdefault(found.hash, name) != name and layout.has_rows:
            taking.copies.append((name, by_content[found.hash]))
    return taking


def place_quickly(work: Job, taking: Taking, limits: Bounds | None) -> PlacedRows | None:
    """The same without Spark, for small files that leave nothing to decide; None: Spark reads them."""
    source, state = work.table, work.state
    assert isinstance(source, Source)
    if state.lost:
        return None
    late = source.late
    limits = limits or bounds(None, work.engine.now(), late.accept, late.future, state.floor)
    if (found := read_quickly(work, taking.files, limits)) is None:
        return None
    files = work.stage_rows(found.rows, found.digests)
    work.engine.passed("digested")
    return PlacedRows(files, found.digests, found.rows.num_rows, 0, found.newest)


def read_quickly(
    work: Job, files: Sequence[tuple[int, FoundFile, Layout]], limits: Bounds, part: int | None = None
) -> ReadRows | None:
    """The rows of files that Arrow reads as Spark does, with their digests."""
    if not work.engine.small_rows or _size(found for _, found, _ in files) > _SMALL:
        return None
    from spark_jobs.ingest.files import by_arrow

    try:
        return by_arrow.read(files, shape_of(work.table), work.handle.schema, limits, work.state.intake.watermark, part)
    except by_arrow.SparkDecides as why:
        log.debug("%s: Spark reads the files: %s", work.name, why)
        return None


def place(work: Job, links: LinkedFiles, ids: dict[int, FoundFile], limits: Bounds) -> PlacedRows:
    """Stage what can be placed, set the rest aside. Raises FileFailed."""
    files, seen = stage_all(work, links, ids, limits)
    written = work.digests(files) if seen.digests is None else seen.digests
    count = sum(int(d.partition(":")[0]) for d in written.values())
    if count != seen.rows - seen.bad:
        raise AssertionError(f"{work.name}: {seen.rows} rows read, {seen.bad} quarantined, but {count} written")
    work.engine.passed("digested")
    return PlacedRows(files, written, count, seen.bad, seen.newest, seen.rounded)


@dataclass(frozen=True)
class Seen:
    """What was counted while rows were staged."""

    rows: int = 0
    bad: int = 0
    newest: int | None = None
    rounded: int = 0
    digests: dict[int, str] | None = None  # by part, where they came with the rows


def stage_all(
    work: Job, links: LinkedFiles, ids: dict[int, FoundFile], limits: Bounds
) -> tuple[tuple[File, ...], Seen]:
    """One job for all files: rows that can be placed are staged, the others counted and then quarantined."""
    spark, shape = work.engine.spark, shape_of(work.table)
    folders = {layout: folder for layout, folder in links.folders.items() if layout.has_rows}
    if not folders:
        return (), Seen()

    def reader(layout: Layout, paths: Sequence[str]) -> DataFrame:
        return r.placed(r.read(spark, layout, paths, shape), shape, limits)

    try:
        rows = union([reader(layout, [folder]) for layout, folder in folders.items()])
        observation, bad = Observation(), F.col(r.WHY) != 0  # only now: columns cannot be made before Spark has started
        rows = rows.observe(
            observation,
            F.count(F.lit(1)).alias("n"),
            F.coalesce(F.sum(bad.cast("long")), F.lit(0)).alias("bad"),
            F.collect_set(F.when(bad, F.col(r.FILE))).alias("bad_files"),
            F.max(F.when(~bad, F.col(r.WHEN))).alias("newest"),
            F.coalesce(F.sum(F.when(~bad, F.col(r.ROUNDED))), F.lit(0)).alias("rounded"),
        )
        good, digests = rows.where(~bad).drop(r.WHY, r.WHEN, r.ROUNDED), None
        if isinstance(work.table, Source) and work.engine.small_rows and _size(ids.values()) <= _SMALL:
            files, digests = work.collect(good)
        else:
            files = work.stage(good, expected=_expected(ids.values()))
    except SPARK_ERRORS as why:
        unchanged(ids.values())  # a file that is gone or being written again: the others go on
        raise culprit(reader, links, ids, why) from why
    found = observation.get
    if found["bad"]:
        kept = set_aside(work, links, ids, sorted(found["bad_files"]), limits)
        if kept != found["bad"]:
            raise FileChanged(f"{work.name}: {found['bad']} rows cannot be placed, {kept} were found again")
        work.engine.passed("quarantined")
    return files, Seen(found["n"], found["bad"], found["newest"], found["rounded"], digests)


def _size(files: Iterable[FoundFile]) -> int:
    """Bytes of text, roughly: packed files become more."""
    return sum(f.look.size * (8 if f.name.endswith((".gz", ".parquet")) else 1) for f in files)


def _expected(files: Iterable[FoundFile]) -> int:
    found = list(files)
    size = _size(found)
    tasks = max(-(-len(found) // _FILES_PER_TASK), 2 if size > _WORTH_TWO_TASKS else 1)
    return max(size // _BYTES_PER_ROW, tasks * ROWS_PER_FILE)


def unchanged(files: object) -> None:
    """Spark has read what was hashed, not something newer."""
    found: list[FoundFile] = list(files)  # type: ignore[call-overload]
    now = look({f.name: f.url or f.path for f in found})
    for f in found:
        if now.get(f.name) != f.look:
            raise FileChanged(f.name)
