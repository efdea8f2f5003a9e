"""`partwise audit`: is the ledger in order, and was what it published one moment? From the ledger alone.

- versions of a table follow one another without gaps, and times grow with the sequence
- what is due is what the formula says, and what exists is what has rows
- parts that are mixed, and nobody is going to repair
- how often a part was superseded at its commit: an input had changed while it was computed
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import le

from sqlalchemy import bindparam, case, func, select, text

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.read.as_of import sequence_at
from partwise.ledger.read.formula import due_parts, mark, read_rows, runs
from partwise.ledger.records.mixtures import Mixture, mixtures
from partwise.ledger.runs import due_rows, existing
from partwise.ledger.schema import catalog, have, part, repin, revision, version
from partwise.parts import FOREVER, Parts, range_text
from partwise.plan.next import parts_text
from partwise.plan.reach import EVERYTHING, fed, fed_self
from partwise.tables import Graph, Table

_VERSIONS = 'SELECT "table", seq, generation, version FROM version WHERE {1} ORDER BY "table", seq'
_NUMBERS = 'SELECT version FROM version WHERE "table" = {0} ORDER BY seq'
_BEFORE = (
    select(version.c.generation, version.c.version)
    .where(version.c.table == bindparam("t"), version.c.seq < bindparam("s"))
    .order_by(version.c.seq.desc())
    .limit(1)
)
_BY_TIME = "SELECT seq FROM version WHERE at > {0} ORDER BY at"
_TIMES = 'SELECT "table", seq, at FROM version WHERE at > {0} ORDER BY seq'
# Revisions come first: each finds its version by the key.
_APART = text(
    'SELECT DISTINCT r.seq FROM revision AS r CROSS JOIN version AS v WHERE r."table" = :t AND r.at > :since '
    'AND v."table" = r."table" AND v.seq = r.seq AND r.at <> v.at LIMIT 20'
)
_AHEAD = text('SELECT "table", seq FROM version WHERE seq > (SELECT seq FROM clock) LIMIT 20')
_CHANGED = select(revision.c.part).where(revision.c.table == bindparam("t"), revision.c.at > bindparam("since"))
_REDEFINED = select(catalog.c.table).where(catalog.c.table == bindparam("t"), catalog.c.defined_seq > bindparam("s"))
_REPINNED = select(repin.c.seq).where(
    repin.c.table.in_(bindparam("names", expanding=True)), repin.c.at > bindparam("since")
)
_COUNT = select(func.sum(have.c.hi - have.c.lo + 1)).where(have.c.table == bindparam("t"))
# Runs of what exists, each with the number of parts that have rows: counted along the key.
_RECORDS = (
    'SELECT h.lo, h.hi, (SELECT COUNT(*) FROM part AS p WHERE p."table" = h."table" AND p.part BETWEEN h.lo AND h.hi) '
    'FROM have AS h WHERE h."table" = {0} ORDER BY h.lo'
)
_RECORDED = 'SELECT part FROM part WHERE "table" = {0} ORDER BY part'
_PARTS = select(func.count()).where(part.c.table == bindparam("t"))
_PUBLISHED = select(func.count(), func.sum(case((revision.c.superseded.is_(True), 1), else_=0))).where(
    revision.c.table == bindparam("t"), revision.c.as_of.is_not(None)
)
_PUBLISHED_SINCE = _PUBLISHED.where(revision.c.at > bindparam("since"))
#: Causes that leave no trace in the records of parts.
_ASKED = ("requested", "start")


@dataclass(frozen=True, slots=True)
class Trouble:
    """`kind`: gap, time, due, exists or mixed. `message` is meant for people."""

    kind: str
    table: str
    message: str


@dataclass(frozen=True, slots=True)
class ViewAudit:
    view: str
    parts: int
    due: int
    mixed: tuple[Mixture, ...]
    #: Revisions on record, and those of them of which an input had changed when they were committed.
    published: int
    superseded_at_commit: int


@dataclass(frozen=True, slots=True)
class Audit:
    problems: tuple[Trouble, ...]
    views: tuple[ViewAudit, ...]


def audit_report(r: Reading, graph: Graph, only: Collection[str] | None = None, since: float | None = None) -> Audit:
    """`only`: of these tables. `since`: only of what happened after a moment."""
    wanted = [name for name in graph.order if only is None or name in only]
    found = [item for item in _history(r, wanted, since) if item.table in wanted]
    views = []
    for name in wanted:
        table = graph[name]
        if since is None:
            found += _existence(r, table)
        if table.kind == "view":
            found += _due(r, graph, table, since)
            views.append(_view(r, table, since))
            found += _left(r, graph, views[-1])
    return Audit(tuple(found), tuple(views))


def _history(r: Reading, wanted: Collection[str], since: float | None) -> Iterator[Trouble]:
    if since is None:
        for name in wanted:
            yield from _gaps_of(r, name)
    else:
        yield from _gaps(r, read_rows(r, _VERSIONS, since, column=f"at > {mark(r)}"))
    yield from _backwards(r, -1.0 if since is None else since)
    for name in wanted:
        for (seq,) in r.on.execute(_APART, {"t": name, "since": -1.0 if since is None else since}):
            yield Trouble("time", name, f"{name}: a revision and its version, recorded at {seq}, have different times")
    for name, seq in r.on.execute(_AHEAD):
        yield Trouble("time", name, f"{name}: sequence {seq} is ahead of the ledger's clock")


def _gaps_of(r: Reading, name: str) -> Iterator[Trouble]:
    # Almost always one number follows another: nothing else is read then.
    numbers = [number for (number,) in read_rows(r, _NUMBERS, name)]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        yield from _gaps(r, read_rows(r, _VERSIONS, name, column=f'"table" = {mark(r)}'))


def _gaps(r: Reading, rows: list[tuple[str, int, int, int]]) -> Iterator[Trouble]:
    last: tuple[str, int, int] | None = None
    for name, seq, generation, number in rows:
        if last is None or last[0] != name:
            before = r.on.execute(_BEFORE, {"t": name, "s": seq}).one_or_none()
            last = None if before is None else (name, before.generation, before.version)
        if last is not None and last[1] == generation and number != last[2] + 1:
            yield Trouble("gap", name, f"{name}: version {number}, recorded at {seq}, follows version {last[2]}")
        last = (name, generation, number)


def _backwards(r: Reading, since: float) -> Iterator[Trouble]:
    by_time = [seq for (seq,) in read_rows(r, _BY_TIME, since)]
    if all(map(le, by_time, islice(by_time, 1, None))):
        return
    newest = -1.0
    for name, _, at in read_rows(r, _TIMES, since):
        if at < newest:
            yield Trouble("time", name, f"{name}: a version has an earlier time than a sequence before it")
        newest = max(newest, at)


def _existence(r: Reading, table: Table) -> Iterator[Trouble]:
    spans = read_rows(r, _RECORDS, table.name)
    counted = sum(n for _, _, n in spans)
    if all(n == hi - lo + 1 for lo, hi, n in spans) and counted == r.on.execute(_PARTS, {"t": table.name}).scalar():
        return
    there, rows = existing(r, table.name), Parts.of(*runs([p for (p,) in read_rows(r, _RECORDED, table.name)]))
    shown = parts_text((there - rows) | (rows - there), table.length)
    yield Trouble("exists", table.name, f"{table.name}[{shown}]: what exists is not what has a record")


def _due(r: Reading, graph: Graph, view: Table, since: float | None) -> Iterator[Trouble]:
    within = EVERYTHING if since is None else _affected(r, view, since)
    if not within:
        return
    rows = due_rows(r, view.name, within.first, within.last)
    ledger = Parts.of(*((row.lo, row.hi) for row in rows)) & within
    asked = Parts.of(*((row.lo, row.hi) for row in rows if row.cause.kind in _ASKED))
    formula = due_parts(r, graph, view, within)
    for parts, what in (
        (formula - ledger, "is due, but the ledger does not say so"),
        (ledger - formula - asked, "is said to be due without a cause"),
    ):
        if parts:
            again = "`partwise reconcile` repairs it"
            yield Trouble("due", view.name, f"{view.name}[{parts_text(parts, view.length)}] {what}; {again}")


def _affected(r: Reading, view: Table, since: float) -> Parts:
    """Parts of a view that changes since a given time may have made due or computed: of rows, of the definition, of which
    version of a dimension counts."""
    if r.on.execute(_REDEFINED, {"t": view.name, "s": sequence_at(r, since)}).first() is not None:
        return EVERYTHING
    if r.on.execute(_REPINNED, {"names": view.input_names, "since": since}).first() is not None:
        return EVERYTHING
    now, found = settled(r, view.name), Parts()
    start = -FOREVER if now.start is None else now.start
    for name in (*view.input_names, view.name):
        changed = Parts.single(*r.on.execute(_CHANGED, {"t": name, "since": since}).scalars())
        if changed:
            found |= (changed | fed_self(view, changed)) if name == view.name else fed(view, start, name, changed)
    return found


def _view(r: Reading, view: Table, since: float | None) -> ViewAudit:
    due = Parts.of(*((row.lo, row.hi) for row in due_rows(r, view.name)))
    statement = _PUBLISHED if since is None else _PUBLISHED_SINCE
    published, superseded = r.on.execute(statement, {"t": view.name, "since": since}).one()
    return ViewAudit(
        view=view.name,
        parts=int(r.on.execute(_COUNT, {"t": view.name}).scalar() or 0),
        due=due.count,
        mixed=tuple(mixtures(r, view.name)),
        published=int(published),
        superseded_at_commit=int(superseded or 0),
    )


def _left(r: Reading, graph: Graph, view: ViewAudit) -> Iterator[Trouble]:
    """Mixed parts that are not due: until what they read is repaired, nothing computes them again."""
    if not view.mixed:
        return
    due = Parts.of(*((row.lo, row.hi) for row in due_rows(r, view.view)))
    for item in view.mixed:
        if item.part not in due:
            yield Trouble("mixed", view.view, mixture_line(graph, item))


def mixture_line(graph: Graph, item: Mixture) -> str:
    """`c[10:05] mixed: read a[10:05] as of 118, which was not up to date`."""
    table = graph[item.table]
    read = [
        f"{name}[{range_text(Parts.of((lo, hi)).ranges[0], graph[name].length)}]" if name in graph.tables else name
        for name, lo, hi in item.reads
    ]
    more = f" and {len(read) - 3} more" if len(read) > 3 else ""
    where = parts_text(Parts.single(item.part), table.length)
    return (
        f"{table.name}[{where}] is mixed: it read {', '.join(read[:3])}{more} as of {item.as_of}, not up to date then"
    )
