"""The planner: what is due and ready becomes steps, in dependency order, each with its reason.

Missing and stale are one thing here: due. A part is ready when it is due, everything it requires
exists, and nothing it requires is pending. Pending is transitive: a part is pending while it is due
or while anything it reads is pending, however far upstream, because its content may still change.
So every affected part is computed once, after all of its inputs, whatever the shape of the graph.

The cost is that of the due ranges and what lies downstream of them; parts that are fine are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from partwise.parts import FOREVER, Parts, Range, range_text
from partwise.plan import refresh
from partwise.plan.model import (
    Blocked,
    Deferred,
    Due,
    Facts,
    Failure,
    Plan,
    Step,
    StepKind,
    WaitsFor,
    Window,
    parts_of_due,
)
from partwise.plan.next import needs_of_parts
from partwise.plan.reach import fed, inputs_exist, read_by, required_of, self_closure, with_predecessors
from partwise.plan.refresh import Refreshed, WaitingParts
from partwise.tables import Graph, Table


@dataclass(frozen=True)
class Look:
    """What the planner found out about one table."""

    table: Table
    start: int
    due: tuple[Due, ...]
    ready: Parts  # to be computed now, upwards
    pending: Parts  # content may still change
    barred: Parts  # not to be computed now, for reasons outside the step
    failed: Parts
    manual: Parts
    held: Parts  # due, but left as published until something else happens; their readers go on with that
    deferred: Parts  # ready but for the view's refresh policy
    delayed: Parts  # pending because of deferred parts, here or further up
    fires: str | None  # why the policy releases parts now that have not been released before


def look_around(graph: Graph, facts: Facts, now: float, only: Collection[str] | None = None) -> dict[str, Look]:
    """Look at every table that has something due or lies downstream of it, in dependency order.

    With `only`, just what is needed to know the state of these tables.
    """
    due, failures = facts.due(), facts.failures()
    scope = None if only is None else graph.upstream(only)
    heap: list[tuple[int, str]] = []
    queued: set[str] = set()

    def visit(name: str) -> None:
        if name in graph.tables and name not in queued and (scope is None or name in scope):
            queued.add(name)
            heappush(heap, (graph.rank[name], name))

    for name in due:
        visit(name)
    facts.expect(queued, (window for name in queued for window in _windows(graph[name], due[name])))
    looks: dict[str, Look] = {}
    while heap:
        _, name = heappop(heap)
        look = _look(graph, facts, now, graph[name], due.get(name, []), looks, failures.get(name, {}))
        if look is None:
            continue
        looks[name] = look
        if look.pending:
            for consumer in graph.consumers.get(name, ()):
                visit(consumer)
            facts.expect(queued)
    return looks


def _windows(table: Table, rows: list[Due]) -> Iterator[Window]:
    """What is asked about a table with these due ranges: whether they exist, and what they read."""
    first, last = rows[0].lo, rows[-1].hi
    yield table.name, first, last
    for item in dict.fromkeys((*table.initial, *table.inputs)):
        lo, hi = read_by(item, first, last)
        yield item.table, lo, last if item.table == table.name else hi


def _look(
    graph: Graph,
    facts: Facts,
    now: float,
    table: Table,
    rows: list[Due],
    looks: Mapping[str, Look],
    failures: Mapping[int, Failure],
) -> Look | None:
    due = parts_of_due(rows)
    start = facts.start(table.name)
    if start is None:
        if not due:
            return None  # nothing built, nothing to build
        start = due.first
    incoming = _incoming(table, start, looks)
    delayed = _delayed(table, start, looks)
    manual = _manual(table, rows, facts)
    failed = _failed(rows, failures, now)
    held = manual | _published(failed, failures, table, facts)
    # Patience does not run while an input is deferred: its policy bounds how long that takes.
    patient = incoming - (_out_of_patience(table, rows, now, graph.behind.get(table.name, 0.0)) - delayed)
    candidates = inputs_exist(table, start, due - failed - manual - patient, facts)
    pending = (due - held) | incoming
    barred = patient | failed | manual
    ready = candidates
    last = start
    if table.self_references:
        newest = facts.newest(table.name)
        last = max([start if newest is None else newest, *(row.hi for row in rows)])
        barred |= self_closure(table, pending - candidates, last)
        ready -= barred
        if ready:
            # Of its own table only what ready parts read matters, however long its history is.
            first = min(r.lo.at(ready.first) for r in table.self_references)
            ready = with_predecessors(table, start, ready, facts.existing(table.name, first, ready.last))
    if table.rolling and failed:
        # What is shown may be repaired; older parts do not take the place of one that failed.
        ready = ready.within(failed.last + 1, FOREVER) | (ready & facts.existing(table.name, -FOREVER, FOREVER))
    if table.rolling and ready:
        # Only the newest part is shown: those before it will never be built.
        ready = Parts.single(ready.last)
        rows = [replace(row, lo=max(row.lo, ready.last)) for row in rows if row.hi >= ready.last]
        due = parts_of_due(rows)
        pending, manual, failed, held = ((p.within(ready.last, FOREVER)) for p in (pending, manual, failed, held))
    deferred, fired = _deferred(graph, table, rows, ready, facts, now)
    if deferred and table.refresh is not None and table.refresh.readers == "published":
        published = deferred & facts.existing(table.name, deferred.first, deferred.last)
        held |= published
        pending = (due - held) | incoming
    delayed |= deferred - held
    if table.self_references:
        pending |= self_closure(table, pending, last)
        delayed |= self_closure(table, delayed, last)
    return Look(
        table, start, tuple(rows), ready - deferred, pending, barred, failed, manual, held, deferred, delayed, fired
    )


def _deferred(
    graph: Graph, table: Table, rows: list[Due], ready: Parts, facts: Facts, now: float
) -> tuple[Parts, str | None]:
    """Ready parts that wait for the view's refresh policy, or why it releases them now.

    Released are parts that were due by the last firing, that somebody requested, and that follow from the view's own
    helpers or earlier parts, which were released themselves.
    """
    policy = table.refresh
    if policy is None or not ready:
        return Parts(), None
    known = facts.refreshed().get(table.family, Refreshed())
    free = Parts.of(*((row.lo, row.hi) for row in rows if _is_released(graph, table, row, known)))
    if policy.new == "at once":
        free |= ready - facts.existing(table.name, ready.first, ready.last)
    waiting = ready - free
    if not waiting:
        return waiting, None
    why = refresh.fires(policy, _waiting(rows, waiting), known, now)
    if why is not None:
        return Parts(), why
    if table.self_references and (released := ready & free):
        # What is released reads earlier parts of its own table: these go with it.
        waiting = waiting.within(released.last + 1, FOREVER)
    return waiting, None


def _is_released(graph: Graph, table: Table, row: Due, known: Refreshed) -> bool:
    if row.cause.kind == "requested" or (known.fired_at is not None and row.since <= known.fired_at):
        return True
    cause = graph.tables.get(row.cause.table or "")
    return row.cause.kind == "input" and cause is not None and cause.family == table.family


def _waiting(rows: Iterable[Due], parts: Parts) -> WaitingParts:
    return WaitingParts(parts.count, min(row.since for row in rows if parts.within(row.lo, row.hi)))


def _delayed(table: Table, start: int, looks: Mapping[str, Look]) -> Parts:
    """Parts that read something which waits for a refresh policy, here or further up."""
    found = Parts()
    for name in table.input_names:
        if name in looks and looks[name].delayed:
            found |= fed(table, start, name, looks[name].delayed)
    return found


def _incoming(table: Table, start: int, looks: Mapping[str, Look]) -> Parts:
    """Parts that read something pending in another table."""
    found = Parts()
    for name in table.input_names:
        if name in looks:
            found |= fed(table, start, name, looks[name].pending)
    return found


def _manual(table: Table, rows: list[Due], facts: Facts) -> Parts:
    """Stale parts that the view's owner wants to repair manually. Their published content goes on to be used."""
    if table.repair != "manual" or not rows:
        return Parts()
    asked = parts_of_due(row for row in rows if row.cause.kind != "requested")
    return asked & facts.existing(table.name, asked.first, asked.last) if asked else asked


