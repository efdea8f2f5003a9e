"""A Delta table that Partwise writes: open it at a version, commit as the next one or not at all.

`commit` is a compare-and-swap. A handle is opened when a step pins its inputs and is never opened
again before the commit; the commit becomes version handle.version + 1, or raises Conflict because
somebody else's did. delta-rs itself checks nothing that it is told, so everything is checked here
before: a table must never name a file that is not there.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from partwise.parts import Parts
from partwise.storage import log
from partwise.storage.files import BadFile, folder
from partwise.storage.schema import PART, names, normal

#: A checkpoint each so many versions keeps opening a table at any version cheap.
CHECKPOINT_EVERY = 50

#: Log files are the ledger's evidence after a crash and the way to older versions: nobody cleans them
#: away behind our back.
KEEP_LOG = {"delta.enableExpiredLogCleanup": "false"}
#: The statistics that we write and that readers filter by; other writers (OPTIMIZE) keep to them too.
PART_STATISTICS = {"delta.dataSkippingStatsColumns": "part,part_timestamp"}


class StorageError(Exception):
    """A table cannot be read or written as asked; the message is meant for people."""


class NoTable(StorageError):
    """There is no Delta table at this path, or not in this version."""


class Conflict(StorageError):
    """Another commit took the version; nothing of ours is visible. Start over from a new handle."""


class CommitRefused(StorageError):
    """The commit would have damaged the table; nothing was written."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a table, live in one version. `lo`..`hi` is the range of its parts by statistics."""

    path: str
    size: int
    rows: int | None = None
    lo: int | None = None
    hi: int | None = None

    def may_hold(self, parts: Parts) -> bool:
        """Without statistics it may hold anything."""
        return self.lo is None or self.hi is None or bool(parts.within(self.lo, self.hi))

    def only_holds(self, parts: Parts) -> bool:
        return self.lo is not None and self.hi is not None and parts.covers(self.lo, self.hi)


