"""Everything that is ready, until nothing is: steps of independent tables side by side in one session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from partwise.ledger.leases import Busy, Fenced
from partwise.ledger.pin import DefinitionChanged
from partwise.parts import Parts
from partwise.plan.model import Step
from partwise.storage import Conflict
from spark_jobs.engine import Engine
from spark_jobs.step import Report, run_step

#: Steps that run at once; each is a Spark job of its own.
SIDE_BY_SIDE = 2
#: How often one table is tried again after somebody else was quicker.
_TRIES = 20


@dataclass(frozen=True)
class Outcome:
    """How a step ended: with a report, with nothing to do, or because somebody else has the table."""

    step: Step
    report: Report | None
    busy: Busy | None = None


def run(
    engine: Engine,
    only: Collection[str] | None = None,
    stop: threading.Event | None = None,
    side_by_side: int = SIDE_BY_SIDE,
    within: Callable[[], Mapping[str, Parts]] | None = None,
) -> Iterator[Outcome]:
    """Carry out steps and tell of each as it ends. `stop` lets running steps finish and begins no others.

    `within` says, each time that something may begin, to which parts the work is limited; all by default.
    """
    stop = stop or threading.Event()
    running: dict[Future[Outcome], str] = {}
    tries: dict[str, int] = {}
    with ThreadPoolExecutor(side_by_side) as pool:
        while True:
            if not stop.is_set():
                scope = within() if within else None
                for step in _next_steps(engine, only, set(running.values()), tries, scope):
                    if len(running) < side_by_side:
                        # Everything that is due in the table, not only this range: one lease, one job, one commit.
                        asked = None if scope is None else scope[step.table]
                        running[pool.submit(_run, engine, step, asked)] = step.table
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                table = running.pop(future)
                outcome = future.result()
                if outcome.report is None:
                    tries[table] = tries.get(table, 0) + 1
                    if outcome.busy is not None:
                        time.sleep(0.2)
                else:
                    tries.pop(table, None)
                yield outcome


def _next_steps(
    engine: Engine,
    only: Collection[str] | None,
    busy: Collection[str],
    tries: dict[str, int],
    scope: Mapping[str, Parts] | None,
) -> list[Step]:
    """The first step of each table that nobody works on; nothing of a table that others keep taking away."""
    found: dict[str, Step] = {}
    for step in engine.ledger.plan(engine.now(), only).steps:
        if scope is not None and not scope.get(step.table, Parts()).within(*step.parts):
            continue
        if step.table not in busy and tries.get(step.table, 0) < _TRIES and step.table in engine.definitions.usable:
            found.setdefault(step.table, step)
    return list(found.values())


def _run(engine: Engine, step: Step, asked: Parts | None) -> Outcome:
    """One step. Losing against somebody else is ordinary: what is due is looked up again."""
    try:
        return Outcome(step, run_step(engine, step.table, asked))
    except Busy as why:
        return Outcome(step, None, why)
    except (Conflict, Fenced, DefinitionChanged):
        return Outcome(step, None)


def run_all(
    engine: Engine, only: Collection[str] | None = None, each: Callable[[Outcome], None] | None = None
) -> list[Report]:
    """Run to the end; the reports of all steps that did something."""
    reports = []
    for outcome in run(engine, only):
        if each:
            each(outcome)
        if outcome.report is not None:
            reports.append(outcome.report)
    return reports