def _failed(rows: list[Due], failures: Mapping[int, Failure], now: float) -> Parts:
    """Parts that failed and are not to be tried again yet. A newer cause is a new chance."""
    if not failures:
        return Parts()
    held = []
    for row in rows:
        for part, failure in failures.items():
            waits = failure.retry_at is None or failure.retry_at > now
            if row.lo <= part <= row.hi and row.seq <= failure.pin and waits:
                held.append(part)
    return Parts.single(*held)


def _published(failed: Parts, failures: Mapping[int, Failure], table: Table, facts: Facts) -> Parts:
    """Failed parts that are not tried again by themselves, but have earlier content, which goes on to be used."""
    given_up = Parts.single(*(p for p in failed if failures[p].retry_at is None)) if failed else failed
    return given_up & facts.existing(table.name, given_up.first, given_up.last) if given_up else given_up


def _out_of_patience(table: Table, rows: list[Due], now: float, behind: float) -> Parts:
    """Due for so long that pending inputs no longer hold them back, as long as they exist.

    Without this an input that changes during every run would keep its readers waiting for ever. What refresh policies
    take (`behind`) comes on top: they make inputs wait on purpose.
    """
    if table.patience is None:
        return Parts()
    return parts_of_due(row for row in rows if row.since + table.patience + behind <= now)


def make_plan(graph: Graph, facts: Facts, now: float, only: Collection[str] | None = None) -> Plan:
    """What would run now, in order, each step with its reason; what is blocked and by what."""
    looks = look_around(graph, facts, now, only)
    wanted = [look for name, look in looks.items() if only is None or name in only]
    facts.expect(windows=((look.table.name, f.first, f.last) for look in wanted if (f := _following(look))))
    steps = [step for look in wanted for step in steps_of(graph, facts, looks, look, look.ready)]
    manual = [step for look in wanted for step in steps_of(graph, facts, looks, look, look.manual)]
    blocked = [found for look in wanted for found in _blocked(facts, look, looks)]
    later = {look.table.name: _may_follow(facts, look) for look in wanted}
    held = {look.table.name: look.held for look in wanted if look.held}
    later = {name: parts for name, parts in later.items() if parts}
    deferred = [as_deferred(facts, look, now) for look in wanted if look.deferred]
    return Plan(tuple(steps), tuple(blocked), tuple(manual), later, held, tuple(deferred), graph.allowed)


