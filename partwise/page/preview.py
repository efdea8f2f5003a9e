"""What a backfill of a range would do, before anyone starts it."""

from __future__ import annotations

from dataclasses import dataclass

from partwise.backfill import BadRange, ask, closure, estimate, parse
from partwise.ledger.read.snapshot import Snapshot
from partwise.ledger.records.backfills import rows_of, times, world_of
from partwise.page.ask import BadAsk
from partwise.parts import FOREVER, Parts, range_text
from partwise.plan.next import parts_text
from partwise.tables import Table


@dataclass(frozen=True, slots=True)
class PreviewLine:
    """`why`: requested, needed first, or follows (only if what it reads changes)."""

    table: str
    parts: str
    count: int
    why: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class BackfillPreview:
    """`seconds` is None where a table has no history to go by."""

    table: str
    range: str
    lines: tuple[PreviewLine, ...]
    notes: tuple[str, ...]
    parts: int
    seconds: float | None


def preview(
    snapshot: Snapshot, table: Table, text: str, upstream: bool = False, downstream: bool = True
) -> BackfillPreview:
    """Raises BadAsk where a backfill would be refused."""
    if table.kind != "view":
        raise BadAsk(f"{table.name} is a {table.kind}: its parts come from outside. Backfill a view that reads it.")
    graph, world = snapshot.graph, world_of(snapshot)
    there = world.existing(table.name, -FOREVER, FOREVER)
    ends = (there.first, there.last) if there else (None, None)
    try:
        span = parse(text, table.length, *ends)
        asked = ask(world, table.name, span, upstream)
    except BadRange as problem:
        raise BadAsk(str(problem)) from None
    lines = []
    for name in (n for n in graph.order if n in asked.scope):
        why = "requested" if name in asked.requested else "needed first"
        lines.append(_line(snapshot, name, asked.scope[name], why))
    follows = closure(graph, world.start, world.existing, asked.scope, downstream)
    lines += [_line(snapshot, name, follows[name], "follows") for name in graph.order if name in follows]
    sure = [line for line in lines if line.why != "follows"]
    took = [line.seconds for line in sure]
    known = [seconds for seconds in took if seconds is not None]
    return BackfillPreview(
        table=table.name,
        range=range_text(span, table.length),
        lines=tuple(lines),
        notes=asked.notes,
        parts=sum(line.count for line in sure),
        seconds=sum(known) if len(known) == len(took) else None,
    )


def _line(snapshot: Snapshot, name: str, parts: Parts, why: str) -> PreviewLine:
    shown = parts_text(parts, snapshot.graph[name].length)
    took = estimate(times(snapshot.r, name), parts.count, rows_of(snapshot.r, name, parts))
    return PreviewLine(name, shown, parts.count, why, took.seconds)
