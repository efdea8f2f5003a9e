"""What people ask the ledger: how are the tables, how are the parts of one, what has changed.

Every query goes by an index, and a page of parts costs the same whether there are ten or a million.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, func, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.read.snapshot import Snapshot
from partwise.ledger.records.files import quarantine_counts
from partwise.ledger.records.mixtures import mixed_counts, mixtures
from partwise.ledger.records.repairs import MeasuredRepair, all_outcomes
from partwise.ledger.runs import due_rows
from partwise.ledger.schema import arrival, catalog, failure, have, open_part, part, revision
from partwise.parts import FOREVER, Parts
from partwise.plan.model import Deferred, parts_of_due
from partwise.plan.planner import as_deferred
from partwise.plan.reach import FAR, first_part
from partwise.plan.refresh import Refreshed
from partwise.plan.urgency import Lag, lags
from partwise.tables import Table

_HAVE = select(have.c.table, func.sum(have.c.hi - have.c.lo + 1), func.min(have.c.lo), func.max(have.c.hi)).group_by(
    have.c.table
)
_FAILED = (
    select(failure.c.table, func.count())
    .join(catalog, catalog.c.table == failure.c.table)
    .where(catalog.c.retired.is_(False))
    .group_by(failure.c.table)
)
_LATE = select(arrival.c.table, func.sum(arrival.c.rows)).where(arrival.c.late).group_by(arrival.c.table)
_ROWS = select(part.c.table, func.count(), func.sum(part.c.rows)).group_by(part.c.table)
_CATALOG = select(catalog.c.table, catalog.c.updated_at, catalog.c.frozen_hits)
_PAGE = (
    select(part.c.part, part.c.revision, part.c.rows, part.c.updated_at)
    .where(part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b")))
    .order_by(part.c.part.desc())
    .limit(bindparam("n"))
)
_OPEN = (
    select(open_part.c.part, open_part.c.rows)
    .where(open_part.c.table == bindparam("t"), open_part.c.part.between(bindparam("a"), bindparam("b")))
    .order_by(open_part.c.part.desc())
    .limit(bindparam("n"))
)
_FAILED_PARTS = (
    select(failure.c.part)
    .where(failure.c.table == bindparam("t"), failure.c.part.between(bindparam("a"), bindparam("b")))
    .order_by(failure.c.part.desc())
    .limit(bindparam("n"))
)
_CHANGES = (
    select(revision.c.part, revision.c.revision, revision.c.rows, revision.c.at, revision.c.reason)
    .where(revision.c.table == bindparam("t"), revision.c.at > bindparam("since"))
    .order_by(revision.c.at.desc(), revision.c.part.desc())
    .limit(bindparam("n"))
)


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table. `missing`, `stale`, `blocked` and `failed` count parts; of a source, `late` counts the rows that
    have come for parts that existed already, and `quarantined` those that are quarantined."""

    table: Table
    parts: int
    first: int | None
    last: int | None
    missing: int
    stale: int
    blocked: int
    manual: int
    deferred: int  # ready, but their view refreshes later
    refresh: Deferred | None  # until when
    refreshed: Refreshed | None  # when it was refreshed last; of views with a policy
    failed: int
    held: int  # failed parts whose earlier content is read meanwhile
    late: int
    quarantined: int
    last_updated: float | None
    start: int | None
    frozen_hits: int  # late changes that could not reach expired parts
    expired: int  # parts that were removed because they are not kept any longer
    mixed: int  # parts computed while inputs were not up to date, and not repaired since
    could_start: int | None  # a view: the earlier first part that its inputs would allow by now
    lag: Lag | None = None  # of views with `freshness`: what is due for them, and by when
    could_go_on: int | None = None  # a view that began far before the rows and cannot get to them: where they are
    repairs: tuple[MeasuredRepair, ...] = ()  # of large parts: what was chosen, foreseen and measured


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part. `state`: fresh, stale, missing, deferred, blocked, failed, manual, or open (rows, but not closed)."""

    part: int
    state: str
    revision: int | None = None
    rows: int | None = None
    last_updated: float | None = None
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Parts, newest first. `more`: there are older ones."""

    parts: tuple[PartStatus, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Change:
    """The newest change of a part since the time requested, and how many there were."""

    part: int
    revision: int
    rows: int
    at: float
    reason: str
    times: int


def row_counts(r: Reading) -> dict[str, tuple[int, int]]:
    """Parts and rows of every table that has any."""
    return {row[0]: (int(row[1]), int(row[2])) for row in r.on.execute(_ROWS)}


def tables(snapshot: Snapshot) -> list[TableStatus]:
    """Every table, each after what it reads."""
    r = snapshot.r
    runs = {row[0]: (int(row[1]), row[2], row[3]) for row in r.on.execute(_HAVE)}
    failed = failed_counts(r)
    known = {row.table: row for row in r.on.execute(_CATALOG)}
    late = {row[0]: int(row[1]) for row in r.on.execute(_LATE)}
    blends, repaired = mixed_counts(r), all_outcomes(r)
    late_views = lags(snapshot.graph, snapshot.looks)
    aside = {name: sum(counts.values()) for name, counts in quarantine_counts(r).items()}
    found = []
    for name in snapshot.graph.order:
        table = snapshot.graph[name]
        count, first, last = runs.get(name, (0, None, None))
        look = snapshot.looks.get(name)
        due = parts_of_due(look.due) if look else Parts()
        stale = due & snapshot.facts.existing(name, due.first, due.last) if due else due
        waiting = due - look.ready - look.manual - look.failed - look.deferred if look else due
        row = known[name]
        found.append(
            TableStatus(
                table=table,
                parts=count,
                first=first,
                last=last,
                missing=_missing(snapshot, table, count, first, last, due),
                stale=stale.count,
                blocked=waiting.count,
                manual=look.manual.count if look else 0,
                deferred=look.deferred.count if look else 0,
                refresh=as_deferred(snapshot.facts, look, snapshot.now) if look and look.deferred else None,
                refreshed=snapshot.facts.refreshed().get(name, Refreshed()) if table.refresh is not None else None,
                failed=failed.get(name, 0),
                held=(look.held & look.failed).count if look else 0,
                late=late.get(name, 0),
                quarantined=aside.get(name, 0),
                last_updated=row.updated_at,
                start=settled(r, name).start if table.kind == "view" else None,
                frozen_hits=row.frozen_hits,
                expired=_expired(snapshot, table),
                mixed=blends.get(name, 0),
                could_start=_could_start(snapshot, table),
                lag=late_views.get(name),
                could_go_on=could_go_on(snapshot, table),
                repairs=tuple(repaired.get(name, ())),
            )
        )
    return found


def failed_counts(r: Reading) -> dict[str, int]:
    """How many parts of each table have failed, and have not been built since."""
    return {row[0]: row[1] for row in r.on.execute(_FAILED)}


def _missing(snapshot: Snapshot, table: Table, count: int, first: int | None, last: int | None, due: Parts) -> int:
    """Parts that are not there, between the first that should be and the newest that is or could be."""
    if table.kind == "dimension":
        return 1 - count
    if table.rolling:  # it never has but its newest part
        return int(bool(due) and (last is None or due.last > last))
    now = snapshot.facts.settled(table.name)
    lows = [p for p in (first, due.first if due else None) if p is not None]
    highs = [p for p in (last, due.last if due else None) if p is not None]
    if not highs:
        return 0
    low = min(lows) if now.start is None else now.start
    if now.floor is not None:
        low = max(low, now.floor)
    return max(0, max(highs) - low + 1 - count)


def _expired(snapshot: Snapshot, table: Table) -> int:
    now = snapshot.facts.settled(table.name)
    return 0 if table.rolling or now.floor is None or now.start is None else max(0, now.floor - now.start)


def _could_start(snapshot: Snapshot, table: Table) -> int | None:
    """`earliest` was settled when the first part was built; older source parts may have come since."""
    now = snapshot.facts.settled(table.name)
    if table.kind != "view" or table.start.rule != "earliest" or now.start is None or now.floor is not None:
        return None
    possible = first_part(table, snapshot.facts)
    return possible if possible is not None and possible < now.start else None


def could_go_on(snapshot: Snapshot, view: Table) -> int | None:
    """A view that reads its own past waits for ever at a gap that nobody fills: where it could begin behind it."""
    start = snapshot.facts.settled(view.name).start
    if view.kind != "view" or not view.self_references or start is None:
        return None
    there = snapshot.facts.existing(view.name, start, FOREVER)
    j = (there.last if there else start - 1) + 1
    found = None
    for item in view.partitioned_inputs:
        if item.reference is None or item.table == view.name:
            continue
        lo, hi = item.reference.requires(j)
        later = snapshot.facts.existing(item.table, hi + 1, FOREVER)
        if later and snapshot.facts.existing(item.table, lo, hi).count <= hi - lo:
            begins = item.reference.lo.first_reaching(later.first)
            found = begins if found is None else max(found, begins)
    return found if found is not None and found - j >= FAR else None


def parts(snapshot: Snapshot, name: str, lo: int = -FOREVER, hi: int = FOREVER, limit: int = 20) -> Page:
    """The newest parts of a table between lo and hi: existing, due, and those of a source that are still open."""
    r = snapshot.r
    window = {"t": name, "a": lo, "b": hi, "n": limit + 1}
    rows = {row.part: row for row in r.on.execute(_PAGE, window)}
    opened = {row.part: row.rows for row in r.on.execute(_OPEN, window)}
    due = parts_of_due(due_rows(r, name, lo, hi)).within(lo, hi)
    # A source part that failed its checks may have no rows at all.
    failed = set(r.on.execute(_FAILED_PARTS, window).scalars())
    newest = sorted({*rows, *opened, *failed, *_newest(due, limit + 1)}, reverse=True)
    chosen = newest[:limit]
    if not chosen:
        return Page((), False)
    found = []
    blends = {item.part for item in mixtures(r, name)}
    for p in chosen:
        state = state_of(snapshot, name, p, p in rows, p in due, p in failed, p in opened)
        row = rows.get(p)
        if row is None:
            found.append(PartStatus(p, state, rows=opened.get(p)))
        else:
            found.append(PartStatus(p, state, row.revision, row.rows, row.updated_at, p in blends))
    return Page(tuple(found), len(newest) > limit)


def _newest(wanted: Parts, count: int) -> list[int]:
    found: list[int] = []
    for span in reversed(wanted.ranges):
        found += range(span.hi, max(span.lo, span.hi - count + len(found) + 1) - 1, -1)
        if len(found) >= count:
            break
    return found[:count]


def state_of(snapshot: Snapshot, name: str, p: int, exists: bool, due: bool, failed: bool, opened: bool) -> str:
    look = snapshot.looks.get(name)
    if failed:
        return "failed"
    if due and look is not None and p in look.manual:
        return "manual"
    if due and look is not None and p in look.deferred:
        return "deferred"
    if due and look is not None and p not in look.ready:
        return "blocked"
    if exists:
        return "stale" if due else "fresh"
    return "open" if opened else "missing"


def changes_since(snapshot: Snapshot, name: str, since: float, limit: int = 1000) -> tuple[list[Change], bool]:
    """Parts whose content changed after a moment, newest change first; and whether there are more."""
    rows = snapshot.r.on.execute(_CHANGES, {"t": name, "since": since, "n": limit + 1}).all()
    times: dict[int, int] = {}
    for row in rows[:limit]:
        times[row.part] = times.get(row.part, 0) + 1
    newest: dict[int, Change] = {}
    for row in rows[:limit]:
        if row.part not in newest:
            newest[row.part] = Change(row.part, row.revision, row.rows, row.at, row.reason, times[row.part])
    return list(newest.values()), len(rows) > limit
