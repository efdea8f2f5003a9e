"""One round of loading and computing inside a program: `partwise.open(...).run()`, and each look of `run --watch`.

Everything that a start costs (imports, Spark) is paid by the first round; a round that finds nothing to do starts nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from partwise.api import FinishedStep, LoadedTable
from partwise.definitions import Dimension, Source
from partwise.parts import part_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from partwise.compile.program import Program
    from partwise.ledger.ledger import Ledger
    from partwise.tables import Table
    from partwise.workspace import Workspace
    from spark_jobs.ingest.result import Ingested
    from spark_jobs.step.run_step import Report

#: Sessions that rounds of this process have started, by the settings that decide which one it is.
_sessions: dict[str, SparkSession] = {}
_starting = threading.Lock()
#: A setting that every session has: whoever answers is alive.
_ASKED = "spark.sql.session.timeZone"


def wanted(definitions: Program, views: Collection[str] | None) -> Collection[str] | None:
    """These views and what they are computed from; None for everything. Raises Stop for a name that is no view."""
    from partwise.cli.open_workspace import table_of

    graph = definitions.graph()
    return graph.upstream([table_of(graph, definitions, name, "view").name for name in views]) if views else None


def fed(definitions: Program, only: Collection[str] | None) -> list[str]:
    """Sources and dimensions to look at."""
    usable = definitions.usable.items()
    return [n for n, t in usable if isinstance(t, Source | Dimension) and (only is None or n in only)]


def nothing_to_do(
    ledger: Ledger, definitions: Program, where: Workspace, only: Collection[str] | None, no_ingest: bool = False
) -> bool:
    """Whether nothing has arrived and nothing is ready: found out without Spark, which is not even imported."""
    usable = definitions.usable
    if any(step.table in usable for step in ledger.plan(time.time(), only).steps):
        return False
    names = [] if no_ingest else fed(definitions, only)
    if not names:
        return True
    from spark_jobs.ingest.news import has_news

    return not any(has_news(ledger, where, usable[name]) for name in names)  # type: ignore[arg-type]


def round_of(
    where: Workspace, views: Collection[str], load: bool, past_refresh: bool, stop: threading.Event | None = None
) -> Iterator[LoadedTable | FinishedStep | str]:
    """Load what has arrived, then compute what is ready, and tell of each as it ends, in the words of the public API.

    A text is a problem that is neither a load's nor a step's. Raises what commands raise.
    """
    from partwise.cli.open_workspace import definitions_of, ledger_of
    from partwise.damaged import damaged

    with ledger_of(where, time.time()) as ledger:
        written = definitions_of(where, quiet=True)
        yield from (str(problem) for problem in written.problems if problem.severity == "error")
        definitions = where.take_over(ledger, written, time.time())
        only = wanted(definitions, views)
        yield from (item.text() for item in damaged(ledger, where.warehouse, only))
        if past_refresh or not nothing_to_do(ledger, definitions, where, only, not load):
            yield from _worked(ledger, definitions, where, only, load, past_refresh, stop or threading.Event())


def _worked(
    ledger: Ledger,
    definitions: Program,
    where: Workspace,
    only: Collection[str] | None,
    load: bool,
    past_refresh: bool,
    stop: threading.Event,
) -> Iterator[LoadedTable | FinishedStep | str]:
    from spark_jobs.commands._opening import make_engine
    from spark_jobs.ingest.api import each
    from spark_jobs.retry import sentence_of
    from spark_jobs.run import PATIENCE, run
    from spark_jobs.session.late import started

    key = repr((where.settings.spark, sorted(where.spark_conf.items())))
    engine = make_engine(ledger, definitions, where, _known(key))
    try:
        if load:
            for item in each(engine, where, fed(definitions, only), stop=stop.is_set, patience=PATIENCE):
                yield _loaded(item, engine.definitions.graph()[item.source])
        engine.review_states()
        if past_refresh:
            engine.ledger.refresh_now(only, engine.now())
        for outcome in run(engine, only, stop):
            if outcome.report is not None:
                yield _finished(outcome.report)
            elif outcome.given_up:
                why = sentence_of(outcome.trouble) if outcome.trouble else str(outcome.busy)
                yield f"{outcome.step.table}: {why}; gave up for now, the next run retries"
    finally:
        if getattr(engine.spark, "is_started", True):
            with _starting:
                _sessions[key] = started(engine.spark)


def _loaded(item: Ingested, table: Table) -> LoadedTable:
    problems = [f"{item.source}: {f'{file} was refused: ' if file else ''}{why}" for file, why in item.refused]
    problems += [f"{item.source}: {file} is held back: {why}" for file, why in item.held]
    problems += [f"{item.source}{_one(part, table)} is held back: {why}" for part, why in item.failed.items()]
    return LoadedTable(
        table=item.source,
        files=item.files,
        rows=item.rows,
        late_rows=item.late_rows,
        quarantined=item.quarantined,
        closed=item.closed.count,
        changed=(item.changed - item.closed).count,
        problems=tuple(problems),
        notes=(*item.notes, *(f"{_one(part, table)} {why}".strip() for part, why in item.warned.items())),
    )


def _finished(report: Report) -> FinishedStep:
    def start(part: int) -> datetime:
        return datetime.fromtimestamp(part * report.length, UTC)

    return FinishedStep(
        table=report.table,
        first=start(report.parts.first) if report.parts else None,
        last=start(report.parts.last) if report.parts else None,
        parts=report.parts.count,
        changed=report.changed.count,
        rows=report.rows,
        reason=report.reason,
        seconds=report.seconds,
        failed=tuple((start(part), why) for part, why in report.failed.items()),
    )


def _one(part: int, table: Table) -> str:
    return "" if table.kind == "dimension" else f"[{part_text(part, table.length)}]"


def _known(key: str) -> SparkSession | None:
    """The session of an earlier round, if it still works: a driver in the background ends when nobody needs it."""
    with _starting:
        found = _sessions.get(key)
        if found is None or _works(found):
            return found
        del _sessions[key]
        if _over_connect(found):
            found.release_session_on_close = False  # type: ignore[attr-defined]  # nobody is there to hear of it
            found.stop()
        return None


def _works(spark: SparkSession) -> bool:
    """Whether there is still somebody at the other end of a session."""
    from partwise.serve.supervise.answers import answers

    try:
        if _over_connect(spark):
            return answers(f"sc://{spark.client._builder.endpoint}", seconds=2) and bool(spark.conf.get(_ASKED))  # type: ignore[attr-defined]
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:
        return False


def _over_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")
