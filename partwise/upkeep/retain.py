"""Removes parts that are not kept any longer. They are expired then, which is neither missing nor a revision."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from partwise import storage
from partwise.compile.program import ProgramTable
from partwise.ledger.catalog import settled
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.promise import Promise, promise_from, trim
from partwise.ledger.records.files import expired_files, first_open, forget, intake_of
from partwise.ledger.runs import bounds
from partwise.ledger.write.commit import Entry
from partwise.ledger.write.lease_holding import holding
from partwise.ledger.write.leases import Lease
from partwise.parts import FOREVER, Parts
from partwise.storage import File
from partwise.storage.paths import table_path
from partwise.upkeep.clean import Cleaned, clean
from partwise.upkeep.groups import TARGET
from partwise.upkeep.retention import RetentionFacts, Wanted, wanted_floors
from partwise.upkeep.rewriting import rewrite_rows

Clock = Callable[[], float]


@dataclass(frozen=True)
class Retained:
    """Parts `first`..`floor - 1` of a table have expired."""

    table: str
    first: int
    floor: int
    why: str


def floors(ledger: Ledger, definitions: Mapping[str, ProgramTable]) -> dict[str, Wanted]:
    graph = ledger.graph()
    with ledger.database.reading() as r:
        newest = {name: span.hi for name in graph.tables if (span := bounds(r, name)) is not None}
        now = {name: settled(r, name) for name in graph.tables}
        marks = {name: intake_of(r, name).watermark for name in graph.tables}
    known = RetentionFacts(newest.get, lambda name: now[name].start, lambda name: now[name].floor, marks.get)
    return wanted_floors(graph, definitions, known)


def retain(
    ledger: Ledger,
    warehouse: str,
    table: str,
    wanted: Wanted,
    now: Clock,
    passed: Callable[[str], None] = lambda point: None,
) -> Retained | None:
    """Let old parts of a table expire, never one that something pending or not built yet needs. Raises Busy, Conflict."""
    with holding(ledger, warehouse, table, now) as held:
        floor = min(wanted.floor, ledger.may_expire(table, now()))
        with ledger.database.reading() as r:
            there, before = bounds(r, table), settled(r, table).floor
            opened = first_open(r, table)
        floor = floor if opened is None else min(floor, opened)
        if there is None or floor <= there.lo or (before is not None and floor <= before):
            return None
        _expire(ledger, warehouse, held, floor, now, passed)
        return Retained(table, there.lo, floor, wanted.why)


def _expire(ledger: Ledger, warehouse: str, held: Lease, floor: int, now: Clock, passed: Callable[[str], None]) -> None:
    at = ledger.current(held.table)
    entry = Entry(held.table, at.generation, "", None, reason="expired", floor=floor)
    version, steps = None, list[str]()
    path = table_path(warehouse, held.table, at.generation)
    if at.version is not None:
        handle = storage.open_at(path, at.version)
        change = storage.rewrite(handle, Parts.of((-FOREVER, floor - 1)))
        adds: tuple[File, ...] = ()
        if change.mixed:
            steps.append(uuid.uuid4().hex[:16])
            rewrite_rows(handle, change.mixed, steps[0], TARGET, floor)
            adds = storage.staged(path, steps[0])
        passed("staged")
        if change.removed:
            version = storage.commit(handle, adds, change.removed, {"kind": "retain", "entry": entry.to_json()})
    passed("committed")
    ledger.commit(held, entry, version, now(), keep=True)
    for step in steps:
        storage.finish(path, step)


def forget_files(ledger: Ledger, warehouse: str, table: str, is_gone: Callable[[str], bool], now: Clock) -> int:
    """Forget files whose rows have all expired and which are not there any more. Returns how many. Raises Busy.

    One that is still there has to be remembered, or it would be loaded again, and all of its rows quarantined.
    """
    with ledger.database.reading() as r:
        floor = settled(r, table).floor
    if floor is None:
        return 0
    with holding(ledger, warehouse, table, now), ledger.database.writing(now()) as w:
        return forget(w, table, [name for name in expired_files(w, table, floor) if is_gone(name)])


def give_up(ledger: Ledger, history: float, now: float) -> tuple[Promise, int]:
    """Promise as-of reads for so many seconds back and no further; trim the ledger to it.

    The promise comes first: whoever asks for less than is promised gets it, even while files are being removed.
    """
    with ledger.database.writing(now) as w:
        given = promise_from(w, now - history)
    with ledger.database.writing(now) as w:
        return given, trim(w, ledger.graph_at(w).tables, given, ledger.graph_at(w))


def clean_up(ledger: Ledger, warehouse: str, table: str, now: Clock) -> Cleaned:
    """Remove what no promised read of a table needs. Raises Busy."""
    with holding(ledger, warehouse, table, now):
        return clean(ledger, warehouse, table, datetime.fromtimestamp(now(), UTC))
