"""What Airflow's tasks call: a step as JSON and a Spark session go in, a report as JSON comes out.

    {"workspace": "/data/shop", "table": "revenue", "parts": "2026-10-03", "only": true, "run": "manual__...",
     "by": {"dag": "revenue", "run": "manual__...", "task": "revenue", "map_index": -1}}

Everything that is due and ready is computed, or of that `only` the `parts` that are named. DAG files import this
module when they are parsed, so nothing heavy is imported before a step runs.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from partwise.parts import Parts
    from partwise.plan.model import Failure
    from partwise.workspace import Workspace
    from spark_jobs.engine import Engine
    from spark_jobs.step.run_step import Report

log = logging.getLogger("partwise.step")

#: Seconds to wait for somebody else who writes the table; then the task fails and is tried again.
PATIENCE = 90.0
#: A step has a bounded number of parts. After so many steps the rest is left to the next run.
ROUNDS = 10
_TRIES = 10


def run_table(step: str, spark: SparkSession) -> dict[str, Any]:
    """Compute one table of a view.

    With `begins` the run of that view begins with this step. With `ends` it ends here, if there is nothing to tell:
    the report says so (`quiet`).
    """
    from partwise.ledger.records.announcements import begin, ends_quietly
    from partwise.parts import Parts, parse_range

    asked = json.loads(step)
    name = asked["table"]
    with _engine(spark, asked) as (engine, _):
        if view := asked.get("begins"):
            with engine.ledger.database.writing(engine.now()) as w:
                begin(w, view, asked["run"])
        if (held_up := _helpers_first(engine, name)) is not None:
            return held_up
        table = engine.definitions.graph().tables.get(name)
        if table is None:
            return _nothing(name)
        parts = Parts.of(parse_range(asked["parts"], table.length)) if asked.get("parts") else None
        limit = parts if asked.get("only") else None
        steps = _steps(engine, name, lambda: limit, ROUNDS)
        report = _compute(engine, name, parts, steps if limit else chain(_along(engine, name), steps))
        if (view := asked.get("ends")) and not report["failed"]:
            report["quiet"] = ends_quietly(engine.ledger, engine.now(), view, asked["run"])
        return report


def _along(engine: Engine, table: str) -> Iterator[Report]:
    """This table's step, if small ones of other views go along with it: those are only logged here."""
    from spark_jobs.airflow.company import along

    for report in along(engine, table):
        if report.table == table:
            yield report
        else:
            log.info("in one job with %s:", table)
            _told(report, _versions(engine, report))


def run_backfill(step: str, name: str, spark: SparkSession) -> dict[str, Any]:
    """Compute what belongs to a backfill in one table, by what has changed since it began."""
    from partwise.ledger.records import backfills
    from partwise.parts import Parts
    from spark_jobs.backfill import alive, scope

    asked = json.loads(step)
    table = asked["table"]
    with _engine(spark, asked) as (engine, _):
        with engine.ledger.database.writing(engine.now()) as w:
            backfills.beat(w, asked["backfill"])
            found = next((b for b in backfills.unfinished(w) if b.number == asked["backfill"]), None)
        if (held_up := _helpers_first(engine, table)) is not None:
            return held_up
        if table not in engine.definitions.graph().tables:
            return _nothing(table)
        if found is None:
            return _compute(engine, table, Parts(), iter(()))
        with alive(engine, found):
            if not scope(engine, found).get(table):
                log.info("%s: nothing that it reads has changed", name)
            # The scope grows with what changes, and whoever requested a year gets a year.
            steps = _steps(engine, table, lambda: scope(engine, found).get(table, Parts()), None)
            return _compute(engine, table, lambda: scope(engine, found).get(table, Parts()), steps)


def _helpers_first(engine: Engine, view: str) -> dict[str, Any] | None:
    """Compute helpers that the DAG has no task for: how a window is kept was settled after its file was written.

    Returns a report only if one of them failed. Ordinarily nothing of them is left to do here.
    """
    from spark_jobs.step.settle import settle

    settle(engine, view)
    graph = engine.definitions.graph()
    helpers = {each for each in graph.order if view in graph[each].serves}
    while helpers and (steps := engine.ledger.plan(engine.now(), helpers).steps):
        name = steps[0].table
        report = _compute(engine, name, None, _steps(engine, name, lambda: None, ROUNDS))
        if report["failed"]:
            return report
        helpers.discard(name)
    return None


def _nothing(table: str) -> dict[str, Any]:
    """The DAG still has a task for a helper that its view needs no longer: its file is written again within a minute."""
    log.info("%s is not needed any more", table)
    return {"table": table, "steps": [], "failed": {}, "again": False}


