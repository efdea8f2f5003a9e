"""Which small steps share one job of Spark.

A small step is mostly what every job costs, whatever it computes: planning, code, tasks. Steps that are ready over the same
parts therefore go into one job, as far as they are small. A step that reads many rows gains little by company, and what
fails together is computed again in halves: it keeps a job of its own. Contents are the same either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from partwise.compile.program import Program, Runnable
from partwise.plan.model import Plan, Step
from partwise.plan.urgency import first_of_each
from partwise.settings import Batch

#: So many rows are read in about the time that a job costs in any case.
MOST_READ = 1_000_000


def job_of_its_own(program: Program, table: str) -> str:
    """Why steps of this table are never computed together with others; nothing where they may be."""
    found = program.usable.get(table)
    if not isinstance(found, Runnable):
        return "it is loaded, not computed"
    if found.written.engine == "submit":
        return "its definition asks for engine: submit"
    mine = program.graph()[table]
    if mine.self_references:
        return "it reads its own earlier parts"
    return "it is a rolling table" if mine.rolling else ""


def shared_jobs(program: Program, plan: Plan, limits: Batch, now: float) -> list[list[Step]]:
    """Steps of a plan that are computed in one job, as far as they are small."""
    if limits.views < 2:
        return []
    graph = program.graph()
    steps = first_of_each((step for step in plan.steps if step.table in graph.tables), plan.allowed, now)
    groups = grouped(steps, lambda name: graph[name].length, lambda name: not job_of_its_own(program, name), limits)
    return [group for group in groups if len(group) > 1]


def grouped(
    steps: Iterable[Step], length: Callable[[str], int], may_share: Callable[[str], bool], limits: Batch
) -> list[list[Step]]:
    """Steps (one a table, the most urgent first) in groups, each begun by the most urgent step that no group has yet.

    Others join it if their parts are as long and share one with it: they are due for the same arrival.
    """
    groups: list[list[Step]] = []
    for step in steps:
        home = next((group for group in groups if _joins(step, group, length, may_share, limits)), None)
        if home is None:
            groups.append([step])
        else:
            home.append(step)
    return groups


def _joins(
    step: Step, group: list[Step], length: Callable[[str], int], may_share: Callable[[str], bool], limits: Batch
) -> bool:
    first = group[0]
    if len(group) >= limits.views or length(step.table) != length(first.table):
        return False
    near = step.parts.lo <= first.parts.hi and first.parts.lo <= step.parts.hi
    return near and may_share(step.table) and may_share(first.table)


@dataclass
class Room:
    """What is left of a job's limits."""

    limits: Batch
    rows: int = 0
    read: int = 0

    def takes(self, rows: int, read: int) -> bool:
        """Whether a step with such a result, which reads so many rows, still fits; then it is in."""
        if self.rows + rows > self.limits.rows or self.read + read > MOST_READ:
            return False
        self.rows += rows
        self.read += read
        return True
