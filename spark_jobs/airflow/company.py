"""Views whose runs wait for a slot in the pool of Spark: a task computes them along with its own, in one job.

Every view keeps its own DAG and its own run. That run has found out, in its first task, that something is ready; when its turn
comes it finds the parts done and ends without Spark. What fails is left to it, so that each view's failure is told by its own run.
A view whose DAG is paused has no such run, and is left alone.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_jobs.engine import Engine
    from spark_jobs.step.run_step import Report

log = logging.getLogger("partwise.step")


def along(engine: Engine, table: str) -> Iterator[Report]:
    """What is done of this table's step and of small steps that wait for a slot; none if nothing goes along with it."""
    from deltalake.exceptions import DeltaError

    from partwise.ledger.read.pin import DefinitionChanged
    from partwise.ledger.write.leases import Busy, Fenced
    from partwise.storage import StorageError
    from spark_jobs.together import run_together

    tables = _tables(engine, table)
    if len(tables) < 2:
        return
    try:
        yield from run_together(engine, tables, guests=tables[1:])
    except (Busy, Fenced, DefinitionChanged, StorageError, DeltaError) as why:
        log.info("%s goes on alone: %s", table, why)
        engine.catch_up()


def _tables(engine: Engine, table: str) -> list[str]:
    from partwise.choose.together import grouped
    from partwise.ledger.records.announcements import in_turn
    from partwise.plan.urgency import first_of_each
    from spark_jobs.together import may_share

    if engine.batch.views < 2 or not engine.small_rows or not may_share(engine, table):
        return [table]
    graph, now = engine.definitions.graph(), engine.now()
    with engine.ledger.database.reading() as r:
        waiting = in_turn(r)
    plan = engine.ledger.plan(now)
    steps = [
        step
        for step in first_of_each(plan.steps, plan.allowed, now)
        if step.table == table or (step.table in graph.tables and not waiting.isdisjoint(graph[step.table].for_views))
    ]
    steps.sort(key=lambda step: step.table != table)
    if not steps or steps[0].table != table:
        return [table]
    first, *_ = grouped(steps, lambda name: graph[name].length, lambda name: may_share(engine, name), engine.batch)
    return [step.table for step in first]


def already_done(step: str) -> dict[str, Any] | None:
    """The report of a step that has nothing to compute any more, found out without Spark; None if it has.

    Failures are looked at by the step itself.
    """
    from partwise.ledger.facts import LedgerFacts
    from partwise.ledger.records.announcements import begin, ends_quietly
    from partwise.ledger.records.writers import last_writer
    from partwise.workspace import open_workspace

    asked = json.loads(step)
    if asked.get("only"):
        return None
    name, workspace = asked["table"], open_workspace(asked["workspace"])
    ledger = workspace.open_ledger(time.time())
    try:
        definitions = workspace.take_over(ledger, workspace.load(), time.time())
        if view := asked.get("begins"):
            with ledger.database.writing(time.time()) as w:
                begin(w, view, asked["run"])
        graph = definitions.graph()
        names = {each for each in graph.tables if name in graph[each].for_views}
        if name not in names or ledger.plan(time.time(), names).steps:
            return None
        with ledger.database.reading() as r:
            if name in LedgerFacts(r).failures():
                return None
            by = last_writer(r, name)
        who = f"; it was computed by task {by.task} of {by.dag}, run {by.run}" if by else ""
        log.info("%s: nothing of it is due and ready%s", name, who)
        report: dict[str, Any] = {"table": name, "steps": [], "failed": {}, "again": False}
        if view := asked.get("ends"):
            report["quiet"] = ends_quietly(ledger, time.time(), view, asked["run"])
        return report
    finally:
        ledger.database.close()
