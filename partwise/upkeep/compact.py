"""Merges small files: same rows, other files. No revision, so nothing downstream is due."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from partwise import storage
from partwise.ledger.ledger import Ledger
from partwise.ledger.write.commit import Entry
from partwise.ledger.write.lease_holding import holding
from partwise.storage import File, Handle
from partwise.storage.paths import table_path
from partwise.storage.schema import PART
from partwise.upkeep.groups import TARGET, groups
from partwise.upkeep.rewriting import rewrite_rows

#: Seconds. Files younger than this are left alone: their parts are those that late rows come for most often.
OLD = 3600.0
#: Seconds after which what is merged is committed.
SECONDS = 30.0


@dataclass(frozen=True)
class Compacted:
    """Files before and after, and the bytes that were written again."""

    table: str
    before: int
    after: int
    bytes: int


def compact(
    ledger: Ledger,
    warehouse: str,
    table: str,
    now: Callable[[], float],
    older_than: float = OLD,
    target: int = TARGET,
    passed: Callable[[str], None] = lambda point: None,
    seconds: float = SECONDS,
    progress: Callable[[int, int], None] = lambda done, of: None,
    cluster: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda layout: (),
) -> Compacted | None:
    """Merge the small files of one table. None: there is nothing to merge. Raises Busy, Conflict.

    A large table is committed several times on the way, so that what is done stays when somebody stops it. `progress` is
    told how many of its groups of files are. `cluster`: by which columns merged parts are cut together, for columns by
    which each of them is sorted; see `partwise.choose.clustering`.
    """
    with holding(ledger, warehouse, table, now) as held:
        passed("leased")
        at = ledger.current(table)
        if at.version is None:
            return None
        handle = storage.open_at(table_path(warehouse, table, at.generation), at.version)
        if PART not in handle.columns:
            return None  # a dimension: replaced as a whole each time
        written = _written(handle)
        limit = (now() - older_than) * 1000
        chosen = groups(handle.files, lambda file: written[file.path] <= limit, target)
        if not chosen:
            return None
        before, removed, added, done, keys = len(handle.files), list[File](), 0, 0, cluster(handle.keys)
        entry = Entry(table, at.generation, ledger.graph()[table].fingerprint, None, reason="compacted")
        stored = {"kind": "compact", "entry": entry.to_json()}
        while done < len(chosen):
            began, steps, adds, removes = time.monotonic(), list[str](), list[File](), list[File]()
            while done < len(chosen) and (not steps or time.monotonic() - began < seconds):
                progress(done, len(chosen))
                steps.append(uuid.uuid4().hex[:16])
                rewrite_rows(handle, chosen[done], steps[-1], target, None, keys)
                adds += storage.staged(handle.path, steps[-1])
                removes += chosen[done]
                done += 1
            passed("staged")
            version = storage.commit(handle, adds, removes, stored, data_change=False)
            passed("committed")
            ledger.commit(held, entry, version, now(), keep=True)
            for step in steps:
                storage.finish(handle.path, step)
            removed, added = removed + removes, added + len(adds)
            handle = storage.open_at(handle.path, version)
        return Compacted(table, before, before - len(removed) + added, sum(file.size for file in removed))


def _written(handle: Handle) -> dict[str, int]:
    """When each file was written, in milliseconds."""
    found = handle.table.get_add_actions(flatten=True)
    paths, times = found.column("path").to_pylist(), found.column("modification_time").to_pylist()
    return dict(zip(paths, times, strict=True))
