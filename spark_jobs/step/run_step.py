"""One step of a view, from the lease to the ledger.

    lease -> adopt -> pin -> compute and stage -> digest -> check -> commit the data -> commit the ledger

Nothing is visible before the one Delta commit; a crash at any point leaves the table as it was, or
an orphan that the next step adopts.
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from partwise import storage
from partwise.checks.results import Checked
from partwise.compile.program import Runnable
from partwise.ledger.read.pin import Version
from partwise.ledger.write.commit import Content, Recorded
from partwise.ledger.write.leases import Lease
from partwise.parts import Parts
from partwise.plan.walk import Walk
from partwise.storage import File
from partwise.storage import schema as schemas
from spark_jobs.checks.view import checked_view, tell
from spark_jobs.engine import Engine
from spark_jobs.progress import StepProgress
from spark_jobs.retry import SPARK_ERRORS, is_certain, is_infrastructure, message_of
from spark_jobs.rolling import Turned, turn_wheel, whole
from spark_jobs.step import read, small
from spark_jobs.step.by_keys import REPAIR, Repairs, Touching, layout_of
from spark_jobs.step.by_merging import CannotMerge
from spark_jobs.step.chain import follow, patch_along
from spark_jobs.step.compute import PART_COLUMNS, Computing, QueryFailed, explained
from spark_jobs.step.digest import EMPTY, digests, row_count
from spark_jobs.step.many import Many, NotTogether
from spark_jobs.step.patch import Choices, Patch, Repaired, check_copies, copy_survivors, done, make_patch, repaired_by
from spark_jobs.step.settle import settle
from spark_jobs.step.stage import stage, with_part

log = logging.getLogger("partwise.step")


@dataclass(frozen=True)
class Report:
    """What a step did. `length` is that of the table's parts: by now the table itself may be gone."""

    table: str
    length: int
    parts: Parts
    changed: Parts
    rows: int
    reason: str
    seconds: float
    failed: dict[int, str] = field(default_factory=dict)
    warned: dict[int, str] = field(default_factory=dict)
    repair: Repaired | None = None
    kept: Parts = field(default_factory=Parts)  # computed from kept outputs instead of the inputs


@dataclass
class Work:
    """What a step has staged so far."""

    contents: dict[int, Content] = field(default_factory=dict)
    files: dict[str, tuple[File, ...]] = field(default_factory=dict)  # by staging try
    holds: dict[str, Parts] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    checked: dict[int, Checked] = field(default_factory=dict)
    certain: set[int] = field(default_factory=set)  # parts that fail in the same way however often they are tried
    patches: dict[str, Patch] = field(default_factory=dict)  # tries that hold only rows that replace others
    copied: int = 0
    choices: Choices = field(default_factory=Choices)
    turned: Turned | None = None  # of a rolling table of which only some files are written


def run_step(engine: Engine, table: str, asked: Parts | None = None) -> Report | None:
    """Compute what of `asked` (everything, by default) is due and ready. None: there was nothing to do.

    Raises Busy if another job has the table, Conflict if another one committed first, DefinitionChanged if the ledger
    has other definitions than the engine.
    """
    began = time.monotonic()
    settle(engine, table)
    graph = engine.definitions.graph()
    if table not in graph.tables:
        return None  # a helper that its view needs no longer
    fingerprint = graph[table].fingerprint
    with engine.leased(table) as held:
        while pin := engine.ledger.pin(
            held, engine.now(), asked, fingerprint, engine.most_parts, _beside(engine, table)
        ):
            engine.passed("pinned")
            computing = Computing(engine, pin, engine.open(table, pin.own))
            try:
                if has_its_table(computing, held):
                    return carry_out(computing, held, began, Many(computing))
            except (QueryFailed, storage.BadSchema) as why:
                if is_infrastructure(why):
                    raise
                return _all_failed(computing, held, str(why), began, is_certain(why))
            finally:
                computing.close()
    return None


def _beside(engine: Engine, table: str) -> tuple[str, ...]:
    """Helpers that a step may read if they are up to date."""
    view = engine.definition(table)
    return view.state_helpers if isinstance(view, Runnable) else ()


