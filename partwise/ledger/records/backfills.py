"""Backfills in the ledger: one transaction asks for the parts; what has been done follows from parts and revisions.

Nothing is counted while a backfill runs. A part is done if it was recorded after the backfill began, and what
follows it is what its changes since then feed. So one that was interrupted anywhere goes on as if it had not been.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from partwise.backfill import Asked, StepTime, World, grown
from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.snapshot import Snapshot
from partwise.ledger.runs import due_rows, existing
from partwise.ledger.schema import backfill, part, revision, step
from partwise.ledger.write.define import move_start, request
from partwise.ledger.write.sample_starts import follow_start
from partwise.parts import Parts, Range, range_text
from partwise.plan.model import parts_of_due
from partwise.tables import Graph

#: Seconds after which a backfill whose process has not been heard of counts as interrupted.
SILENT = 120.0

_UNFINISHED = select(backfill).where(backfill.c.state != "done").order_by(backfill.c.seq)
_SET = update(backfill).where(backfill.c.seq == bindparam("n"))
_CHANGED = select(revision.c.part).where(
    revision.c.table == bindparam("t"), revision.c.at >= bindparam("a"), revision.c.seq > bindparam("n")
)
_RECORDED = select(part.c.part).where(
    part.c.table == bindparam("t"),
    part.c.part.between(bindparam("a"), bindparam("b")),
    part.c.self_as_of > bindparam("n"),
)
_TIMES = (
    select(step.c.parts, step.c.rows, step.c.seconds)
    .where(step.c.table == bindparam("t"))
    .order_by(step.c.seq.desc())
    .limit(20)
)


@dataclass(frozen=True)
class Backfill:
    """`number` is the sequence at which it began; `asked` are parts by table."""

    number: int
    table: str
    parts: Range
    asked: Mapping[str, Parts]
    downstream: bool
    state: str
    holder: str
    began: float
    beat: float

    def text(self, graph: Graph) -> str:
        """Its name for people."""
        length = graph[self.table].length if self.table in graph.tables else 1
        return f"backfill {self.number} of {self.table}[{range_text(self.parts, length)}]"

    def alive(self, now: float, dead: Callable[[str], bool]) -> bool:
        return self.state == "running" and now - self.beat < SILENT and not dead(self.holder)


class BackfillOver(Exception):
    """The backfill to go on with has finished meanwhile."""


class Overlaps(Exception):
    """Another backfill is at work on some of the same parts."""

    def __init__(self, other: Backfill) -> None:
        super().__init__(other.table)
        self.other = other


@dataclass(frozen=True)
class Done:
    """How far a backfill has come in one table."""

    recomputed: Parts
    changed: Parts
    left: Parts

    @property
    def unchanged(self) -> Parts:
        return self.recomputed - self.changed


def world_of(snapshot: Snapshot) -> World:
    """The ledger as deciding about a backfill sees it."""
    facts = snapshot.facts
    return World(
        graph=snapshot.graph,
        existing=facts.existing,
        start=facts.start,
        lowest=snapshot.lowest,
        floor=lambda name: facts.settled(name).floor,
        due=lambda name: due_parts(snapshot.r, name),
        now=snapshot.now,
    )


def due_parts(r: Reading, name: str) -> Parts:
    return parts_of_due(due_rows(r, name))


def mark(w: Writing, graph: Graph, asked: Asked) -> None:
    """Let starts move and ask for the parts; also to see, in a transaction that is rolled back, what would follow."""
    for name in (n for n in graph.order if n in asked.starts):
        move_start(w, graph, name, asked.starts[name])
        follow_start(w, graph, name)
    for name, parts in asked.requested.items():
        request(w, graph, name, parts)


def begin(
    w: Writing, graph: Graph, asked: Asked, downstream: bool, holder: str, dead: Callable[[str], bool]
) -> Backfill:
    """Begin a backfill. Raises Overlaps while another one lives that requested some of the same parts."""
    if other := overlapping(w, asked.scope, w.now, dead):
        raise Overlaps(other)
    mark(w, graph, asked)
    row = {
        "seq": w.seq,
        "table": asked.table,
        "lo": asked.span.lo,
        "hi": asked.span.hi,
        "asked": json.dumps({name: [list(r) for r in parts.ranges] for name, parts in asked.scope.items()}),
        "downstream": downstream,
        "state": "running",
        "holder": holder,
        "began": w.now,
        "beat": w.now,
    }
    w.on.execute(insert(backfill), row)
    return Backfill(w.seq, asked.table, asked.span, asked.scope, downstream, "running", holder, w.now, w.now)


def overlapping(
    r: Reading, scope: Mapping[str, Parts], now: float, dead: Callable[[str], bool], besides: int | None = None
) -> Backfill | None:
    """A backfill that lives and requested some of these parts; not the one whose number is `besides`."""
    for other in unfinished(r):
        if (
            other.number != besides
            and other.alive(now, dead)
            and any(parts & other.asked.get(name, Parts()) for name, parts in scope.items())
        ):
            return other
    return None


def unfinished(r: Reading) -> list[Backfill]:
    """Those that run, were stopped or were interrupted, oldest first."""
    return [_backfill(row) for row in r.on.execute(_UNFINISHED)]


def held_by(r: Reading, holder: str) -> Backfill | None:
    """The newest backfill of somebody, whether or not it has ended."""
    row = r.on.execute(select(backfill).where(backfill.c.holder == holder).order_by(backfill.c.seq.desc())).first()
    return None if row is None else _backfill(row)


def go_on(w: Writing, graph: Graph, number: int, holder: str, dead: Callable[[str], bool]) -> Backfill:
    """Take over a backfill that was interrupted. Parts that failed get another chance.

    Raises Overlaps if somebody else has taken it over meanwhile, or lives and works on the same parts; Over.
    """
    found = next((each for each in unfinished(w) if each.number == number), None)
    if found is None:
        raise BackfillOver
    if found.alive(w.now, dead):
        raise Overlaps(found)
    if other := overlapping(w, found.asked, w.now, dead, besides=number):
        raise Overlaps(other)
    for name, parts in found.asked.items():
        if name in graph.tables and (left := parts & due_parts(w, name)):
            request(w, graph, name, left)
    w.on.execute(_SET.values(state="running", holder=holder, beat=w.now), {"n": number})
    return replace(found, state="running", holder=holder, beat=w.now)


def beat(w: Writing, number: int) -> None:
    w.on.execute(_SET.values(beat=w.now), {"n": number})


def finish(w: Writing, number: int, done: bool) -> None:
    """`done` False: stopped before its end; it can go on."""
    w.on.execute(_SET.values(state="done" if done else "stopped", beat=w.now), {"n": number})


def scope_of(r: Reading, graph: Graph, found: Backfill) -> dict[str, Parts]:
    """The parts that belong to it by now."""
    return grown(
        graph,
        lambda name: settled(r, name).start,
        {name: parts for name, parts in found.asked.items() if name in graph.tables},
        {name: _changed(r, name, found) for name in graph.downstream(found.asked)},
        found.downstream,
    )


def progress(r: Reading, graph: Graph, found: Backfill) -> dict[str, Done]:
    """How far it has come, by table, in the order of computing."""
    scope = scope_of(r, graph, found)
    done = {}
    for name in (n for n in graph.order if n in scope):
        parts = scope[name]
        span = {"t": name, "a": parts.first, "b": parts.last, "n": found.number}
        recorded = Parts.single(*r.on.execute(_RECORDED, span).scalars()) & parts
        done[name] = Done(recorded, _changed(r, name, found) & recorded, due_parts(r, name) & parts)
    return done


def still_asked(found: Backfill, done: Mapping[str, Done]) -> dict[str, Parts]:
    """The parts that were requested and are not done, by table. A backfill is finished when there are none.

    What else is left waits for other stale parts: that is the next run's.
    """
    left = {name: each.left & found.asked.get(name, Parts()) for name, each in done.items()}
    return {name: parts for name, parts in left.items() if parts}


def what_is_left(r: Reading, graph: Graph, found: Backfill) -> Asked:
    """A backfill that was interrupted, as if somebody requested what is left of it."""
    done = progress(r, graph, found)
    mine = still_asked(found, done)
    left = {name: each.left - mine.get(name, Parts()) for name, each in done.items()}
    return Asked(found.table, found.parts, mine, {name: parts for name, parts in left.items() if parts})


def times(r: Reading, name: str) -> list[StepTime]:
    """How long the newest steps of a table took."""
    return [StepTime(*row) for row in r.on.execute(_TIMES, {"t": name})]


def rows_of(r: Reading, name: str, parts: Parts) -> int | None:
    """The rows that these parts hold, if all of them exist."""
    if not parts or parts - existing(r, name, parts.first, parts.last):
        return None
    span = part.c.part.between(bindparam("a"), bindparam("b"))
    query = select(part.c.part, part.c.rows).where(part.c.table == bindparam("t"), span)
    found = r.on.execute(query, {"t": name, "a": parts.first, "b": parts.last})
    return sum(int(rows) for p, rows in found if p in parts)


def _changed(r: Reading, name: str, found: Backfill) -> Parts:
    return Parts.single(*r.on.execute(_CHANGED, {"t": name, "a": found.began, "n": found.number}).scalars())


def _backfill(row: Any) -> Backfill:
    asked = {name: Parts.of(*((lo, hi) for lo, hi in ranges)) for name, ranges in json.loads(row.asked).items()}
    return Backfill(
        row.seq, row.table, Range(row.lo, row.hi), asked, row.downstream, row.state, row.holder, row.began, row.beat
    )
