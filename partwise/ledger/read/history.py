"""Everything about one part, for `why`: its state, what it was computed from, its revisions, what it feeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, bindparam, func, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.read.forward_why import ReadVersion, read_by_window, read_versions_of
from partwise.ledger.read.reports import state_of
from partwise.ledger.read.snapshot import Snapshot
from partwise.ledger.records.dimension_changes import changes_since
from partwise.ledger.records.mixtures import Mixture, from_text, mixture_of
from partwise.ledger.records.writers import Writer, writers
from partwise.ledger.runs import due_rows
from partwise.ledger.schema import failure, open_part, part, revision, version
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.mixing import Read
from partwise.plan.model import Cause, Deferred, Failure, WaitsFor
from partwise.plan.next import Need, needs_of, through_helpers
from partwise.plan.planner import as_deferred, held_inputs, waits_for
from partwise.plan.reach import fed, fed_self, first_part
from partwise.tables import Table

_T: BindParameter[str] = bindparam("t")
_P: BindParameter[int] = bindparam("p")
_PART = select(part).where(part.c.table == _T, part.c.part == _P)
_OPEN = select(open_part.c.rows).where(open_part.c.table == _T, open_part.c.part == _P)
_FAILURE = select(failure).where(failure.c.table == _T, failure.c.part == _P)
_REVISIONS = (
    select(revision)
    .where(revision.c.table == _T, revision.c.part == _P)
    .order_by(revision.c.seq.desc())
    .limit(bindparam("n"))
)
_AT = (
    select(revision.c.part, func.max(revision.c.revision))
    .where(
        revision.c.table == bindparam("t"),
        revision.c.part.between(bindparam("a"), bindparam("b")),
        revision.c.seq <= bindparam("s"),
    )
    .group_by(revision.c.part)
)
_VERSION = (
    select(version.c.version)
    .where(version.c.table == bindparam("t"), version.c.seq <= bindparam("s"))
    .order_by(version.c.seq.desc())
    .limit(1)
)
#: Of more parts than this the revisions are not listed one by one.
LISTED = 60


@dataclass(frozen=True, slots=True)
class ComputedFrom:
    """What was read of one table: which parts, at which of their revisions, and what has changed since."""

    table: str
    parts: Parts
    version: int | None
    revisions: dict[int, int]
    changed_since: dict[int, int]  # part -> its revision now


@dataclass(frozen=True, slots=True)
class Revision:
    """`writer`: the task of Airflow that wrote it, if one did."""

    revision: int
    rows: int
    at: float
    reason: str
    writer: Writer | None = None
    as_of: int | None = None
    mixed: tuple[Read, ...] = ()  # inputs that were not up to date at its pin


@dataclass(frozen=True, slots=True)
class Feeds:
    """Parts of a view that read this one; `parts` ends at FOREVER for a dimension."""

    table: str
    parts: Parts


@dataclass(frozen=True, slots=True)
class PartHistory:
    """`state`: as in `reports.PartStatus`, or before-start, expired, waiting (inputs missing), absent (a source)."""

    table: Table
    part: int
    state: str
    start: int | None
    exists: bool
    rows: int | None
    last_updated: float | None
    cause: Cause | None
    since: float | None
    needs: tuple[Need, ...]
    lacks: tuple[Need, ...]  # those with missing parts, in terms of tables that people know
    waits_for: tuple[WaitsFor, ...]
    held: tuple[WaitsFor, ...]  # read at an earlier revision: due, but failed or left to people
    computed_from: tuple[ComputedFrom, ...]
    revisions: tuple[Revision, ...]
    failure: Failure | None
    feeds: tuple[Feeds, ...]
    deferred: Deferred | None = None
    mixture: Mixture | None = None  # it was computed while inputs were not up to date, and not repaired since
    versions: tuple[ReadVersion, ...] = ()  # of forward dimensions
    window_versions: tuple[ReadVersion, ...] = ()  # those that rows of the newest part of its windows read


def history(snapshot: Snapshot, name: str, p: int, most: int = 50) -> PartHistory:
    r, table = snapshot.r, snapshot.graph[name]
    one = {"t": name, "p": p}
    row = r.on.execute(_PART, one).one_or_none()
    opened = r.on.execute(_OPEN, one).scalar()
    failed = r.on.execute(_FAILURE, one).one_or_none()
    due = due_rows(r, name, p, p)
    now = settled(r, name)
    start = now.start
    if table.kind == "view" and start is None:
        start = first_part(table, snapshot.facts)
    state = state_of(snapshot, name, p, row is not None, bool(due), failed is not None, opened is not None)
    if state == "missing":
        if now.floor is not None and p < now.floor:
            state = "expired"
        elif table.kind != "view":
            state = "absent"
        elif start is not None and p < start:
            state = "before-start"
        elif not due:
            state = "waiting"
    needs: tuple[Need, ...] = ()
    if table.kind == "view" and (start is None or p >= start):
        needs = needs_of(snapshot.facts, table, -FOREVER if start is None else start, p)
    look = snapshot.looks.get(name)
    return PartHistory(
        table=table,
        part=p,
        state=state,
        start=start,
        exists=row is not None,
        rows=row.rows if row else opened,
        last_updated=row.updated_at if row else None,
        cause=due[0].cause if due else None,
        since=due[0].since if due else None,
        needs=needs,
        lacks=_lacks(snapshot, table, needs),
        waits_for=tuple(waits_for(snapshot.facts, look, snapshot.looks, p)) if look and state == "blocked" else (),
        held=tuple(
            held_inputs(table, -FOREVER if start is None else start, snapshot.facts, snapshot.looks, Range(p, p))
        )
        if needs
        else (),
        computed_from=tuple(_computed_from(snapshot, table, p, row, needs)) if row and table.kind == "view" else (),
        revisions=tuple(_listed(r, name, r.on.execute(_REVISIONS, one | {"n": most}).all())),
        failure=None
        if failed is None
        else Failure(failed.kind, failed.pin, failed.attempts, failed.retry_at, failed.at, failed.message),
        feeds=tuple(_feeds(snapshot, table, p)),
        deferred=as_deferred(snapshot.facts, look, snapshot.now) if look and state == "deferred" else None,
        mixture=mixture_of(r, name, p) if row else None,
        versions=read_versions_of(r, snapshot.graph, table, p) if row else (),
        window_versions=read_by_window(r, snapshot.graph, table, p) if row else (),
    )


def _listed(r: Reading, name: str, rows: Sequence[Any]) -> Iterator[Revision]:
    by = writers(r, name, [row.seq for row in rows])
    for row in rows:
        mixed = from_text(row.mixed) if row.mixed else ()
        yield Revision(row.revision, row.rows, row.at, row.reason, by.get(row.seq), row.as_of, mixed)


def _lacks(snapshot: Snapshot, table: Table, needs: tuple[Need, ...]) -> tuple[Need, ...]:
    direct = [need for need in needs if need.missing]
    behind = through_helpers(snapshot.graph, snapshot.facts, (n for n in direct if n.table != table.name))
    return tuple([need for need in behind if need.missing] or direct)


def _computed_from(
    snapshot: Snapshot, table: Table, p: int, row: Any, needs: tuple[Need, ...]
) -> Iterator[ComputedFrom]:
    """By today's references; if the definition has changed since, the part is stale and says so."""
    for need in needs:
        seq = row.self_as_of if need.table == table.name else row.as_of
        read, now = {}, {}
        if need.needed.count <= LISTED:
            read = _revisions(snapshot, need.table, need.needed, seq)
            now = _revisions(snapshot, need.table, need.needed, FOREVER)
        if need.table in snapshot.graph.forward:
            read = now = {}  # newer versions count for later parts; which one this part reads is told for itself
        elif need.table in snapshot.graph.timed:
            now = read  # what has changed since concerns other times, or the part is due
        elif table.keyed_by(need.table) and changes_since(snapshot.r, table, need.table, seq).newest(p) <= seq:
            now = read  # no row that this part meets has changed
        stored = snapshot.r.on.execute(_VERSION, {"t": need.table, "s": seq}).scalar()
        changed = {p: number for p, number in now.items() if number != read.get(p)}
        yield ComputedFrom(need.table, need.needed, stored, read, changed)


def _revisions(snapshot: Snapshot, name: str, wanted: Parts, seq: int) -> dict[int, int]:
    rows = snapshot.r.on.execute(_AT, {"t": name, "a": wanted.first, "b": wanted.last, "s": seq})
    return {p: number for p, number in rows if p in wanted}


def _feeds(snapshot: Snapshot, table: Table, p: int) -> Iterator[Feeds]:
    changed = Parts.of(Range(p, p))
    for name in snapshot.graph.consumers.get(table.name, ()):
        view = snapshot.graph[name]
        start = snapshot.facts.start(name)
        if start is None:
            start = first_part(view, snapshot.facts)
        touched = fed(view, -FOREVER if start is None else start, table.name, changed)
        if touched:
            yield Feeds(name, touched)
    if touched := fed_self(table, changed):
        yield Feeds(table.name, touched)
