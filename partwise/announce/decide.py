"""Which views are told of, and when once more.

A view is told of when parts of it are ready. Until a run of it begins, nothing more is said: that run computes
whatever is ready by then, so runs never pile up however slow they are. When a run has begun, only what became due
after it did is news; what it leaves is told when it ends. What got lost on the way (an event, a run, a scheduler)
is told once more after a while, unless a run of the view is queued or running and does not wait for parts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from partwise.announce.keys import MOST_KEYS, coalesced, joined, key_text, same_time
from partwise.parts import Parts, Range
from partwise.plan.model import Due, Facts
from partwise.plan.planner import Look, steps_of
from partwise.tables import Graph

#: Seconds that an event may take to become a run. Told in vain again and again, a view is told less and less often.
GRACE = 10.0
LONGEST_GRACE = 300.0
#: After so long a run that is there but does not begin is taken for one that waits for something else.
PARKED = 900.0


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive parts with their reason. `since`: the newest sequence at which others made some of them due."""

    parts: Range
    reason: str
    since: int


@dataclass(frozen=True, slots=True)
class Ready:
    """Ready parts of a view, those of its helpers included."""

    view: str
    spans: tuple[Span, ...]

    def keys(self, graph: Graph, most: int = MOST_KEYS) -> dict[str, str]:
        """Keys with their reasons."""
        length = graph[self.view].length
        found = {}
        for span in coalesced(Parts.of(*(item.parts for item in self.spans)), most):
            reasons = [i.reason for i in self.spans if i.parts.lo <= span.hi and i.parts.hi >= span.lo]
            found[key_text(span, length)] = joined(reasons)
        return found


@dataclass(frozen=True, slots=True)
class Told:
    """What the scheduler has been told of a view. `begun`: the sequence at which a run of it began to work."""

    at: float
    tries: int = 1
    begun: int | None = None
    run: str | None = None


def ready_views(
    graph: Graph, facts: Facts, looks: Mapping[str, Look], only: Collection[str] | None = None
) -> list[Ready]:
    """Views with ready parts, each after those that it reads. `only` names views; helpers count as their view."""
    found: dict[str, list[Span]] = {}
    for name, look in looks.items():
        views = [v for v in graph[name].for_views if v in graph.tables and (only is None or v in only)]
        if not look.ready or not views:
            continue
        for step in steps_of(graph, facts, looks, look, look.ready):
            lo, hi = step.parts
            due = [r for r in look.due if r.lo <= hi and r.hi >= lo]
            for view in views:
                span = same_time(step.parts, look.table.length, graph[view].length)
                others = [r.seq for r in due if not _own(graph, view, r)]
                found.setdefault(view, []).append(Span(span, step.reason, max(others, default=-1)))
    return [Ready(view, tuple(spans)) for view, spans in found.items()]


def _own(graph: Graph, view: str, row: Due) -> bool:
    """Whether a helper of the view made it due: a run of the view goes on with the view after the helper, whoever
    computed that, and what it leaves is told when it ends."""
    cause = graph.tables.get(row.cause.table or "")
    return cause is not None and view in cause.serves


def to_tell(
    ready: Collection[Ready], told: Mapping[str, Told], now: float, live: Mapping[str, bool] | None = None
) -> list[Ready]:
    """What is news. With `live` (whether a run of a view is about to work, or a lease is held), what was lost is as well."""
    found = []
    for item in ready:
        before = told.get(item.view)
        if live is not None:
            news = item.spans if _is_lost(before, now, live.get(item.view, False)) else ()
        elif before is None:
            news = item.spans
        else:
            begun = before.begun
            news = () if begun is None else tuple(span for span in item.spans if span.since > begun)
        if news:
            found.append(Ready(item.view, news))
    return found


def _is_lost(before: Told | None, now: float, live: bool) -> bool:
    if before is None:
        return not live
    waited = now - before.at
    if live:
        return waited > PARKED
    grace: float = min(GRACE * 2.0 ** min(before.tries - 1, 10), LONGEST_GRACE)
    return waited > grace