def has_its_table(computing: Computing, held: Lease) -> bool:
    """Make the view's own table if this is its first step. False: it began again for other columns, pin again.

    INITIALIZE gives the columns and their types, if there is one; UPDATE must fit them.
    """
    engine, pin, own = computing.engine, computing.pin, computing.own
    wanted = computing.first_schema()
    if own is None:
        path, name = engine.path(pin.table.name, pin.own.generation), pin.table.name
        computing.own = storage.create(path, wanted, name=name, keys=layout_of(computing))
        engine.passed("made")
        engine.ledger.adopt(held, [(0, None)], engine.now())
        computing.pin = replace(pin, own=Version(pin.own.generation, 0))
        engine.passed("created")
    elif wanted != schemas.normal(own.schema):
        engine.ledger.rebuild(held, engine.now())
        return False
    return True


def carry_out(computing: Computing, held: Lease, began: float, many: Many, failures: bool = True) -> Report | None:
    """From the pinned step to the ledger. What `many` was given is not computed again.

    Without `failures` nothing is kept of a step in which something fails: then there is no report either.
    """
    pin, work = computing.pin, Work()
    with StepProgress(computing.engine, held, pin, computing.engine.now()).noted() as progress:
        _compute(computing, work, progress, many)
    if work.failed and not failures:
        assert computing.own is not None
        for name in work.files:
            storage.discard(computing.own.path, name)
        return None
    _tell_failures(computing, held, work)
    changed = Parts.single(*(j for j, content in work.contents.items() if not pin.same(j, content)))
    if work.contents:
        # The ledger says what became a revision: a table that is made again is written whole, and mostly as it was.
        changed = _publish(computing, held, work, changed, began).changed
        _compare_estimates(computing, Parts.single(*work.contents))
    return _report(computing, work, changed, began)


def _compare_estimates(computing: Computing, parts: Parts) -> None:
    """What fresh answers said of these parts before. Views without a sample cost nothing."""
    engine = computing.engine
    view = engine.definitions.views.get(computing.pin.table.name)
    if view is not None and view.sampled is not None:
        from partwise.fresh.probe import compare_estimates

        compare_estimates(engine.ledger, engine.warehouse, view, view.sampled, parts, computing.pin.seq, engine.now())


def _all_failed(computing: Computing, held: Lease, message: str, began: float, certain: bool) -> Report:
    work = Work(failed=dict.fromkeys(computing.pin.due, message))
    work.certain = set(work.failed) if certain else set()
    _tell_failures(computing, held, work)
    return _report(computing, work, Parts(), began)


def _tell_failures(computing: Computing, held: Lease, work: Work) -> None:
    for j, message in work.failed.items():
        kind = "check" if j in work.checked else "query"
        now, certain = computing.engine.now(), j in work.certain
        computing.engine.ledger.fail(held, computing.pin, j, kind, message, now, certain)
    tell(computing, held, work.checked.values())


def _report(computing: Computing, work: Work, changed: Parts, began: float) -> Report:
    rows, parts = sum(content.rows for content in work.contents.values()), Parts.single(*work.contents)
    table, reason = computing.pin.table, computing.pin.reason
    warned = {j: found.message() for j, found in work.checked.items() if found.outcome == "warned"}
    took = time.monotonic() - began
    repair, kept = _repaired(computing, work), parts & Parts.single(*computing.from_kept)
    return Report(table.name, table.length, parts, changed, rows, reason, took, work.failed, warned, repair, kept)


def _repaired(computing: Computing, work: Work) -> Repaired | None:
    return repaired_by(computing, work.contents, work.patches.values(), work.copied, work.choices)


def _compute(computing: Computing, work: Work, progress: StepProgress, many: Many) -> None:
    """Compute part after part, or many in one job where that can be done, until it is time to publish.

    What is not computed by then stays due: the next step goes on with it.
    """
    repairs = Repairs(computing)
    if many.alone and many.given is None and _patched_along(computing, work, repairs, progress):
        return
    repairable = repairs.repairable if many.given is None else Parts()
    for walk in _walks(computing, repairable):
        # What keys touch is little, however many parts they are in: all parts are looked at together, once.
        _follow(computing, work, progress, many, repairs, walk, together=bool(walk.due & repairable))