@dataclass(frozen=True)
class Handle:
    """A table at one version. Cheap: the list of files is read when requested."""

    path: str
    version: int
    table: DeltaTable = field(repr=False, compare=False)

    @cached_property
    def schema(self) -> str:
        """As JSON text, the form that Spark reads."""
        return str(self.table.schema().to_json())

    @property
    def columns(self) -> tuple[str, ...]:
        return names(self.schema)

    @cached_property
    def files(self) -> tuple[File, ...]:
        # Read without pyarrow: its import, with pandas behind it, would cost a query two seconds.
        found = self.table.get_add_actions(flatten=True)
        absent = [None] * found.num_rows
        columns = [
            found.column(name).to_pylist() if name in found.column_names else absent
            for name in ("path", "size_bytes", "num_records", f"min.{PART}", f"max.{PART}")
        ]
        return tuple(File(*row) for row in zip(*columns, strict=True))

    @property
    def rows(self) -> int:
        return sum(file.rows or 0 for file in self.files)

    def files_of(self, parts: Parts) -> tuple[File, ...]:
        """The files that may hold rows of these parts."""
        return tuple(file for file in self.files if file.may_hold(parts))

    def uris(self, files: Iterable[File] | None = None) -> list[str]:
        """Full paths, as Spark and DuckDB take them."""
        root = self.path.rstrip("/")
        return [f"{root}/{file.path}" for file in (self.files if files is None else files)]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What replacing some parts does to the files: `removed` go; of those, `mixed` hold other parts
    too, whose rows have to be part of the staged write."""

    removed: tuple[File, ...]
    mixed: tuple[File, ...]
    surviving: Parts


def rewrite(handle: Handle, parts: Parts) -> Rewrite:
    """Which files must go for these parts to be replaced, and which other parts they may hold."""
    removed = handle.files_of(parts)
    mixed = tuple(file for file in removed if not file.only_holds(parts))
    unknown = next((f.path for f in mixed if f.lo is None), None)
    if unknown is not None:
        raise CommitRefused(f"{handle.path}: {unknown} has no statistics of '{PART}', so its parts cannot be replaced")
    held = Parts.of(*((f.lo, f.hi) for f in mixed if f.lo is not None and f.hi is not None))
    return Rewrite(removed, mixed, held - parts)


def create(path: str, schema: str, *, name: str | None = None, description: str | None = None) -> Handle:
    """The table at this path, made if it is not there yet (schema as JSON text).

    Several processes may do this at once: one of them makes it, all get it. A table that exists
    keeps its schema; see `replace` for another one.
    """
    wanted = Schema.from_json(normal(schema))
    if not _is_table(path):
        configuration = {**KEEP_LOG, **(PART_STATISTICS if PART in names(schema) else {})}
        try:
            DeltaTable.create(
                path,
                wanted,
                mode="error",
                name=name,
                description=description,
                configuration=configuration,
                # With retries the slower of two creators commits its own CREATE as version 1.
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except DeltaError:
            if not _is_table(path):  # else somebody was quicker, which is as good
                raise
    return open_at(path)


def open_at(path: str, version: int | None = None) -> Handle:
    """The table at a version (the newest one by default). Raises NoTable."""
    try:
        table = DeltaTable(path, version=version)
    except TableNotFoundError as why:
        raise NoTable(f"there is no Delta table in {path}") from why
    except DeltaError as why:
        at = "" if version is None else f" in version {version}"
        raise NoTable(f"the Delta table in {path} cannot be opened{at}: {why}") from why
    return Handle(path, table.version(), table)


def exists(path: str) -> bool:
    return _is_table(path)


def commit(
    handle: Handle,
    adds: Sequence[File],
    removes: Sequence[File],
    entry: dict[str, Any],
    *,
    data_change: bool = True,
) -> int:
    """Publishes staged files and removes live ones as version handle.version + 1, which is returned.

    Raises Refused (nothing would be right afterwards) or Conflict (somebody else was first). Staged
    files without rows are left out. `data_change=False` is for compaction: same rows, other files.
    """
    _check_current(handle)
    now = _now_ms()
    live = {file.path: file.size for file in handle.files}
    strange = [file.path for file in removes if file.path not in live]
    if strange:
        raise CommitRefused(f"{handle.path}: {strange[0]} cannot be removed: it is no file of version {handle.version}")
    actions: list[AddAction | RemoveAction] = [*_add_actions(handle, adds, live, handle.columns, now, data_change)]
    actions += [RemoveAction(file.path, data_change, now, live[file.path], {}) for file in removes]
    return _commit(handle, actions, "append", handle.table.schema(), entry)


def replace(handle: Handle, schema: str, adds: Sequence[File], entry: dict[str, Any]) -> int:
    """The table gets another schema and other content in one commit: readers see the old table or
    the new one, never neither. All live files are removed. Raises like `commit`."""
    _check_current(handle)
    wanted = normal(schema)
    live = {file.path: file.size for file in handle.files}
    actions = _add_actions(handle, adds, live, names(wanted), _now_ms(), True)
    return _commit(handle, [*actions], "overwrite", Schema.from_json(wanted), entry)


def barrier(handle: Handle, entry: dict[str, Any]) -> int:
    """A commit that changes nothing: whoever holds an older handle cannot commit any more."""
    return commit(handle, (), (), entry, data_change=False)


def checkpoint(path: str) -> None:
    DeltaTable(path).create_checkpoint()


def _is_table(path: str) -> bool:
    return bool(DeltaTable.is_deltatable(path))


def _check_current(handle: Handle) -> None:
    if log.exists_after(folder(handle.path), handle.version):
        raise Conflict(f"{handle.path}: version {handle.version} is no longer the newest one")


def _add_actions(
    handle: Handle, adds: Sequence[File], live: dict[str, int], columns: tuple[str, ...], now: int, data_change: bool
) -> list[AddAction]:
    root, found = folder(handle.path), []
    for file in adds:
        size = root.size(file.path)
        if file.path in live:
            raise CommitRefused(f"{handle.path}: {file.path} is a file of the table already")
        if size is None:
            raise CommitRefused(f"{handle.path}: the staged file {file.path} is missing")
        if size != file.size:
            raise CommitRefused(f"{handle.path}: the staged file {file.path} has {size} bytes, expected {file.size}")
        try:
            footer = root.footer(file.path)
            if not footer.rows:
                continue
            statistics = footer.statistics()
        except BadFile as why:
            raise CommitRefused(f"{handle.path}: {why}") from why
        if set(footer.columns) != set(columns):
            odd = ", ".join(sorted(set(footer.columns) ^ set(columns)))
            raise CommitRefused(f"{handle.path}: the staged file {file.path} does not have the table's columns: {odd}")
        found.append(AddAction(file.path, size, {}, now, data_change, statistics))
    return found


def _commit(
    handle: Handle, actions: list[AddAction | RemoveAction], mode: str, schema: Schema, entry: dict[str, Any]
) -> int:
    attempt, version = uuid.uuid4().hex, handle.version + 1
    try:
        handle.table.create_write_transaction(
            actions,
            mode,
            schema,
            partition_by=[],
            commit_properties=CommitProperties(
                custom_metadata={log.ENTRY: json.dumps(entry, separators=(",", ":")), log.ATTEMPT: attempt},
                max_commit_retries=0,
            ),
            # After the commit nothing may fail as if it were the commit.
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
    except Exception as why:
        # An object store can lose the answer to a commit that went through: the log knows.
        taken = log.actions_of(folder(handle.path), version)
        if taken is None:
            raise
        if log.commit_info(taken).get(log.ATTEMPT) != attempt:
            raise Conflict(f"{handle.path}: version {version} was committed by another process") from why
    if version % CHECKPOINT_EVERY == 0:
        _try_checkpoint(handle.path)
    return version


def _try_checkpoint(path: str) -> None:
    try:
        checkpoint(path)
    except Exception:  # only makes opening quicker; the next one does it
        return


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
