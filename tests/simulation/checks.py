"""What must be true of a history: independent of the planner, as slow and plain as it likes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.read.audit import due_by_formula
from partwise.ledger.read.audit_report import audit_report
from partwise.ledger.read.formula import due_parts
from partwise.ledger.runs import due_rows, existing
from partwise.ledger.schema import failure, part, revision, version
from partwise.ledger.write.commit import Entry
from partwise.ledger.write.due_painting import frozen_below
from partwise.parts import Parts
from partwise.tables import Graph
from tests.simulation.forward import arrivals
from tests.simulation.policies import check_deferred
from tests.simulation.rolling import newest_of, newest_ready
from tests.simulation.world import content, required, scratch

if TYPE_CHECKING:
    from tests.simulation.history import History


def revisions_at(r: Reading, history: History, entry: Entry, j: int) -> tuple[object, ...]:
    """The revisions of everything that part j read, as of the entry's pin (its own table: as of now)."""
    graph = history.ledger._catalog.graph(r)
    view = graph[entry.table]
    start, pin = int(entry.start or 0), int(entry.pin or 0)
    seen = []
    for name, span in required(view, start, j):
        own = name == entry.table
        newest: dict[int, int] = {}
        rows = r.on.execute(
            select(revision.c.part, revision.c.seq).where(
                revision.c.table == name,
                revision.c.part.between(span.lo, span.hi),
                revision.c.seq <= (r.seq if own else pin),
            )
        )
        for p, seq in rows if name not in graph.forward else ():  # which version follows from when the part was born
            newest[p] = max(newest.get(p, 0), seq)
        seen.append((name, tuple(sorted(newest.items()))))
        if name in graph.bearing or (graph[name].kind == "dimension" and history.forward is not None):
            # When parts were born counts as content does, and that a dimension turned, but they are no revision.
            changed = select(func.max(part.c.changed_seq)).where(part.c.table == name)
            seen.append((name, r.on.execute(changed.where(part.c.part.between(span.lo, span.hi))).scalar()))
    return tuple(seen)


def pending_by_hand(history: History) -> set[tuple[str, int]]:
    """Every part that is due by the formula or requested, and everything that reads one, part by part."""
    ledger = history.ledger
    with ledger.database.reading() as r:
        graph: Graph = ledger._catalog.graph(r)
        pending: set[tuple[str, int]] = set()
        for name in graph.order:
            view = graph[name]
            if view.kind != "view":
                continue
            asked = (row for row in due_rows(r, name) if row.cause.kind in ("requested", "start"))  # no formula knows
            due = {*due_by_formula(r, graph, view), *(j for row in asked for j in range(row.lo, row.hi + 1))}
            pending |= {(name, j) for j in due if not _held(r, name, j)}
            start = settled(r, name).start
            if start is None:
                continue
            low = frozen_below(r, view, settled(r, name))
            for j in existing(r, name, low):
                if any((t, p) in pending for t, span in required(view, start, j) for p in range(span.lo, span.hi + 1)):
                    pending.add((name, j))
        return pending


def _held(r: Reading, name: str, j: int) -> bool:
    """Whether a part failed for good and has earlier content, which its readers go on with."""
    row = r.on.execute(select(failure).where(failure.c.table == name, failure.c.part == j)).one_or_none()
    if row is None or row.retry_at is not None or j not in existing(r, name, j, j):
        return False
    return all(due.seq <= row.pin for due in due_rows(r, name, j, j))


def check_ready(history: History) -> None:
    """What the planner calls ready is what a look at every single part finds: no part too many, none left waiting."""
    if history.retention or history.published:
        return  # frozen parts wait with their inputs, though nothing comes of it
    pending = pending_by_hand(history)
    planned: dict[str, set[int]] = {}
    for step in history.ledger.plan(history.now).steps:
        planned.setdefault(step.table, set()).update(range(step.parts.lo, step.parts.hi + 1))
    with history.ledger.database.reading() as r:
        graph = history.ledger._catalog.graph(r)
        starts = {name: settled(r, name).start for name in graph.tables}
        strict = [name for name in graph.order if graph[name].kind == "view" and graph[name].patience is None]
        wanted = {name: _ready(r, graph, name, starts, pending, history.now) for name in strict}
    check_deferred(history, wanted, planned)


def _ready(
    r: Reading, graph: Graph, name: str, starts: dict[str, int | None], pending: set[tuple[str, int]], now: float
) -> set[int]:
    """Upwards: a part may follow one that is ready, but none that is not what it should be and stays so for now."""
    view, there = graph[name], {t: set(existing(r, t)) for t in (*graph[name].input_names, name)}
    due = {j for row in due_rows(r, name) for j in range(row.lo, row.hi + 1)}
    start = starts[name] if starts[name] is not None else min(due, default=0)
    ready: set[int] = set()
    bad: set[int] = set()
    failed = {j for j in due if _waits_after_failure(r, name, j, now)}
    for j in sorted(due | there[name]):
        read = [(t, p) for t, span in required(view, start, j, starts) for p in range(span.lo, span.hi + 1)]
        waits = any((t, p) in pending for t, p in read if t != name)
        follows_bad = any(p in bad for t, p in read if t == name)
        exists = all(p in there[t] or (t == name and p in ready) for t, p in read)
        if j in due and exists and not waits and not follows_bad and not _waits_after_failure(r, name, j, now):
            ready.add(j)
        elif waits or follows_bad or (j in due and not _held(r, name, j)):
            bad.add(j)
    return newest_ready(ready, there[name], failed) if view.rolling else ready


