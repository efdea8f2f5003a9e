"""Which step comes first.

A view with `freshness` has a deadline: its parts became due at some time, and may be that long behind. What it reads has the
same deadline. The earliest one comes first, but what is late already comes last: it is behind in any case, and would only make
others late as well. Not for ever, though: after four times its freshness it comes before all others.

Stale parts may wait for half of their freshness, so that several late rows are repaired at once; parts that are missing do not
wait for them. Views without `freshness` count as allowed an hour behind. If there are no others, the longest waiting is first.

In a fixed order the last views would never be computed while data keep landing for the first ones. Here nobody starves: what
became due later, however often, comes later once a step has waited for long enough. Steps that are equally urgent (one arrival
makes many views due) stay in the order of the plan, inputs before what reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from partwise.plan.model import Step, parts_of_due
from partwise.plan.planner import Look
from partwise.plan.reach import fed
from partwise.tables import Graph, Table

#: Seconds that a view may be behind if nobody said.
USUAL = 3600.0
#: So many times its freshness a late step lets others go first.
LONGEST = 4.0
#: Of its freshness a stale part may wait for others to be repaired with it.
MAY_WAIT = 0.5

_URGENT, _CAN_WAIT, _HOPELESS = range(3)


def first_of_each(steps: Iterable[Step], allowed: Mapping[str, float] | None = None, now: float = 0.0) -> list[Step]:
    """One step a table, the most urgent first. `allowed`: seconds that tables may be behind (`Graph.allowed`)."""
    found: dict[str, Step] = {}
    for step in sorted(steps, key=lambda step: _rank(step, (allowed or {}).get(step.table), now)):
        found.setdefault(step.table, step)
    return list(found.values())


def _rank(step: Step, freshness: float | None, now: float) -> tuple[int, float, float]:
    if freshness is None:
        return _URGENT, step.since + USUAL, step.since
    waited, deadline = now - step.since, step.since + freshness
    if freshness < waited < LONGEST * freshness:
        return _HOPELESS, step.since, step.since
    if step.kind == "stale" and waited < MAY_WAIT * freshness:
        return _CAN_WAIT, deadline, step.since
    return _URGENT, deadline, step.since


@dataclass(frozen=True, slots=True)
class Lag:
    """A view whose content lags: what has changed since `since` is not in it yet, and should be by `deadline`."""

    since: float
    deadline: float


def lags(graph: Graph, looks: Mapping[str, Look]) -> dict[str, Lag]:
    """Views with `freshness` that something is due for, however far upstream."""
    since = _oldest(graph, looks)
    return {
        name: Lag(since[name], since[name] + table.freshness)
        for name, table in graph.tables.items()
        if table.freshness is not None and name in since
    }


def _oldest(graph: Graph, looks: Mapping[str, Look]) -> dict[str, float]:
    """Since when each table waits for a change that is known, in its own parts or in what they read.

    What waits for people (failed, repaired manually) is not late: no order of steps helps it.
    """
    found: dict[str, float] = {}
    for name, look in looks.items():
        own = parts_of_due(look.due) - look.failed - look.manual
        times = [row.since for row in look.due if own.within(row.lo, row.hi)]
        times += [found[other] for other in look.table.input_names if other in found and _reaches(look, looks[other])]
        if times:
            found[name] = min(times)
    return found


def _reaches(look: Look, other: Look) -> bool:
    table: Table = look.table
    return bool(other.pending and fed(table, look.start, other.table.name, other.pending))
