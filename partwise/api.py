"""The public Python API: read tables, ask what is there and what would run, and run it. `partwise.open` leads here.

It keeps the promises of the commands because it runs on the same code: `query` sees all tables from one snapshot,
`status` and `plan` show the ledger with the definitions as they are written now, and only `run` writes.
Names in this file change only by the deprecation rule of docs/api.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from partwise.workspace import BadSetting, NoWorkspace, Workspace, open_workspace

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from partwise.ledger.read.snapshot import Snapshot
    from partwise.storage.query import PinnedTable
    from partwise.tables import Table


#: The package that computes.
_ENGINE = "spark_jobs"


class PartwiseError(Exception):
    """Something stands in the way; the message says what, and what to do. Every error of this API is one."""


@dataclass(frozen=True, slots=True)
class TableState:
    """One table of `status`. `first` and `last` are the starts of its first and newest part, None without parts.

    `missing`, `stale`, `blocked` and `failed` count parts; `late_rows` and `quarantined` count rows of a source.
    """

    name: str
    kind: str
    parts: int
    first: datetime | None
    last: datetime | None
    missing: int
    stale: int
    blocked: int
    failed: int
    late_rows: int
    quarantined: int
    last_updated: datetime | None
    helper_of: str | None


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """Parts of one view that would be computed together. `first` and `last` are the starts of its parts."""

    table: str
    first: datetime
    last: datetime
    parts: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class BlockedParts:
    """Parts that are due but wait. `waits_for`: each table that they wait for, with its state."""

    table: str
    first: datetime
    last: datetime
    waits_for: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """What would run now, in order. `manual`: steps that are left to people (`repair: manual`)."""

    steps: tuple[PlannedStep, ...]
    blocked: tuple[BlockedParts, ...]
    manual: tuple[PlannedStep, ...]


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """What `run` loaded into one source or dimension. `closed` and `changed` count its parts.

    `problems`: refused files, parts and files that checks hold back, each a sentence. `notes` are no problems.
    """

    table: str
    files: int
    rows: int
    late_rows: int
    quarantined: int
    closed: int
    changed: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """Parts of one view that `run` computed together. `first` and `last` are the starts of its parts.

    `changed` counts the parts whose content is another one than before; `failed` are those that have not got one, with
    the reason: their query failed, or a check held them back.
    """

    table: str
    first: datetime | None
    last: datetime | None
    parts: int
    changed: int
    rows: int
    reason: str
    seconds: float
    failed: tuple[tuple[datetime, str], ...]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one `run` did. `problems` are all that is wrong, each a sentence: with loads, steps, tables or definitions."""

    loaded: tuple[LoadedTable, ...]
    steps: tuple[FinishedStep, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class PastReader:
    """A workspace as of a time in the past. Tables that had no part by then do not exist in it."""

    workspace: Workspace
    moment: float | None = None

    def query(self, sql: str) -> pa.Table:
        """Run one SQL statement (DuckDB's dialect) over all tables by name, all of them from one snapshot.

        Times are in UTC. Raises PartwiseError.
        """
        from partwise.storage.query import arrow, mentioned

        with _kind(), self._pins(lambda names: mentioned(sql, names)) as pins:
            return arrow(sql, pins)

    def read(self, table: str, parts: str | None = None) -> pa.Table:
        """The rows of a table; with `parts` only of one part, or of a range `A..B` (both included).

        Upper and lower case are the same in names, as in SQL. Parts that do not exist have no rows.
        Raises PartwiseError.
        """
        from partwise.parts import Parts, parse_range
        from partwise.storage.query import arrow

        with _kind():
            found = self._table(table)
            with self._pins(lambda names: [found.name]) as pins:
                if found.name not in pins:
                    raise PartwiseError(
                        f"{found.name} has no parts {'yet' if self.moment is None else 'at that time'}."
                    )
                pin = pins[found.name]
                if parts is not None:
                    if found.kind == "dimension":
                        raise PartwiseError(f"{found.name} is a dimension: it has no parts; leave `parts` out.")
                    if found.rolling:
                        raise PartwiseError(
                            f"{found.name} is rolling: it holds one result, and no parts; leave `parts` out."
                        )
                    span = Parts.of(parse_range(parts, found.length))
                    pin = replace(pin, parts=span if pin.parts is None else pin.parts & span)
                quoted = '"' + found.name.replace('"', '""') + '"'
                return arrow(f"SELECT * FROM {quoted}", {found.name: pin})

    def _table(self, name: str) -> Table:
        from partwise.cli.open_workspace import meant

        self._check_ledger()
        ledger = self.workspace.open_ledger(time.time())
        try:
            tables = ledger.graph().tables
        finally:
            ledger.database.close()
        found = next((table for known, table in tables.items() if known.lower() == name.lower()), None)
        if found is None:
            shown = [known for known, table in tables.items() if table.helper_of is None]
            raise PartwiseError(f"There is no table {name}{meant(name, shown)}")
        return found

    @contextmanager
    def _pins(self, wanted: Wanted) -> Iterator[dict[str, PinnedTable]]:
        from partwise.reading import pinned

        self._check_ledger()
        with pinned(self.workspace, wanted, self.moment) as (pins, _):
            yield pins

    def _check_ledger(self) -> None:
        """Opening a ledger would make one: reading must not."""
        if not self.workspace.has_ledger():
            raise PartwiseError("There is nothing to read yet: no run has made a ledger. `partwise run` starts.")


@dataclass(frozen=True)
class Reader(PastReader):
    """An open workspace, with `query` and `read` of PastReader. Every call sees the newest snapshot.

    Nothing stays open but the Spark session that `run` has started, which all workspaces with the same settings share.
    """

    @property
    def folder(self) -> Path:
        """Where the workspace is."""
        return self.workspace.folder

    def as_of(self, time_: str | datetime) -> PastReader:
        """The same workspace as of a time: a text such as `2026-10-03T10:05` (UTC), or a datetime with a zone.

        How far back this reaches is the setting `history`; a read before that raises PartwiseError.
        """
        from partwise.parts import parse_moment

        with _kind():
            found = parse_moment(time_) if isinstance(time_, str) else time_
        if found.tzinfo is None:
            raise PartwiseError(f"{found.isoformat()} has no time zone; write for example datetime(..., tzinfo=UTC).")
        return PastReader(self.workspace, found.timestamp())

    def status(self) -> tuple[TableState, ...]:
        """Every table with its state, as `partwise status --helpers` shows it. Raises PartwiseError."""
        from partwise.ledger.read import reports

        def start(part: int | None, table: Table) -> datetime | None:
            return None if part is None or table.kind == "dimension" else _start(part, table)

        with self._snapshot() as snapshot:
            return tuple(
                TableState(
                    name=row.table.name,
                    kind=row.table.kind,
                    parts=row.parts,
                    first=start(row.first, row.table),
                    last=start(row.last, row.table),
                    missing=row.missing,
                    stale=row.stale,
                    blocked=row.blocked,
                    failed=row.failed,
                    late_rows=row.late,
                    quarantined=row.quarantined,
                    last_updated=None if row.last_updated is None else datetime.fromtimestamp(row.last_updated, UTC),
                    helper_of=row.table.helper_of,
                )
                for row in reports.tables(snapshot)
            )

    def plan(self, *views: str) -> WorkPlan:
        """What would run now, as `partwise plan` shows it; with views only what leads to them. Raises PartwiseError."""
        from partwise.cli.open_workspace import table_of
        from partwise.cli.views.planned import planned
        from partwise.plan.model import Step

        with self._snapshot() as snapshot:
            graph = snapshot.graph
            names = [table_of(graph, self.workspace.load(), name, "view").name for name in views]
            found = planned(snapshot, names or None).plan

            def step(item: Step) -> PlannedStep:
                table, parts = graph[item.table], item.parts
                ends = _start(parts.lo, table), _start(parts.hi, table)
                return PlannedStep(item.table, *ends, parts.size, item.kind, item.reason)

            blocked = tuple(
                BlockedParts(
                    item.table,
                    _start(item.parts.lo, graph[item.table]),
                    _start(item.parts.hi, graph[item.table]),
                    tuple((wait.table, wait.state) for wait in item.waits_for),
                )
                for item in found.blocked
            )
            return WorkPlan(tuple(map(step, found.steps)), blocked, tuple(map(step, found.manual)))

    def run(self, *views: str, ingest: bool = True, now: bool = False) -> RunResult:
        """Load what has arrived, then compute everything that is ready, until nothing is, as `partwise run` does.

        With views: only these and what they are computed from. `ingest=False` loads nothing; `now=True` goes past
        refresh policies. The first call that finds work starts Spark as the settings say (or uses the driver in the
        background, with `spark: {keep: ...}`), and later ones use it: they have no start cost. What fails is reported in the
        result; raises PartwiseError where nothing can be done at all.
        """
        # The layer that computes stands above this one: it is imported when it is called.
        in_process = import_module(".in_process", _ENGINE)
        with _kind():
            try:
                found = tuple(in_process.round_of(self.workspace, views, ingest, now))
            except (FileNotFoundError, ModuleNotFoundError) as why:  # no jars, or no Spark at all
                raise PartwiseError(f"This cannot be computed here: {why}") from why
        loaded = tuple(item for item in found if isinstance(item, LoadedTable))
        steps = tuple(item for item in found if isinstance(item, FinishedStep))
        return RunResult(loaded, steps, tuple(problem for item in found for problem in _problems(item)))

    @contextmanager
    def _snapshot(self) -> Iterator[Snapshot]:
        from partwise.cli.open_workspace import definitions_of, snapshot_of

        with _kind(), snapshot_of(self.workspace, definitions_of(self.workspace, quiet=True)) as snapshot:
            yield snapshot


def open_reader(workspace: str | PathLike[str] | None = None) -> Reader:
    """What `partwise.open` returns."""
    try:
        return Reader(open_workspace(None if workspace is None else fspath(workspace)))
    except (NoWorkspace, BadSetting) as why:
        raise PartwiseError(str(why)) from None


def _problems(item: LoadedTable | FinishedStep | str) -> tuple[str, ...]:
    if isinstance(item, str):
        return (item,)
    if isinstance(item, LoadedTable):
        return item.problems
    return tuple(f"{item.table}[{start:%Y-%m-%dT%H:%M:%S}]: {message}" for start, message in item.failed)


def _start(part: int, table: Table) -> datetime:
    return datetime.fromtimestamp(part * table.length, UTC)


@contextmanager
def _kind() -> Iterator[None]:
    """Every error that has a message for people becomes a PartwiseError; others are defects and stay what they are."""
    from sqlalchemy.exc import DBAPIError

    from partwise.cli.stop import Stop
    from partwise.ledger.open import LedgerProblem
    from partwise.parts import BadTime
    from partwise.reading import NotKept
    from partwise.storage import StorageError
    from partwise.storage.query import BadQuery

    try:
        yield
    except (Stop, LedgerProblem, NotKept, BadTime, BadQuery, StorageError) as why:
        raise PartwiseError(str(why)) from why
    except DBAPIError as why:
        raise PartwiseError(f"The ledger cannot be read: {str(why.orig).partition(chr(10))[0]}") from why


if TYPE_CHECKING:
    from partwise.reading import Wanted
