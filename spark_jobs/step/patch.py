"""A patch: rows that replace the rows of touched keys in some parts, while all other rows stay where they are.

Files that hold a replaced row are written again without it; files that hold none are not even opened. The digest of a
part follows from that of its old content: what goes is taken away, what comes is added.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from partwise import storage
from partwise.ledger.write.commit import Content
from partwise.parts import Parts
from partwise.storage import File, Handle, Rewrite
from partwise.storage.files import folder
from spark_jobs.step import read
from spark_jobs.step.by_keys import Touching, columns_of, part_rows, touched_files
from spark_jobs.step.by_merging import CannotMerge, sample
from spark_jobs.step.compute import Computing
from spark_jobs.step.digest import EMPTY, digests, digests_by_file, replaced, row_count
from spark_jobs.step.many import Many
from spark_jobs.step.stage import fit, stage

log = logging.getLogger("partwise.step")


@dataclass(frozen=True)
class Patch:
    """`files` are staged and hold the new rows; `touched` are live and hold `gone` rows that these replace."""

    touching: Touching
    files: tuple[File, ...]
    touched: tuple[File, ...]
    gone: int
    contents: Mapping[int, Content]
    content: DataFrame  # the parts as they will be

    def without(self, rows: DataFrame) -> DataFrame:
        """Rows of touched files that stay."""
        parts = self.touching.parts
        others = rows.where(~read.in_parts(parts))
        return others.unionByName(self.touching.keys.outside(part_rows(rows, parts)))


@dataclass(frozen=True)
class Repaired:
    """How stale parts were repaired. `rows_read`: in the files that were opened; `rows_copied`: written again unchanged."""

    by: str
    keys: int
    rows_read: int
    rows_copied: int


def make_patch(computing: Computing, many: Many, touching: Touching, name: str) -> Patch:
    """Compute and stage the rows of touched keys.

    Raises what Spark raises, QueryFailed, NotTogether, CannotMerge or BadSchema.
    """
    engine, handle, parts = computing.engine, computing.own, touching.parts
    assert handle is not None
    old = part_rows(read.files(engine.spark, handle, handle.files_of(parts)), parts)
    if (merging := touching.merging) is not None:
        given = merging.rows(computing, many, list(parts))
        touching = replace(touching, keys=merging.touched(computing, given, columns_of(handle)))
        fresh = merging.merged(touching.keys.inside(old), given)
    else:
        fresh = touching.keys.inside(_restricted(computing, many, touching))
    files = stage(fresh, handle, name)
    engine.passed("staged")
    leave_out = computing.view.sketches
    staged = read.staged(engine.spark, handle, files)
    if merging is not None:
        _guard(computing, many, touching, staged)
    new = digests(staged, handle.schema, leave_out=leave_out)
    found: list[tuple[int, str, str]] = []
    if touching.keys and handle.files_of(parts):
        found = digests_by_file(touching.keys.inside(old), handle.schema, leave_out=leave_out)
    gone: dict[int, str] = {}
    for j, _, digest in found:
        gone[j] = replaced(gone.get(j, EMPTY), EMPTY, digest)
    before = computing.pin.before
    whole = {j: replaced(before[j].digest, gone.get(j, EMPTY), new.get(j, EMPTY)) for j in parts}
    contents = {j: Content(row_count(digest), digest) for j, digest in whole.items()}
    content = touching.keys.outside(old).unionByName(staged)
    lost = sum(row_count(digest) for _, _, digest in found)
    touched = touched_files(handle, [path for _, path, _ in found])
    return Patch(touching, files, touched, lost, contents, content)


def _restricted(computing: Computing, many: Many, touching: Touching) -> DataFrame:
    """The query over what the touched keys need."""
    computing.filtered = touching.filtered
    try:
        return many.rows(list(touching.parts))
    finally:
        computing.filtered = None


def _guard(computing: Computing, many: Many, touching: Touching, merged: DataFrame) -> None:
    """Compute a few of the merged groups again. Only where every reference can be filtered by them: it must cost little."""
    chosen, handle, update = sample(touching.keys), computing.own, computing.view.update
    assert handle is not None
    assert update is not None
    if not chosen or len(touching.plan.filters) < len(update.found.tables):
        return
    again = fit(chosen.inside(_restricted(computing, many, replace(touching, keys=chosen))), handle.schema)
    if digests(again, handle.schema) != digests(chosen.inside(merged), handle.schema):
        log.warning("%s: merged groups differ from computed ones; the parts are computed again", computing.view.name)
        raise CannotMerge("merged groups differ from computed ones")


def survivors(
    spark: SparkSession, handle: Handle, plan: Rewrite, recomputed: Parts, patches: Sequence[Patch]
) -> tuple[tuple[File, ...], DataFrame | None]:
    """Files that go, for parts that were computed again and for patches; and their rows that must be written again."""
    touched = {file.path: file for patch in patches for file in patch.touched}
    removed = {file.path: file for file in plan.removed} | touched
    mixed = {file.path: file for file in plan.mixed} | touched
    if not mixed:
        return tuple(removed.values()), None
    rows = read.files(spark, handle, mixed.values())
    if recomputed:
        rows = rows.where(~read.in_parts(recomputed))
    for patch in patches:
        rows = patch.without(rows)
    return tuple(removed.values()), rows


def check_copies(
    computing: Computing,
    removed: Collection[File],
    copied: Collection[File],
    recomputed: Parts,
    patches: Collection[Patch],
) -> int:
    """How many rows were written again. Raises CommitRefused if it is not every row that must stay: nothing may get lost."""
    handle = computing.own
    assert handle is not None
    root = folder(handle.path)
    written = sum(found.footer().rows for file in copied if (found := root.parquet(file.path)) is not None)
    if not patches or any(file.rows is None for file in removed):
        return written
    before = computing.pin.before
    expected = sum(file.rows or 0 for file in removed)
    expected -= sum(before[j].rows for j in recomputed if j in before) + sum(patch.gone for patch in patches)
    if written != expected:
        raise storage.CommitRefused(
            f"{handle.path}: {written} rows were copied, expected {expected}: the part is not repaired"
        )
    return written


def repaired_by(
    computing: Computing, contents: Collection[int], patches: Iterable[Patch], copied: int
) -> Repaired | None:
    """How the step repaired parts that existed; None if it built new ones only."""
    found = list(patches)
    if found:
        keys, rows = sum(p.touching.keys.count for p in found), sum(p.touching.figures.read for p in found)
        by = "merge" if all(p.touching.merging is not None for p in found) else "keys"
        return Repaired(by, keys, rows, copied)
    stale = [j for j in contents if j in computing.pin.before]
    return Repaired("recompute", 0, 0, copied) if stale else None
