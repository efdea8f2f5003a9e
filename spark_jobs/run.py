"""Everything that is ready, until nothing is: steps of independent tables in one job, or side by side in one session."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace

from deltalake.exceptions import DeltaError

from partwise.choose.together import grouped
from partwise.compile.program import Runnable
from partwise.ledger.read.pin import DefinitionChanged
from partwise.ledger.write.leases import Busy, Fenced
from partwise.ledger.write.orphans import Foreign
from partwise.parts import Parts
from partwise.plan.model import Step
from partwise.plan.urgency import first_of_each
from partwise.storage import Conflict, StorageError
from spark_jobs import retry
from spark_jobs.engine import Engine
from spark_jobs.step.run_step import Report, run_step
from spark_jobs.together import may_share, run_together

log = logging.getLogger("partwise.step")

#: Steps that run at once; each is a Spark job of its own.
SIDE_BY_SIDE = 2
#: How often one table is tried again after somebody else was quicker.
_TRIES = 20
#: Seconds to wait for somebody else who writes a table, as Airflow's steps do; and seconds between looks.
PATIENCE = 90.0
_LOOK = 0.5
#: What is wrong with one table and leaves the others alone.
_TROUBLE = (StorageError, DeltaError, Foreign, OSError, *retry.SPARK_ERRORS)


@dataclass(frozen=True)
class Outcome:
    """How a step ended: with a report, with nothing to do, because somebody else has the table, or with trouble that
    says nothing about its query: Spark was lost, or what is stored is not what it should be. After a few tries, or when
    somebody else has had it for long, its table is `given_up`, and others go on."""

    step: Step
    report: Report | None
    busy: Busy | None = None
    trouble: Exception | None = None
    given_up: bool = False


@dataclass(frozen=True)
class _Ended:
    """How a job ended, and the tables that it left out."""

    outcomes: list[Outcome]
    left: Collection[str] = ()


@dataclass
class _Tries:
    """How often tables were tried in vain since they got anywhere, since when others have them, until when they rest.

    Those that a job for several tables left out have their next step alone."""

    busy: dict[str, float] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    troubled: dict[str, int] = field(default_factory=dict)
    rest: dict[str, float] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    alone: set[str] = field(default_factory=set)

    def ended(self, outcome: Outcome) -> Outcome:
        table, now = outcome.step.table, time.monotonic()
        self.alone.discard(table)
        if outcome.trouble is not None:
            count = self.troubled[table] = self.troubled.get(table, 0) + 1
            if count > len(retry.PAUSES):
                return self._give_up(outcome)
            self.rest[table] = now + retry.PAUSES[count - 1]
        elif outcome.busy is not None:
            if now - self.busy.setdefault(table, now) >= PATIENCE:
                return self._give_up(outcome)
            self.rest[table] = now + _LOOK
        elif outcome.report is None:
            self.lost[table] = self.lost.get(table, 0) + 1
            self.busy.pop(table, None)
        else:
            for tries in (self.lost, self.troubled, self.busy):
                tries.pop(table, None)
        return outcome

    def _give_up(self, outcome: Outcome) -> Outcome:
        self.given_up.add(outcome.step.table)
        return replace(outcome, given_up=True)

    def hopeless(self, table: str) -> bool:
        return self.lost.get(table, 0) >= _TRIES or table in self.given_up

    def left(self, table: str) -> float:
        """Seconds for which this table rests."""
        return max(0.0, self.rest.get(table, 0.0) - time.monotonic())


def run(
    engine: Engine,
    only: Collection[str] | None = None,
    stop: threading.Event | None = None,
    side_by_side: int = SIDE_BY_SIDE,
    within: Callable[[], Mapping[str, Parts]] | None = None,
) -> Iterator[Outcome]:
    """Carry out steps and tell of each as it ends. `stop` lets running steps publish what they have and begins no others.

    `within` says, each time that something may begin, to which parts the work is limited; all by default.
    """
    stop = stop or threading.Event()
    engine.stopping = stop.is_set
    running: dict[Future[_Ended], list[str]] = {}
    tries = _Tries()
    with ThreadPoolExecutor(side_by_side) as pool:
        while True:
            resting: list[float] = []
            if not stop.is_set():
                scope = within() if within else None
                busy = {table for tables in running.values() for table in tables}
                steps = _next_steps(engine, only, busy, tries, scope)
                resting = [left for step in steps if (left := tries.left(step.table))]
                for group in _grouped(engine, [step for step in steps if not tries.left(step.table)], tries.alone):
                    if len(running) < side_by_side:
                        # Everything that is due in a table, not only this range: one lease, one job, one commit.
                        asked = None if scope is None else {step.table: scope[step.table] for step in group}
                        running[pool.submit(_run, engine, group, asked)] = [step.table for step in group]
            if not running:
                if not resting:
                    return
                stop.wait(min(resting))
                continue
            done, _ = wait(running, timeout=min(resting, default=None), return_when=FIRST_COMPLETED)
            for future in done:
                del running[future]
                ended = future.result()
                tries.alone.update(ended.left)
                for outcome in ended.outcomes:
                    yield tries.ended(outcome)


def _next_steps(
    engine: Engine,
    only: Collection[str] | None,
    busy: Collection[str],
    tries: _Tries,
    scope: Mapping[str, Parts] | None,
) -> list[Step]:
    """A step of each table that nobody works on, the most urgent first; none of a table that others keep taking."""
    now = engine.now()
    plan = engine.ledger.plan(now, _with_helpers(engine, only))
    steps = (
        step
        for step in plan.steps
        if (scope is None or scope.get(step.table, Parts()).within(*step.parts))
        and step.table not in busy
        and not tries.hopeless(step.table)
        and step.table in engine.definitions.usable
    )
    found = first_of_each(steps, plan.allowed, now)
    coming = {step.table for step in found} | set(busy)
    return [step for step in found if coming.isdisjoint(_ahead(engine, step.table))]


def _ahead(engine: Engine, table: str) -> list[str]:
    """Kept groups that a view can read once late rows have been added to them: nobody needs them, but it is worth it."""
    view = engine.definitions.usable.get(table)
    helpers = engine.definitions.helpers
    names = view.state_helpers if isinstance(view, Runnable) else ()
    return [name for name in names if name in helpers and helpers[name].keeps == "groups"]


def _with_helpers(engine: Engine, only: Collection[str] | None) -> Collection[str] | None:
    """A window that is settled while this runs may have other helpers than when these names were chosen."""
    if only is None:
        return None
    return {
        *only,
        *(name for name, helper in engine.definitions.helpers.items() if any(v.name in only for v in helper.served)),
    }


def _grouped(engine: Engine, steps: list[Step], alone: Collection[str]) -> list[list[Step]]:
    """Steps that may share a job, the most urgent first."""
    graph = engine.definitions.graph()

    def shares(table: str) -> bool:
        return table not in alone and bool(engine.small_rows) and may_share(engine, table)

    return grouped(steps, lambda table: graph[table].length, shares, engine.batch)


def _run(engine: Engine, group: list[Step], asked: Mapping[str, Parts] | None) -> _Ended:
    """The steps of a group in one job. What that leaves out is looked up again, and then computed alone."""
    if len(group) == 1:
        return _Ended([_run_one(engine, group[0], None if asked is None else asked[group[0].table])])
    step_of = {step.table: step for step in group}
    outcomes: list[Outcome] = []
    try:
        for report in run_together(engine, list(step_of), asked):
            outcomes.append(Outcome(step_of[report.table], report))
    except (Busy, Conflict, Fenced):
        pass
    except DefinitionChanged:
        engine.catch_up()
    except Exception as why:
        if not (isinstance(why, _TROUBLE) or retry.is_infrastructure(why)):
            raise
        log.info("a job for several tables ended early: %s", why)
    return _Ended(outcomes, step_of.keys() - {outcome.step.table for outcome in outcomes})


def _run_one(engine: Engine, step: Step, asked: Parts | None) -> Outcome:
    """One step. Losing against somebody else is ordinary: what is due is looked up again."""
    try:
        return Outcome(step, run_step(engine, step.table, asked))
    except Busy as why:
        return Outcome(step, None, why)
    except (Conflict, Fenced):
        return Outcome(step, None)
    except DefinitionChanged:
        engine.catch_up()  # somebody may have settled how a window is kept
        return Outcome(step, None)
    except Exception as why:
        if isinstance(why, _TROUBLE) or retry.is_infrastructure(why):
            return Outcome(step, None, trouble=why)
        raise


def run_all(
    engine: Engine, only: Collection[str] | None = None, each: Callable[[Outcome], None] | None = None
) -> list[Report]:
    """Run to the end; the reports of all steps that did something. Trouble with one table is raised after all others."""
    reports: list[Report] = []
    troubles: list[Exception] = []
    for outcome in run(engine, only):
        if each:
            each(outcome)
        if outcome.report is not None:
            reports.append(outcome.report)
        if outcome.trouble is not None and outcome.given_up:
            troubles.append(outcome.trouble)
    if troubles:
        raise troubles[0]
    return reports