def _walks(computing: Computing, repairable: Parts) -> list[Walk]:
    """Parts to repair for themselves: those that are new must be computed whole, and would take the others along."""
    pin = computing.pin
    others = pin.due - repairable
    if not repairable or not others:
        return [pin.walk()]
    return [Walk(pin.table, parts, Parts()) for parts in (repairable, others)]


def _follow(
    computing: Computing,
    work: Work,
    progress: StepProgress,
    many: Many,
    repairs: Repairs,
    walk: Walk,
    together: bool,
) -> None:
    while not many.pace.over and (parts := many.take(walk, together)):
        began = time.monotonic()
        count, until = 0, began + many.pace.left
        if many.chains(parts):
            count, parts = _chain(computing, many, work, walk, parts[0], progress)
        if parts:
            touching = None if many.given is not None else repairs.touching(parts)
            patched = touching is not None and _patched(computing, many, work, touching)
            repairs.failed = touching is not None and not patched
            if together and not patched and len(parts) > 1:
                together = False
                walk.back(len(parts))
                continue
            work.choices.add(None if many.given is not None else repairs.chosen, patched)
            if not patched:
                _try(computing, many, work, walk, parts, until)
            tried = sum(j in work.contents or j in work.failed for j in parts)
            count += tried
            progress.came(tried)
        for j in parts:
            if j in work.checked and not work.checked[j].published:
                walk.failed(j)
            elif j in work.contents and not computing.pin.same(j, work.contents[j]):
                walk.changed(j)
        many.pace.took(count, time.monotonic() - began)


def _patched_along(computing: Computing, work: Work, repairs: Repairs, progress: StepProgress) -> bool:
    """Repair a view that reads its own parts before, by keys from part to part. False: its parts are computed whole."""
    handle, touching = computing.own, repairs.along()
    assert handle is not None
    if touching is None:
        return False
    name = _new_name()
    try:
        found = patch_along(computing, touching, name, progress)
    except (*SPARK_ERRORS, QueryFailed, storage.BadSchema) as why:
        storage.discard(handle.path, name)
        if is_infrastructure(why):
            raise
        log.info("%s is computed again: %s", computing.view.name, message_of(why).partition("\n")[0])
        computing.give_up(REPAIR, message_of(why).partition("\n")[0])
        return False
    if found is None:
        return False
    patch, work.contents = found
    if patch is not None:
        work.patches[name] = patch
        work.files[name], work.holds[name] = patch.files, patch.touching.parts
    # Nobody could foresee how far it goes: what it took says nothing about the next one.
    return True


def _chain(
    computing: Computing, many: Many, work: Work, walk: Walk, first: int, progress: StepProgress
) -> tuple[int, list[int]]:
    """Compute this part and those that follow it in memory. Returns how many, and the one that is left to be tried."""
    engine, handle = computing.engine, computing.own
    assert handle is not None
    until, most = time.monotonic() + many.pace.seconds, engine.most_parts
    chain = follow(computing, walk, first, until, most, progress)
    if chain.contents:
        name = _new_name()
        files = small.stage(chain.collected, handle, name)
        engine.passed("staged")
        work.files[name], work.holds[name] = files, Parts.single(*chain.contents)
        work.contents |= chain.contents
        computing.staged(chain.contents, files)
        many.saw(chain.contents.values())
    return len(chain.contents), [] if chain.stopped_at is None else [chain.stopped_at]


def _try(computing: Computing, many: Many, work: Work, walk: Walk, parts: list[int], until: float) -> None:
    """Stage these parts; what fails together is tried again in smaller lots, so that only the bad parts fail.

    Lots for which there is no time any more go back to the walk: what is done by then is published first.
    """
    try:
        _stage(computing, many, work, parts)
        return
    except NotTogether:
        pass
    except (*SPARK_ERRORS, QueryFailed, storage.BadSchema) as why:
        if is_infrastructure(why):
            raise
        if len(parts) == 1:
            if computing.many_rows(why) or computing.without_kept():
                _try(computing, many, work, walk, parts, until)
            else:
                _failed(computing, work, walk, parts[0], why)
            return
    if many.alone:
        # From here on one by one, as the walk hands them out: some may not be wanted, or need one that fails.
        many.single_pass = None
        walk.back(len(parts) - 1)
        _try(computing, many, work, walk, parts[:1], until)
        return
    for lot in many.smaller(parts):
        if lot[0] != parts[0] and (time.monotonic() > until or computing.engine.stopping()):
            walk.again_from(lot[0])
            return
        _try(computing, many, work, walk, lot, until)


