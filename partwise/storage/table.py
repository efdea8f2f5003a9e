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
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from partwise import object_store
from partwise.storage import log
from partwise.storage.errors import CommitRefused, Conflict
from partwise.storage.files import BadFile, folder
from partwise.storage.handle import File, Handle, opened, options, statistics_of, told
from partwise.storage.schema import PART, names, normal

#: A checkpoint each so many versions keeps opening a table at any version cheap.
CHECKPOINT_EVERY = 50
#: In an object store, opening takes two requests for each version since the last one.
CHECKPOINT_EVERY_IN_STORE = 10

#: Log files are the ledger's evidence after a crash and the way to older versions: nobody cleans them
#: away behind our back.
KEEP_LOG = {"delta.enableExpiredLogCleanup": "false"}


def create(
    path: str, schema: str, *, name: str | None = None, description: str | None = None, keys: Sequence[str] = ()
) -> Handle:
    """The table at this path, made if it is not there yet (schema as JSON text). `keys`: columns by which the rows of a part
    are sorted; the log then says which of their values are in which file.

    Several processes may do this at once: one of them makes it, all get it. A table that exists
    keeps its schema; see `replace` for another one.
    """
    wanted = Schema.from_json(normal(schema))
    if not exists(path):
        _latest.pop(path, None)  # whatever was here before is gone
        configuration = {**KEEP_LOG, **(statistics_of(keys) if PART in names(schema) else {})}
        try:
            DeltaTable.create(
                path,
                wanted,
                mode="error",
                name=name,
                description=description,
                configuration=configuration,
                storage_options=options(path),
                # With retries the slower of two creators commits its own CREATE as version 1.
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except (DeltaError, OSError) as why:
            if not exists(path):  # else somebody was quicker, which is as good
                raise told(path, why) from why
    return open_at(path)


def open_at(path: str, version: int | None = None) -> Handle:
    """The table at a version (the newest one by default). Raises NoTable."""
    known = _latest.get(path)
    if known is not None and known.version == version:
        return known
    table = opened(path, version)
    return Handle(path, table.version(), table)


#: Of tables in an object store the handle that follows from the last commit of this process: a version never changes, and
#: opening one takes many requests.
_latest: dict[str, Handle] = {}


def unknown(path: str, version: int | None) -> list[log.Logged]:
    """What the log says after the last version that the ledger knows, which is what upkeep cleans up to.

    In an object store each look is a request. After a commit of this process one is enough: that the next log file is
    cleaned away means that the ledger went back to an older copy meanwhile. The next commit finds out, and forgets.
    """
    known = _latest.get(path)
    whole = known is None or known.version != version
    return log.entries(path, -1 if version is None else version, whole)


def has_log(handle: Handle) -> bool:
    """Whether the log of an open table is still there: of what this process remembers nobody has looked."""
    root = folder(handle.path)
    read_now = handle.at_hand is not None
    return read_now or root.read(log.name_of(handle.version)) is not None or log.last_checkpoint(root) >= handle.version


def exists(path: str) -> bool:
    if object_store.is_remote(path):  # delta-rs would keep all other threads waiting meanwhile
        return any(not found.folder for found in folder(path).listing("_delta_log"))
    return bool(DeltaTable.is_deltatable(path))


def commit(
    handle: Handle,
    adds: Sequence[File],
    removes: Sequence[File],
    entry: dict[str, Any],
    *,
    data_change: bool = True,
    moved: Collection[str] = (),
) -> int:
    """Publishes staged files and removes live ones as version handle.version + 1, which is returned.

    Raises CommitRefused (nothing would be right afterwards) or Conflict (somebody else was first). Staged
    files without rows are left out. `data_change=False` is for compaction: same rows, other files. `moved` are paths of
    files, coming and going, that only move rows: whoever reads the log sees no change in them.
    """
    _check_current(handle)
    now = _now_ms()
    live = {file.path: file.size for file in handle.files}
    strange = [file.path for file in removes if file.path not in live]
    if strange:
        raise CommitRefused(f"{handle.path}: {strange[0]} cannot be removed: it is no file of version {handle.version}")
    actions: list[AddAction | RemoveAction] = [
        *_add_actions(handle, adds, live, handle.columns, now, data_change, moved)
    ]
    actions += [
        RemoveAction(file.path, data_change and file.path not in moved, now, live[file.path], {}) for file in removes
    ]
    return _commit(handle, actions, "append", None, entry)


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
    DeltaTable(path, storage_options=options(path)).create_checkpoint()


def _check_current(handle: Handle) -> None:
    """Not needed to be safe, as long as log files stay: the commit is a compare-and-swap. It saves work and tells early."""
    if object_store.is_remote(handle.path):
        # There each look is a request. What only it can tell: that the next log file was there and is cleaned away.
        if log.last_checkpoint(folder(handle.path)) > handle.version:
            _latest.pop(handle.path, None)
            raise Conflict(f"{handle.path}: version {handle.version} is no longer the newest one")
        return
    if log.exists_after(folder(handle.path), handle.version):
        raise Conflict(f"{handle.path}: version {handle.version} is no longer the newest one")


def _add_actions(
    handle: Handle,
    adds: Sequence[File],
    live: dict[str, int],
    columns: tuple[str, ...],
    now: int,
    data_change: bool,
    moved: Collection[str] = (),
) -> list[AddAction]:
    root, found = folder(handle.path), []
    for file in adds:
        staged = root.parquet(file.path)
        if file.path in live:
            raise CommitRefused(f"{handle.path}: {file.path} is a file of the table already")
        if staged is None:
            raise CommitRefused(f"{handle.path}: the staged file {file.path} is missing")
        if staged.size != file.size:
            raise CommitRefused(
                f"{handle.path}: the staged file {file.path} has {staged.size} bytes, expected {file.size}"
            )
        try:
            footer = staged.footer()
            if not footer.rows:
                continue
            statistics = footer.statistics(handle.keys)
        except BadFile as why:
            raise CommitRefused(f"{handle.path}: {why}") from why
        if set(footer.columns) != set(columns):
            odd = ", ".join(sorted(set(footer.columns) ^ set(columns)))
            raise CommitRefused(f"{handle.path}: the staged file {file.path} does not have the table's columns: {odd}")
        found.append(AddAction(file.path, staged.size, {}, now, data_change and file.path not in moved, statistics))
    return found


def _commit(
    handle: Handle, actions: list[AddAction | RemoveAction], mode: str, schema: Schema | None, entry: dict[str, Any]
) -> int:
    """`schema`: another one than the table has."""
    attempt, version = uuid.uuid4().hex, handle.version + 1
    metadata = {log.ENTRY: json.dumps(entry, separators=(",", ":")), log.ATTEMPT: attempt}
    try:
        if mode == "append" and object_store.is_s3(handle.path):
            if not folder(handle.path).create(log.name_of(version), log.written(actions, metadata)):
                raise Conflict(f"{handle.path}: version {version} is taken")
            _remember(handle, version, actions)
            return _done(handle, version)
        handle.table.create_write_transaction(
            actions,
            mode,
            schema or handle.table.schema(),
            partition_by=[],
            commit_properties=CommitProperties(custom_metadata=metadata, max_commit_retries=0),
            # After the commit nothing may fail as if it were the commit.
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
    except Exception as why:
        # An object store can lose the answer to a commit that went through: the log knows.
        taken = log.actions_of(folder(handle.path), version)
        if taken is None:
            raise told(handle.path, why) from why
        if log.commit_info(taken).get(log.ATTEMPT) != attempt:
            _latest.pop(handle.path, None)
            raise Conflict(f"{handle.path}: version {version} was committed by another process") from why
    return _done(handle, version)


def _remember(handle: Handle, version: int, actions: Iterable[AddAction | RemoveAction]) -> None:
    """What the table is after a commit of ours on top of a handle of ours: nobody needs to be asked."""
    files = {file.path: file for file in handle.files}
    for action in actions:
        if isinstance(action, AddAction):
            found = json.loads(action.stats)
            least, greatest, nulls = found["minValues"], found["maxValues"], found["nullCount"]
            keys = tuple((key, least.get(key), greatest.get(key), nulls[key]) for key in handle.keys if key in nulls)
            lo, hi = least.get(PART), greatest.get(PART)
            files[action.path] = File(action.path, action.size, found["numRecords"], lo, hi, keys)
        else:
            del files[action.path]
    after = Handle(handle.path, version)
    after.__dict__.update(schema=handle.schema, keys=handle.keys, files=tuple(files.values()))
    _latest[handle.path] = after


def _done(handle: Handle, version: int) -> int:
    every = CHECKPOINT_EVERY_IN_STORE if object_store.is_remote(handle.path) else CHECKPOINT_EVERY
    if version % every == 0:
        _try_checkpoint(handle.path)
    return version


def _try_checkpoint(path: str) -> None:
    try:
        checkpoint(path)
    except Exception:  # only makes opening quicker; the next one does it
        return


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