def as_deferred(facts: Facts, look: Look, now: float) -> Deferred:
    """What waits for the refresh policy of a table, and until when."""
    policy = look.table.refresh
    assert policy is not None
    known, waiting = facts.refreshed().get(look.table.family, Refreshed()), _waiting(look.due, look.deferred)
    soonest = refresh.fires_at(policy, waiting, known, now)
    also = tuple(refresh.waits_for(policy, waiting, known))
    return Deferred(look.table.name, look.deferred, waiting.oldest, soonest, also)


def _may_follow(facts: Facts, look: Look) -> Parts:
    """Existing parts that are not due themselves, but will be if what they read changes."""
    follow = _following(look)
    return follow & facts.existing(look.table.name, follow.first, follow.last) if follow else follow


def _following(look: Look) -> Parts:
    return look.pending - parts_of_due(look.due)


def steps_of(graph: Graph, facts: Facts, looks: Mapping[str, Look], look: Look, parts: Parts) -> list[Step]:
    """Consecutive parts of one kind become one step."""
    if not parts:
        return []
    built = facts.existing(look.table.name, parts.first, parts.last)
    requested = parts_of_due(row for row in look.due if row.cause.kind == "requested")
    kinds: list[tuple[StepKind, Parts]] = [
        ("requested", parts & requested),
        ("missing", parts - requested - built),
        ("stale", (parts - requested) & built),
    ]
    found = [
        Step(
            look.table.name,
            span,
            kind,
            _reason(graph, facts, look, looks, span, kind == "missing"),
            min((row.since for row in look.due if row.lo <= span.hi and row.hi >= span.lo), default=0.0),
        )
        for kind, members in kinds
        for span in members.ranges
    ]
    return sorted(found, key=lambda step: step.parts)


def _reason(graph: Graph, facts: Facts, look: Look, looks: Mapping[str, Look], span: Range, missing: bool) -> str:
    texts = list(dict.fromkeys(r.cause.text(graph, missing) for r in look.due if r.lo <= span.hi and r.hi >= span.lo))
    text = texts[-1] if len(texts) < 2 else f"{texts[-1]} and {len(texts) - 1} more"
    if (policy := look.table.refresh) is not None and look.ready.within(*span):
        fired = look.fires or facts.refreshed().get(look.table.family, Refreshed()).why
        text += f"; refresh: {fired or refresh.text(policy)}"
    held = held_inputs(look.table, look.start, facts, looks, span)
    as_it_was = [f"{w.table}[{range_text(w.parts, graph[w.table].length)}]" for w in held]
    if not as_it_was:
        return text
    more = f" and {len(as_it_was) - 1} more" if len(as_it_was) > 1 else ""
    return f"{text}; reads {as_it_was[0]}{more} at an earlier revision"


def held_inputs(table: Table, start: int, facts: Facts, looks: Mapping[str, Look], parts: Range) -> list[WaitsFor]:
    """What these parts of a view read of parts that are due but held: they see the content from before."""
    if not any(name in looks and looks[name].held for name in (*table.input_names, table.name)):
        return []
    found = []
    for need in needs_of_parts(facts, table, start, parts):
        if (other := looks.get(need.table)) is not None:
            read = need.needed & other.held
            found += [WaitsFor(need.table, span, "failed") for span in (read & other.failed).ranges]
            found += [WaitsFor(need.table, span, "manual") for span in (read & other.manual).ranges]
    return found


def _blocked(facts: Facts, look: Look, looks: Mapping[str, Look]) -> list[Blocked]:
    due = parts_of_due(look.due)
    return [
        Blocked(look.table.name, span, tuple(waits_for(facts, look, looks, span.lo)))
        for span in (due - look.ready - look.manual - look.deferred).ranges
    ]


def waits_for(facts: Facts, look: Look, looks: Mapping[str, Look], j: int) -> list[WaitsFor]:
    """What keeps part j from being computed."""
    if j in look.failed:
        return [WaitsFor(look.table.name, Range(j, j), "failed")]
    found: dict[WaitsFor, None] = {}
    first = j == look.start
    for item in look.table.initial if first else look.table.inputs:
        span = required_of(look.table, item, Range(j, j), facts, first)
        if item.table == look.table.name:
            span = Range(max(span.lo, look.start), span.hi)
        needed = Parts.of(span)
        absent = needed - facts.existing(item.table, span.lo, span.hi)
        found.update((WaitsFor(item.table, r, "missing"), None) for r in absent.ranges)
        other = look if item.table == look.table.name else looks.get(item.table)
        if other is not None:
            late = (needed - absent) & other.pending
            state = "failed" if late & other.failed else "deferred" if late & other.delayed else "stale"
            found.update((WaitsFor(item.table, r, state), None) for r in late.ranges)
    return list(found)