def _failed(computing: Computing, work: Work, walk: Walk, j: int, why: Exception) -> None:
    known = isinstance(why, QueryFailed | storage.BadSchema)
    if is_certain(why):
        work.certain.add(j)
    work.failed[j] = str(why) if known else explained(why, computing.statement(j).placed)
    walk.failed(j)


def _stage(computing: Computing, many: Many, work: Work, parts: list[int]) -> None:
    engine, handle = computing.engine, computing.own
    assert handle is not None
    name = _new_name()
    try:
        files, found = _turned(computing, work, parts, name) or _written(computing, many, parts, name)
        engine.passed("digested")
        contents = {j: Content(row_count(digest := found.get(j, EMPTY)), digest) for j in parts}
        checked = _checked(computing, files if work.turned is None else work.turned.live, contents, work)
        engine.passed("checked")
        bad = Parts.single(*(j for j, result in checked.items() if not result.published))
        if bad and bad.count < len(parts):
            name, files = _without(computing, name, files, bad)
    except SPARK_ERRORS:
        storage.discard(handle.path, name)
        raise
    # Only now: files of a try that failed must never be committed beside those of the next try.
    work.checked |= checked
    work.failed |= {j: checked[j].message() for j in bad}
    if bad.count == len(parts):
        storage.discard(handle.path, name)
        return
    work.files[name], work.holds[name] = files, Parts.single(*parts) - bad
    work.contents |= {j: contents[j] for j in work.holds[name]}
    computing.staged(work.holds[name], files)
    many.saw(contents.values())


def _written(computing: Computing, many: Many, parts: list[int], name: str) -> tuple[tuple[File, ...], dict[int, str]]:
    """Compute these parts and stage them under this name. Returns the files, and the digests of parts with rows."""
    engine, handle = computing.engine, computing.own
    assert handle is not None
    hidden = computing.view.sketches
    if many.is_small(parts):
        try:
            collected = _collected(computing, many, parts, handle.schema)
        except SPARK_ERRORS as why:
            if not small.too_large(why):
                raise
        else:
            files = small.stage(collected, handle, name)
            engine.passed("staged")
            return files, collected.digests
    rows = many.rows(parts)
    if computing.rolling:
        rows = rows.drop(*PART_COLUMNS)
    files = stage(rows, handle, name)
    engine.passed("staged")
    return files, digests(_as_parts(computing, files), handle.schema, leave_out=hidden)


def _turned(
    computing: Computing, work: Work, parts: list[int], name: str
) -> tuple[tuple[File, ...], dict[int, str]] | None:
    """Stage only what changes of a large rolling table. None: it is written whole."""
    work.turned = turn_wheel(computing, parts[0], name) if computing.rolling else None
    if work.turned is None:
        return None
    computing.engine.passed("staged")
    return work.turned.staged, {parts[0]: work.turned.digest}


def _as_parts(computing: Computing, files: tuple[File, ...]) -> DataFrame:
    """Staged rows with the part that they are of, which a rolling table does not store."""
    assert computing.own is not None
    rows, pin = read.staged(computing.engine.spark, computing.own, files), computing.pin
    return with_part(rows, pin.due.last, pin.table.length) if computing.rolling else rows


def _collected(computing: Computing, many: Many, parts: list[int], schema: str) -> small.Collected:
    if many.given is not None:
        given, many.given = many.given, None
        return given
    hidden = computing.view.sketches
    if len(parts) > 1:
        return small.collect(many.rows(parts), schema, hidden)
    return small.collect(computing.result(parts[0]), schema, hidden, parts[0], computing.pin.table.length)


def _checked(
    computing: Computing, files: tuple[File, ...], contents: dict[int, Content], work: Work
) -> dict[int, Checked]:
    """What the checks of the view find in the staged rows; most views have none."""
    if not computing.view.checks:
        return {}
    return checked_view(computing, _as_parts(computing, files), contents, work.contents)