def _compute(
    engine: Engine, table: str, parts: Parts | Callable[[], Parts] | None, steps: Iterator[Report]
) -> dict[str, Any]:
    """Carry out steps of one table; failures of `parts` matter even if they are older than this run."""
    from partwise.parts import part_text

    length = engine.definitions.graph()[table].length
    done: list[dict[str, Any]] = []
    failed: dict[int, str] = {}
    for report in steps:
        done = [*done, _told(report, _versions(engine, report))][-ROUNDS:]
        failed |= report.failed
    known = _failures(engine, table, failed, parts() if callable(parts) else parts)
    failed |= {p: failure.message for p, failure in known.items()}
    if not done:
        log.info("%s: nothing of it is due and ready", table)
    return {
        "table": table,
        "steps": done,
        "failed": {part_text(p, length): message for p, message in failed.items()},
        "again": any(failure.retry_at is not None for failure in known.values()),
    }


def load_source(step: str, spark: SparkSession) -> dict[str, Any]:
    """Take in what is new in one source or dimension."""
    from partwise.parts import part_text
    from spark_jobs.ingest.api import take_in

    asked = json.loads(step)
    with _engine(spark, asked) as (engine, workspace):
        began = time.monotonic()
        # Without Spark it raises, and Airflow tries again.
        done = take_in(engine, workspace, asked["table"])
        table = engine.definitions.graph()[done.source]
        engine.review_states()
    length = table.length

    def named(parts: dict[int, str]) -> dict[str, str]:
        return {"all" if table.kind == "dimension" else part_text(p, length): why for p, why in parts.items()}

    closed, changed = _spans(done.closed, length), _spans(done.changed, length)
    failed, warned = named(done.failed), named(done.warned)
    found = {
        "source": done.source,
        "files": done.files,
        "rows": done.rows,
        "late_rows": done.late_rows,
        "quarantined": done.quarantined,
        "closed": closed,
        "changed": changed,
        "refused": [{"file": file, "message": message} for file, message in done.refused],
        "failed": failed,
        "held": [{"file": file, "message": message} for file, message in done.held],
        "warned": warned,
        "seconds": round(time.monotonic() - began, 3),
    }
    log.info(
        "%s: %s files, %s rows, %s of them late, %s quarantined, %.1f s", *list(found.values())[:5], found["seconds"]
    )
    log.info("closed: %s; changed: %s", *(", ".join(spans) or "nothing" for spans in (closed, changed)))
    for file, message in done.refused:
        log.warning("%s was refused: %s", file or done.source, message)
    for note in done.notes:
        log.warning("%s", note)
    for part, message in warned.items():
        log.warning("%s[%s]: %s", done.source, part, message)
    for part, message in failed.items():
        log.error("%s[%s] is held back: %s", done.source, part, message)
    for file, message in done.held:
        log.error("%s is held back: %s", file, message)
    return found


def anything_new(step: str) -> bool:
    """Whether a source or dimension has anything to take in, found out without Spark. In doubt it has."""
    from partwise.definitions import Dimension, Source
    from spark_jobs.ingest.news import has_news

    asked = json.loads(step)
    workspace = _workspace(asked)
    definitions = workspace.load()
    table = definitions.usable.get(asked["table"])
    if not isinstance(table, Source | Dimension):
        return True
    ledger = workspace.open_ledger(time.time())
    try:
        known, now = ledger.graph().tables.get(table.name), definitions.graph()[table.name]
        if known is None or (known.fingerprint, known.checks) != (now.fingerprint, now.checks):
            return True
        return has_news(ledger, workspace, table)
    finally:
        ledger.database.close()


def _spans(parts: Parts, length: int) -> list[str]:
    """Ranges as text; reports go through Airflow's database and stay short."""
    from partwise.parts import range_text

    found = [range_text(span, length) for span in parts.ranges[:20]]
    return [*found, f"and {len(parts.ranges) - 20} more"] if len(parts.ranges) > 20 else found


def _workspace(asked: dict[str, Any]) -> Workspace:
    from partwise.workspace import open_workspace

    return open_workspace(asked["workspace"])


@contextmanager
def _engine(spark: SparkSession, asked: dict[str, Any]) -> Iterator[tuple[Engine, Workspace]]:
    from partwise.ledger.records.writers import Writer
    from partwise.settings import Batch
    from spark_jobs.engine import Engine
    from spark_jobs.session.session import mean_the_same

    impatient(spark)
    workspace = _workspace(asked)
    mean_the_same(spark)
    if link := ui_link(spark):
        log.info("Spark UI: %s", link)
    ledger = workspace.open_ledger(time.time())
    ledger.writer = Writer(**asked["by"]) if "by" in asked else None
    try:
        definitions = workspace.take_over(ledger, workspace.load(), time.time())
        settings = workspace.settings
        engine = Engine(
            spark,
            ledger,
            definitions,
            workspace.warehouse,
            most_parts=settings.chunk_parts,
            most_rows=settings.chunk_rows,
            state_budget=settings.state_bytes,
            # One job for several views is for a driver that they share.
            batch=Batch(views=1) if settings.spark.engine == "submit" else settings.batch,
        )
        yield engine, workspace
    finally:
        ledger.database.close()