def _waits_after_failure(r: Reading, name: str, j: int, now: float) -> bool:
    row = r.on.execute(select(failure).where(failure.c.table == name, failure.c.part == j)).one_or_none()
    if row is None or (row.retry_at is not None and row.retry_at <= now):
        return False
    return all(due.seq <= row.pin for due in due_rows(r, name, j, j))


def check_due(history: History) -> None:
    """The painted ranges are what the formula says, at any time."""
    different = history.ledger.audit()
    if different:
        history.problems.append(f"due is not what the formula says: {different}")
    with history.ledger.database.reading() as r:
        graph = history.ledger._catalog.graph(r)
        for name in (n for n in graph.order if graph[n].kind == "view"):
            slow, fast = Parts.single(*due_by_formula(r, graph, graph[name])), due_parts(r, graph, graph[name])
            if fast != slow:
                history.problems.append(f"{name}: in one pass {fast} is due, not {slow}")
        found = [item for item in audit_report(r, graph).problems if item.kind != "mixed"]
        if found and not different:
            history.problems.append(f"the audit finds {found[0].message}")


def check_end(history: History) -> None:
    """Contents equal recomputation from the sources alone; readers see the same as the ledger."""
    check_due(history)
    ledger = history.ledger
    with ledger.database.reading() as r:
        graph = ledger._catalog.graph(r)
        now = {name: settled(r, name) for name in graph.tables}
        starts = {n: s.start for n, s in now.items() if s.start is not None}
        for name, parts in history.landing.items():
            if parts and not history.retention and graph[name].kind == "source" and starts[name] != min(parts):
                history.problems.append(f"{name} starts at {starts[name]}, not at {min(parts)}")
        lows = {n: max(now[n].floor or -(10**6), frozen_below(r, graph[n], now[n]), -(10**6)) for n in graph.tables}
        held = {n: history.storage[n, now[n].generation] for n in graph.tables}
        frozen = {n: (lows[n], held[n].at(held[n].version)) for n in graph.tables} if history.retention else {}
        order = arrivals(history, r) if history.model.graph.forward else None
        expected = scratch(history.model, history.landing, starts, frozen, order)
        for name in graph.order:
            low, stored = lows[name], held[name]
            actual = {p: v for p, v in stored.at(stored.version).items() if p >= low}
            wanted = {p: v for p, v in expected.get(name, {}).items() if p >= low}
            if graph[name].rolling:
                actual, wanted = stored.at(stored.version), newest_of(wanted)
            if actual != wanted and not history.retention:
                history.problems.append(f"{name}: {_difference(actual, wanted)}")
            elif history.retention and any(actual.get(p, v) != v for p, v in wanted.items()):
                history.problems.append(f"{name} after retention: {_difference(actual, wanted)}")
            in_ledger = dict(map(tuple, r.on.execute(select(part.c.part, part.c.digest).where(part.c.table == name))))
            if {p: content(v).digest for p, v in actual.items()} != {p: d for p, d in in_ledger.items() if p >= low}:
                history.problems.append(f"{name}: the ledger does not know what is stored")
            if set(existing(r, name)) != set(in_ledger):
                history.problems.append(f"{name}: runs and parts differ")
        _check_as_of(history, r)


def _difference(actual: dict[int, object], wanted: dict[int, object]) -> str:
    parts = sorted({p for p in {*actual, *wanted} if actual.get(p, "-") != wanted.get(p, "-")})
    return ", ".join(f"[{p}] is {actual.get(p, 'missing')}, not {wanted.get(p, 'there')}" for p in parts[:4])


def _check_as_of(history: History, r: Reading) -> None:
    """A table read at the version of a sequence holds what the ledger said at that sequence."""
    rows = list(r.on.execute(select(version).order_by(version.c.table, version.c.seq)))
    for before, after in pairwise(rows):
        if (
            before.table == after.table
            and before.generation == after.generation
            and after.version != before.version + 1
        ):
            history.problems.append(f"{before.table}: version {after.version} after {before.version}")
    for row in history.rng.sample(rows, min(5, len(rows))):
        stored = history.storage[row.table, row.generation].at(row.version)
        said: dict[int, tuple[int, str]] = {}
        for p, seq, digest in r.on.execute(
            select(revision.c.part, revision.c.seq, revision.c.digest).where(
                revision.c.table == row.table, revision.c.seq <= row.seq
            )
        ):
            said[p] = max(said.get(p, (0, "")), (seq, digest))
        for p, value in stored.items():
            if said.get(p, (0, "nothing"))[1] != content(value).digest:
                history.problems.append(f"{row.table}[{p}] as of {row.seq} is not what the ledger said")