def _patched(computing: Computing, many: Many, work: Work, touching: Touching) -> bool:
    """Compute only rows of the touched keys. False: it cannot be done, or failed in a way that the whole parts may tell better."""
    engine, handle = computing.engine, computing.own
    assert handle is not None
    name = _new_name()
    try:
        patch = make_patch(computing, many, touching, name)
        engine.passed("digested")
        checked = {}
        if computing.view.checks:
            checked = checked_view(computing, patch.content(), patch.contents, work.contents)
        engine.passed("checked")
    except (*SPARK_ERRORS, QueryFailed, NotTogether, CannotMerge, storage.BadSchema) as why:
        storage.discard(handle.path, name)
        if is_infrastructure(why):
            raise
        log.info("%s is computed again: %s", computing.view.name, message_of(why).partition("\n")[0])
        if not isinstance(why, NotTogether | CannotMerge):
            computing.give_up(REPAIR, message_of(why).partition("\n")[0])
        return False
    if any(not result.published for result in checked.values()):
        storage.discard(handle.path, name)
        return False  # the usual way keeps the bad parts out of what is published
    work.checked |= checked
    work.contents |= patch.contents
    work.patches[name] = patch
    work.files[name], work.holds[name] = patch.files, touching.parts
    return True


def _without(computing: Computing, name: str, files: tuple[File, ...], bad: Parts) -> tuple[str, tuple[File, ...]]:
    """What was staged but for parts that failed their checks: nobody may ever read these."""
    handle = computing.own
    assert handle is not None
    good = read.staged(computing.engine.spark, handle, files).where(~read.in_parts(bad))
    again = _new_name()
    try:
        kept = stage(good, handle, again)
    except SPARK_ERRORS:
        storage.discard(handle.path, again)
        raise
    storage.discard(handle.path, name)
    return again, kept


def _publish(computing: Computing, held: Lease, work: Work, changed: Parts, began: float) -> Recorded:
    """One Delta commit for everything that changed, then the ledger. Unchanged results are thrown away."""
    engine, handle = computing.engine, computing.own
    assert handle is not None
    entry, version = computing.pin.entry(work.contents), None
    if keys := sum(patch.touching.keys.count for patch in work.patches.values()):
        how = f"{keys} {'key' if keys == 1 else 'keys'}"
        merged = all(patch.touching.merging is not None for patch in work.patches.values())
        entry = replace(entry, reason=f"{entry.reason}; repaired by {f'merging, {how}' if merged else how}")
    if from_kept := computing.from_kept & work.contents.keys():
        entry = replace(entry, reason=f"{entry.reason}; computed with what was kept")
    used = {name for name, parts in work.holds.items() if parts & changed}
    for name in work.files.keys() - used:
        storage.discard(handle.path, name)
    if computing.rolling and changed:
        turned = work.turned or whole(computing, work.contents, work.files)
        for name in used if not turned.staged else ():
            storage.discard(handle.path, name)
        engine.passed("ready")
        # Also where the rows stay: whoever computed an earlier part from an older version must not commit any more.
        stored = {"kind": "step", "entry": entry.to_json()}
        version = storage.commit(handle, turned.staged, turned.removed, stored, moved=turned.moved)
    elif changed:
        patches = [work.patches[name] for name in used if name in work.patches]
        if any(patch.touching.merging is not None for patch in patches):
            entry = replace(entry, base=handle.version)
        replaced = Parts.of(*(s for name in used if name not in work.patches for s in work.holds[name].ranges))
        adds, name = [file for staged in used for file in work.files[staged]], _new_name()
        removed, copied = copy_survivors(engine.spark, handle, replaced, patches, name)
        if copied is not None:
            work.copied = check_copies(computing, removed, copied, replaced, patches)
            adds += copied
            used.add(name)
        engine.passed("ready")
        version = storage.commit(handle, adds, removed, {"kind": "step", "entry": entry.to_json()})
    engine.passed("committed")
    took = time.monotonic() - began
    repair = done(work.choices, _repaired(computing, work), len(work.contents), took)
    recorded = engine.ledger.commit(
        held, entry, version, engine.now(), keep=True, seconds=took, repair=repair, from_kept=len(from_kept)
    )
    engine.passed("recorded")
    for name in used:
        storage.finish(handle.path, name)
    return recorded


def _new_name() -> str:
    """Names one try to stage: never used twice."""
    return uuid.uuid4().hex[:16]
