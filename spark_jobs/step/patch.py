"""A patch: rows that replace the rows of touched keys in some parts, while all other rows stay where they are.

Files that hold a replaced row are written again without it; files that hold none are not even opened. The digest of a
part follows from that of its old content: what goes is taken away, what comes is added.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from functools import cache

from pyspark.sql import DataFrame, SparkSession

from partwise import storage
from partwise.choose.repair import Figures, RepairDecision
from partwise.ledger.records.repairs import MeasuredRepair, RecordedRepair
from partwise.ledger.write.commit import Content
from partwise.parts import Parts
from partwise.storage import File, Handle
from partwise.storage.files import folder
from spark_jobs.retry import SPARK_ERRORS
from spark_jobs.step import keys, read, small
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
    content: Callable[[], DataFrame]  # the parts as they will be
    local: bool = False  # whether this process can read the touched files by itself

    def without(self, rows: DataFrame) -> DataFrame:
        """Rows of touched files that stay."""
        parts = self.touching.parts
        others = rows.where(~read.in_parts(parts))
        return others.unionByName(self.touching.keys.outside(part_rows(rows, parts)))


@dataclass(frozen=True)
class Repaired:
    """How stale parts were repaired. `rows_read`: in the files that were opened; `rows_copied`: written again unchanged.

    `foreseen`: seconds, and `why` it was chosen; None where there was no choice, as for small parts.
    """

    by: str
    keys: int
    rows_read: int
    rows_copied: int
    foreseen: float | None = None
    why: str | None = None

    def text(self) -> str:
        """Only what is out of the ordinary: small parts are recomputed. Where there was a choice, what was foreseen of it."""
        foreseen = "" if self.foreseen is None else f", {self.foreseen:.1f} s foreseen"
        if self.by == "recompute":
            return f"recomputed{foreseen}" if foreseen else ""
        return f"repaired by {self.by} ({self.keys:,} {'key' if self.keys == 1 else 'keys'}{foreseen})"


def make_patch(computing: Computing, many: Many, touching: Touching, name: str) -> Patch:
    """Compute and stage the rows of touched keys.

    Raises what Spark raises, QueryFailed, NotTogether, CannotMerge or BadSchema.
    """
    engine, handle, parts = computing.engine, computing.own, touching.parts
    assert handle is not None
    leave_out = computing.view.sketches

    @cache
    def old() -> DataFrame:  # Spark takes its time to look through a query, and mostly nobody asks
        return part_rows(read.files(engine.spark, handle, handle.files_of(parts)), parts)

    if (merging := touching.merging) is not None:
        given = merging.rows(computing, many, list(parts))
        if touching.figures.changed <= keys.MOST_ROWS:
            given = keys.few_rows(given)
        touching = replace(touching, keys=merging.touched(computing, given, columns_of(handle)))
    gone = keys.gone(engine.spark, handle, parts, touching.keys, leave_out)
    if merging is not None:
        inside = touching.keys.inside(old()) if gone is None else read.from_arrow(engine.spark, [gone.rows])
        fresh = merging.merged(inside, given)
    else:
        fresh = touching.keys.inside(_restricted(computing, many, touching))
    files, known = _staged(computing, touching, fresh, name)
    engine.passed("staged")

    @cache
    def staged() -> DataFrame:
        return read.staged(engine.spark, handle, files)

    if merging is not None:
        _guard(computing, many, touching, staged)
    new = digests(staged(), handle.schema, leave_out=leave_out) if known is None else known
    touched, lost, count = (
        _gone(computing, touching, old()) if gone is None else (gone.touched, gone.digests, gone.count)
    )
    before = computing.pin.before
    whole = {j: replaced(before[j].digest, lost.get(j, EMPTY), new.get(j, EMPTY)) for j in parts}
    contents = {j: Content(row_count(digest), digest) for j, digest in whole.items()}
    return Patch(
        touching,
        files,
        touched,
        count,
        contents,
        lambda: touching.keys.outside(old()).unionByName(staged()),
        gone is not None,
    )


def _gone(computing: Computing, touching: Touching, old: DataFrame) -> tuple[tuple[File, ...], dict[int, str], int]:
    """Files with rows of touched keys, their digests by part, and how many they are, found by Spark."""
    handle = computing.own
    assert handle is not None
    found: list[tuple[int, str, str]] = []
    if touching.keys and handle.files_of(touching.parts):
        found = digests_by_file(touching.keys.inside(old), handle.schema, leave_out=computing.view.sketches)
    gone: dict[int, str] = {}
    for j, _, digest in found:
        gone[j] = replaced(gone.get(j, EMPTY), EMPTY, digest)
    count = sum(row_count(digest) for _, _, digest in found)
    return touched_files(handle, [path for _, path, _ in found]), gone, count


def _staged(
    computing: Computing, touching: Touching, fresh: DataFrame, name: str
) -> tuple[tuple[File, ...], dict[int, str] | None]:
    """Files with the new rows, and the digests of parts if they came with them: few rows take one job instead of three."""
    engine, handle = computing.engine, computing.own
    assert handle is not None
    if engine.small_rows and touching.is_small(engine.small_rows):
        try:
            collected = small.collect(fresh, handle.schema, computing.view.sketches)
            return small.stage(collected, handle, name), collected.digests
        except SPARK_ERRORS as why:
            if not small.too_large(why):
                raise
    return stage(fresh, handle, name), None


def _restricted(computing: Computing, many: Many, touching: Touching) -> DataFrame:
    """The query over what the touched keys need."""
    with computing.restricted(touching):
        return many.rows(list(touching.parts))


def _guard(computing: Computing, many: Many, touching: Touching, merged: Callable[[], DataFrame]) -> None:
    """Compute a few of the merged groups again. Only where every reference can be filtered by them: it must cost little."""
    chosen, handle, update = sample(touching.keys), computing.own, computing.view.update
    assert handle is not None
    assert update is not None
    if not chosen or len(touching.plan.filters) < len(update.found.tables):
        return
    again = fit(chosen.inside(_restricted(computing, many, replace(touching, keys=chosen))), handle.schema)
    if digests(again, handle.schema) != digests(chosen.inside(merged()), handle.schema):
        log.warning("%s: merged groups differ from computed ones; the parts are computed again", computing.view.name)
        raise CannotMerge("merged groups differ from computed ones")


def copy_survivors(
    spark: SparkSession, handle: Handle, recomputed: Parts, patches: Sequence[Patch], name: str
) -> tuple[tuple[File, ...], tuple[File, ...] | None]:
    """Files that go, for parts that were computed again and for patches; and staged copies of their rows that stay."""
    plan = storage.rewrite(handle, recomputed)
    touched = {file.path: file for patch in patches for file in patch.touched}
    removed = {file.path: file for file in plan.removed} | touched
    mixed = {file.path: file for file in plan.mixed} | touched
    if not mixed:
        return tuple(removed.values()), None
    if not plan.removed and all(patch.local for patch in patches):
        left_out = [(patch.touching.parts, patch.touching.keys) for patch in patches]
        return tuple(removed.values()), keys.copy_without(handle, mixed.values(), left_out, name)
    rows = read.files(spark, handle, mixed.values())
    if recomputed:
        rows = rows.where(~read.in_parts(recomputed))
    for patch in patches:
        rows = patch.without(rows)
    return tuple(removed.values()), stage(rows, handle, name)


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


@dataclass
class Choices:
    """What was chosen for the parts of a step, lot by lot. It is learned from where that is one repair for all of them."""

    lots: list[tuple[RepairDecision, Figures] | None] = field(default_factory=list)

    def add(self, chosen: tuple[RepairDecision, Figures] | None, patched: bool) -> None:
        """`patched`: whether rows of touched keys were computed, or the parts."""
        kept = chosen is not None and (chosen[0].by != "recompute") == patched
        self.lots.append(chosen if kept else None)

    @property
    def one(self) -> tuple[RepairDecision, Figures] | None:
        """The repair of all parts; None if there were several, none, or another one was carried out than was chosen."""
        found = [lot for lot in self.lots if lot is not None]
        if not found or len(found) < len(self.lots) or len({decision.by for decision, _ in found}) > 1:
            return None
        decision = found[0][0]
        costs, foreseen = (dict.fromkeys(decision.costs, 0.0) for _ in range(2))
        for each, _ in found:
            for by in decision.costs:
                costs[by] += each.costs.get(by, 0.0)
                foreseen[by] += each.foreseen.get(by, 0.0)
        totals = [sum(getattr(f, field.name) for _, f in found) for field in fields_of(Figures)]
        return RepairDecision(decision.by, decision.why, costs, foreseen), Figures(*totals)


def repaired_by(
    computing: Computing, contents: Collection[int], patches: Iterable[Patch], copied: int, choices: Choices
) -> Repaired | None:
    """How the step repaired parts that existed; None if it built new ones only."""
    found, one = list(patches), choices.one
    foreseen, why = (None, None) if one is None else (round(one[0].foreseen[one[0].by], 3), one[0].why)
    if found:
        keys, rows = sum(p.touching.keys.count for p in found), sum(p.touching.figures.read for p in found)
        by = "merge" if all(p.touching.merging is not None for p in found) else "keys"
        return Repaired(by, keys, rows, copied, foreseen, why)
    stale = [j for j in contents if j in computing.pin.before]
    return Repaired("recompute", 0, 0, copied, foreseen, why) if stale else None


def done(choices: Choices, repaired: Repaired | None, parts: int, seconds: float) -> RecordedRepair | None:
    """What the ledger keeps of it: repairs that were chosen, and done as chosen."""
    if choices.one is None or repaired is None:
        return None
    decision, figures = choices.one
    outcome = MeasuredRepair(decision.by, decision.costs, decision.foreseen[decision.by], seconds)
    return RecordedRepair(outcome, parts, figures.changed, repaired.keys, figures.read, repaired.rows_copied)
