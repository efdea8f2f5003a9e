"""The ways in: take in what is new, take a file out again, look at and release what was quarantined."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from partwise.definitions import Definition, Dimension, Source
from partwise.ledger.heartbeat import heartbeat
from partwise.ledger.records import files as ledger_files
from partwise.ledger.records.files import Delivery, Quarantined
from partwise.ledger.write.leases import Busy
from partwise.ledger.write.orphans import Foreign
from partwise.sources.named import NotNamed, meant
from partwise.sources.sums import changed as contents_after
from partwise.storage import BadSchema, Conflict, StorageError
from partwise.workspace import Workspace
from spark_jobs.checks.source import HeldBack
from spark_jobs.engine import Engine
from spark_jobs.ingest import quarantine
from spark_jobs.ingest.columns import BadColumns, fit_columns
from spark_jobs.ingest.difference import RowChange
from spark_jobs.ingest.dimension import load_dimension
from spark_jobs.ingest.files.culprit import FileFailed
from spark_jobs.ingest.files.find import SETTLE, RefusedFile
from spark_jobs.ingest.files.lots import Lots
from spark_jobs.ingest.files.rows import stored_schema
from spark_jobs.ingest.foreign.copy import columns_of, load_foreign
from spark_jobs.ingest.job import Job, job
from spark_jobs.ingest.load import FileChanged, FilesHeld, load_files
from spark_jobs.ingest.news import has_news
from spark_jobs.ingest.publish import TableChange, publish
from spark_jobs.ingest.remove import removal
from spark_jobs.ingest.result import Ingested
from spark_jobs.progress import EVERY
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure, patiently, sentence_of

#: What one source cannot be loaded for; others can.
_REFUSALS = (RefusedFile, BadColumns, BadSchema, Busy, FileChanged, FileFailed, Foreign, StorageError, *SPARK_ERRORS)
#: Tries of one source after somebody else was quicker, or a file changed under our hands.
_TRIES = 5
#: Seconds between looks whether another writer is done.
_LOOK = 0.5


class NotDone(Exception):
    """What was requested cannot be done; the message is meant for people."""


def ingest(
    engine: Engine, workspace: Workspace, names: Iterable[str] | None = None, settle: float = SETTLE
) -> list[Ingested]:
    """Take in what is new in these sources and dimensions (all by default); what fails in one leaves the others.

    `settle` are the seconds within which a file that was just written to is looked at twice.
    """
    return list(each(engine, workspace, names, settle))


def each(
    engine: Engine,
    workspace: Workspace,
    names: Iterable[str] | None = None,
    settle: float = SETTLE,
    stop: Callable[[], bool] = lambda: False,
    patience: float = 0,
) -> Iterator[Ingested]:
    """The same, one after the other, until somebody wants to stop. `patience`: seconds to wait for another writer."""
    usable = engine.definitions.usable
    wanted = list(usable) if names is None else [_spelled(usable, name) for name in names]
    # What comes in together with a new version of a forward dimension comes after it.
    for name in sorted(wanted, key=lambda name: not isinstance(usable[name], Dimension)):
        if stop():
            return
        table = usable[name]
        if isinstance(table, Source | Dimension):
            if not has_news(engine.ledger, workspace, table):
                yield Ingested(name)
                continue
            try:
                with _telling(engine, name):
                    done = patiently(partial(take_in, engine, workspace, name, settle, patience, stop))
                yield done
            except Exception as why:
                if not is_infrastructure(why):
                    raise
                yield Ingested(name, refused=[("", sentence_of(why))])


@contextmanager
def _telling(engine: Engine, name: str) -> Iterator[None]:
    """A large file, or a Delta table of others, may take minutes: whoever waits is told that it goes on."""
    since = time.time()

    def tell() -> bool:
        engine.loading_since(name, since)
        return True

    with heartbeat(EVERY, tell):
        yield


def take_in(
    engine: Engine,
    workspace: Workspace,
    name: str,
    settle: float = SETTLE,
    patience: float = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Ingested:
    """What is new in one table: thousands of files in lots, until somebody wants to stop. Raises only what says nothing
    about the table: Spark or the ledger are not there."""
    table = engine.definitions.usable[_spelled(engine.definitions.usable, name)]
    assert isinstance(table, Source | Dimension)
    failed: dict[str, str] = {}
    lots = Lots(engine.step_seconds, engine.lot_files)
    found: Ingested | None = None
    while found is None or (found.left and not stop()):
        try:
            done = _tried(
                lambda: _waiting(lambda: _once(engine, workspace, table, settle, failed, lots), patience, stop), failed
            )
        except _REFUSALS as why:
            if is_infrastructure(why):
                raise
            done = Ingested(table.name, refused=[*failed.items(), ("", sentence_of(why))])
        found = done if found is None else found.then(done)
    return found


def _waiting(once: Callable[[], Ingested], patience: float, stop: Callable[[], bool]) -> Ingested:
    """Somebody else who writes the table is waited for, as steps of views do. Raises Busy in the end."""
    end = time.monotonic() + patience
    while True:
        try:
            return once()
        except Busy:
            if time.monotonic() >= end or stop():
                raise
            time.sleep(_LOOK)


def _tried(once: Callable[[], Ingested], failed: dict[str, str]) -> Ingested:
    held: dict[str, str] = {}
    done = _until(once, failed, held)
    done.held.extend(held.items())
    return done


def _until(once: Callable[[], Ingested], failed: dict[str, str], held: dict[str, str]) -> Ingested:
    """Again after an ordinary defeat; a file that Spark cannot read is left out, each one costs a try of its own."""
    tries = 0
    while True:
        try:
            return once()
        except FileFailed as why:
            if why.name in failed:
                raise
            failed[why.name] = why.message
        except FilesHeld as why:
            held |= why.files
        except (Conflict, FileChanged):
            tries += 1
            if tries == _TRIES:
                raise


def _once(
    engine: Engine, workspace: Workspace, table: Source | Dimension, settle: float, failed: dict[str, str], lots: Lots
) -> Ingested:
    columns = columns_of(engine, workspace, table)
    schema = stored_schema(engine.spark, columns, parts=isinstance(table, Source))
    with _working(engine, workspace, table, schema) as work:
        said = fit_columns(work, schema)
        if table.delta is not None:
            done = load_foreign(work, columns)
        elif isinstance(table, Dimension):
            done = load_dimension(work, settle, failed)
        else:
            done = load_files(work, settle, tuple(failed.items()), lots)
    if said:
        done.notes.insert(0, said)
    return done


class _working:
    """A job whose staged files go if it does not end well. After a crash the sweep finds them."""

    def __init__(self, engine: Engine, workspace: Workspace, table: Source | Dimension, schema: str) -> None:
        self._manager = job(engine, workspace, table, schema)

    def __enter__(self) -> Job:
        self._job = self._manager.__enter__()
        return self._job

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, trace: object) -> bool | None:
        # A commit whose answer was lost may have taken the files: only what is surely ours to delete goes.
        if isinstance(why, FileChanged | FileFailed | FilesHeld | HeldBack | BadColumns):
            self._job.settle(committed=False)
        return self._manager.__exit__(kind, why, trace)  # type: ignore[arg-type]


def retract(engine: Engine, workspace: Workspace, source: str, file: str) -> Ingested:
    """Take the rows of a file out again. The file is not loaded again unless its content changes."""
    table = _source(engine, source)
    if table.delta is not None:
        raise NotDone(f"{table.name} is a Delta table of others; rows go when its owner deletes them.")

    def once() -> Ingested:
        columns = columns_of(engine, workspace, table)
        with _working(engine, workspace, table, stored_schema(engine.spark, columns, parts=True)) as work:
            taken = _meant(work, workspace, file)
            if taken.state == "retracted":
                raise NotDone(f"{taken.name} is retracted already; nothing was changed.")
            old = removal(work, [taken])
            delivery = Delivery(
                files=(taken._replace(state="retracted", lo=None, hi=None),),
                gone=(taken.id,),
                last_file=work.state.intake.last_file,
            )
            after = contents_after(work.contents(old.digests), {}, old.digests)
            reason = f"retracted {taken.name}"
            try:
                done = publish(work, TableChange(old.kept, old.files, after, {}, delivery, reason, asked=True))
            except HeldBack as why:
                raise NotDone(f"Without the rows of {taken.name}, {why}. Nothing was changed.") from why
            rows = sum(int(d.partition(":")[0]) for d in old.digests.values())
            return Ingested(
                table.name,
                1,
                -rows,
                0,
                0,
                done.closed,
                done.changed,
                notes=list(done.notes),
                row_change=RowChange(removed=rows),
            )

    return _tried(once, {})


def _meant(work: Job, workspace: Workspace, file: str) -> ledger_files.TakenFile:
    try:
        return work.state.files[meant(work.name, file, work.state.files, workspace.folder, workspace.locate)]
    except NotNamed as why:
        raise NotDone(str(why)) from None


def quarantined(engine: Engine, source: str | None = None, limit: int | None = None) -> list[Quarantined]:
    """Rows that were quarantined, with file and reason."""
    name = None if source is None else _spelled(engine.definitions.usable, source)
    with engine.ledger.database.reading() as r:
        return ledger_files.quarantined(r, name, limit)


def release(engine: Engine, workspace: Workspace, source: str) -> Ingested:
    """Take in what was quarantined as far as it can be placed by now, however old or new it is."""
    table = _source(engine, source)
    if table.delta is not None:
        raise NotDone(f"{table.name} is a Delta table of others; its rows are taken in when its owner corrects them.")

    def once() -> Ingested:
        columns = columns_of(engine, workspace, table)
        schema = stored_schema(engine.spark, columns, parts=True)
        with _working(engine, workspace, table, schema) as work:
            fit_columns(work, schema)
            with engine.ledger.database.reading() as r:
                waiting = ledger_files.quarantined(r, table.name)
            try:
                return quarantine.release(work, waiting) if waiting else Ingested(table.name)
            except HeldBack as why:
                raise NotDone(f"With these rows, {why}. Nothing was changed.") from why

    return _tried(once, {})


def _source(engine: Engine, name: str) -> Source:
    found = engine.definitions.usable[_spelled(engine.definitions.usable, name)]
    if not isinstance(found, Source):
        raise NotDone(f"{name} is not a source.")
    return found


def _spelled(usable: object, name: str) -> str:
    known: dict[str, Definition] = dict(usable)  # type: ignore[call-overload]
    found = next((k for k in known if k.lower() == name.lower()), None)
    if found is None:
        raise NotDone(f"There is no usable definition {name}.")
    return found