def impatient(spark: SparkSession) -> None:
    """A driver that is gone is given up after seconds: by default the client would go on for minutes."""
    if _is_shared(spark):
        from pyspark.sql.connect.client.retries import DefaultPolicy

        spark.client.set_retry_policies([DefaultPolicy(max_retries=6, max_backoff=3000)])


def ui_link(spark: SparkSession) -> str | None:
    """Where people can watch the driver. One of our own (spark-submit) knows; of a shared one PARTWISE_SPARK_UI says
    it, or what the driver says of itself.
    """
    if not _is_shared(spark):
        return spark.sparkContext.uiWebUrl
    if given := os.environ.get("PARTWISE_SPARK_UI"):
        return given
    if spark.conf.get("spark.ui.enabled", "true") != "true":
        return None
    return f"http://{spark.conf.get('spark.driver.host', 'localhost')}:{spark.conf.get('spark.ui.port', '4040')}"


def _is_shared(spark: SparkSession) -> bool:
    """Whether this is a session of Spark Connect, in a driver that others use as well."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _steps(engine: Engine, table: str, limit: Callable[[], Parts | None], rounds: int | None) -> Iterator[Report]:
    """Steps of one table until nothing of it is ready, or so many have been done.

    `limit` says before each step which parts may be computed; None: all.
    """
    from spark_jobs.step.run_step import run_step

    while rounds is None or rounds:
        within = limit()
        report = (
            None if within is not None and not within else _patiently(partial(run_step, engine, table, within), engine)
        )
        if report is None:
            return
        yield report
        if not report.parts:
            return
        rounds = None if rounds is None else rounds - 1


def _patiently(step: Callable[[], Report | None], engine: Engine) -> Report | None:
    """Losing against somebody else is ordinary: wait for them, then look again what is due."""
    from partwise.ledger.read.pin import DefinitionChanged
    from partwise.ledger.write.leases import Busy, Fenced
    from partwise.storage import Conflict

    end, tries, told = engine.now() + PATIENCE, 0, False
    while True:
        try:
            return step()
        except Busy as why:
            if engine.now() > end:
                raise
            if not told:
                log.info("%s; waiting for it", why)
                told = True
            time.sleep(1)
        except (Conflict, Fenced, DefinitionChanged) as why:
            tries += 1
            engine.catch_up()
            if tries == _TRIES:
                raise
            log.info("another process was faster (%s); checking again what is due", why)


def _versions(engine: Engine, report: Report) -> list[str]:
    """Which versions of forward dimensions the parts of a step read: the same ones for all of them."""
    from partwise.ledger.read.forward_why import read_versions_of, version_text

    with engine.ledger.database.reading() as r:
        graph = engine.ledger.graph_at(r)
        table = graph.tables.get(report.table)
        if table is None or not report.parts or not graph.forward & set(table.input_names):
            return []
        return [version_text(graph, item) for item in read_versions_of(r, graph, table, report.parts.last)]


def _told(report: Report, versions: Sequence[str] = ()) -> dict[str, Any]:
    from partwise.parts import part_text, range_text

    length = report.length
    spans = ", ".join(range_text(span, length) for span in report.parts.ranges[:3])
    more = f" and {len(report.parts.ranges) - 3} more ranges" if len(report.parts.ranges) > 3 else ""
    if report.parts:
        log.info("%s[%s%s]: %s", report.table, spans, more, report.reason)
        changed = "nothing changed" if not report.changed else f"{report.changed.count} of them changed"
        log.info("%s parts, %s rows, %s, %.1f s", report.parts.count, report.rows, changed, report.seconds)
        for line in versions:
            log.info("%s", line)
    if report.repair is not None and (said := report.repair.text()):
        log.info("%s: %s", said, report.repair.why or "as the definition says")
    for p, message in report.warned.items():
        log.warning("%s[%s]: %s", report.table, part_text(p, length), message)
    for p, message in report.failed.items():
        log.error("%s[%s] failed: %s", report.table, part_text(p, length), message)
    return {
        "parts": _spans(report.parts, length),
        "changed": _spans(report.changed, length),
        "reason": report.reason,
        "rows": report.rows,
        "seconds": round(report.seconds, 3),
        **({"versions": list(versions)} if versions else {}),
    }


def _failures(engine: Engine, table: str, failed: Collection[int], parts: Parts | None) -> dict[int, Failure]:
    """What the ledger says has failed: now, in an earlier try of this run, or of the parts that were requested.

    A second try that comes too early computes nothing. That is no success.
    """
    from partwise.ledger.facts import LedgerFacts
    from partwise.ledger.records.writers import writer_at

    me = engine.ledger.writer
    with engine.ledger.database.reading() as r:
        found = LedgerFacts(r).failures().get(table, {})
        by = {at: writer_at(r, table, at) for at in {failure.at for failure in found.values()}} if me else {}
    mine = {at for at, writer in by.items() if me and writer and writer.run == me.run}
    return {
        p: failure
        for p, failure in found.items()
        if p in failed or failure.at in mine or (parts is not None and p in parts)
    }
