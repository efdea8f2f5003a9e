"""One source under its lease: what the ledger knows of it, and its table at the version that the ledger knows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from sqlalchemy import select

from partwise import storage
from partwise.definitions import Dimension, Source
from partwise.ledger.read.pin import DefinitionChanged
from partwise.ledger.schema import part
from partwise.ledger.write.commit import Content
from partwise.ledger.write.leases import Lease
from partwise.object_store import is_s3
from partwise.storage import Handle
from partwise.workspace import Workspace
from spark_jobs.engine import Engine
from spark_jobs.ingest.files.rows import NO_CONTENT, Shape
from spark_jobs.ingest.state import SourceState, read_state
from spark_jobs.step import read, small
from spark_jobs.step.copies import runs_here
from spark_jobs.step.digest import digests, row_count
from spark_jobs.step.stage import stage


@dataclass
class Job:
    """The work on one source. `handle` is opened once, under the lease: commits follow that version or none."""

    engine: Engine
    workspace: Workspace
    table: Source | Dimension
    held: Lease
    state: SourceState
    handle: Handle
    batch: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    staged: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def fingerprint(self) -> str:
        return self.engine.definitions.graph()[self.name].fingerprint

    def sees_disk(self) -> bool:
        """Whether Spark reads what is on the disk of this machine. Tables in a folder are on a disk that all share."""
        return not is_s3(self.workspace.warehouse) or runs_here(self.engine.spark)

    def contents(self, parts: Iterable[int]) -> dict[int, Content]:
        """What these parts hold, as far as they hold anything, open ones too."""
        wanted = set(parts)
        found = {p: c for p, c in self.state.opened.items() if p in wanted}
        if wanted and self.state.existing.within(min(wanted), max(wanted)):
            query = select(part.c.part, part.c.rows, part.c.digest).where(
                part.c.table == self.name, part.c.part.between(min(wanted), max(wanted))
            )
            with self.engine.ledger.database.reading() as r:
                rows = r.on.execute(query)
                found |= {row.part: Content(row.rows, row.digest) for row in rows if row.part in wanted}
        return found

    def stage(self, rows: object, expected: int | None = None, schema: str | None = None) -> tuple[storage.File, ...]:
        name = uuid.uuid4().hex[:16]
        self.staged.append(name)
        return stage(rows, self.handle, name, expected=expected, schema=schema)  # type: ignore[arg-type]

    def collect(self, rows: DataFrame) -> tuple[tuple[storage.File, ...], dict[int, str]]:
        """The same for few rows, in one job with their digests by part."""
        found = small.collect(rows, self.handle.schema, NO_CONTENT)
        return self.stage_rows(found.rows, found.digests), found.digests

    def stage_rows(self, rows: Any, digests: dict[int, str]) -> tuple[storage.File, ...]:
        """The same for an Arrow table with the columns of the table, sorted by part."""
        name = uuid.uuid4().hex[:16]
        self.staged.append(name)
        return small.stage(small.Collected(rows, digests), self.handle, name)

    def digests(self, files: Iterable[storage.File], schema: str | None = None) -> dict[int, str]:
        chosen = list(files)
        if not chosen:
            return {}
        rows = read.staged(self.engine.spark, self.handle, chosen, schema)
        return digests(rows, schema or self.handle.schema, leave_out=NO_CONTENT)

    def settle(self, committed: bool) -> None:
        """Staged files are the table's now, or they go."""
        for name in self.staged:
            (storage.finish if committed else storage.discard)(self.handle.path, name)
        self.staged.clear()


def shape_of(table: Source | Dimension, columns: dict[str, str] | None = None) -> Shape:
    named = columns if columns is not None else dict(table.columns)
    return Shape(named, table.time, table.part) if isinstance(table, Source) else Shape(named, None, 1)


def contents_of(found: dict[int, str]) -> dict[int, Content]:
    return {p: Content(row_count(digest), digest) for p, digest in found.items()}


@contextmanager
def job(engine: Engine, workspace: Workspace, table: Source | Dimension, schema: str) -> Iterator[Job]:
    """Take the lease, complete the ledger, open the table (made if need be). Raises Busy, DefinitionChanged."""
    with engine.leased(table.name) as held:
        known = engine.ledger.graph().tables.get(table.name)
        if known is None or known.fingerprint != engine.definitions.graph()[table.name].fingerprint:
            raise DefinitionChanged(table.name)
        version = engine.ledger.current(table.name)
        handle = engine.open(table.name, version)
        if handle is None:
            handle = storage.create(engine.path(table.name, version.generation), schema, name=table.name)
            engine.ledger.adopt(held, [(0, None)], engine.now())
            engine.passed("created")
        if handle.version != (engine.ledger.current(table.name).version or 0):
            raise storage.Conflict(f"{handle.path}: another process created the table meanwhile")
        yield Job(engine, workspace, table, held, read_state(engine.ledger, table.name), handle)


def reopened(work: Job) -> None:
    """After a commit of our own: the next one follows it."""
    version = work.engine.ledger.current(work.name)
    handle = work.engine.open(work.name, version)
    assert handle is not None
    work.handle, work.state = handle, read_state(work.engine.ledger, work.name)
