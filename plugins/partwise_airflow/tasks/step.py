"""The tasks that compute: a step goes to Spark as JSON, a report comes back.

What Spark does with it is a function of `spark_jobs` that the DAG file hands in: this package imports no Spark.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    DownstreamTasksSkipped,
)

from partwise.announce import not_computed
from partwise.ledger.facts import LedgerFacts
from partwise.parts import parse_range
from partwise_airflow.driver import wait_for_driver
from partwise_airflow.place import ledger_at
from partwise_airflow.tasks.request import request
from partwise_airflow.tasks.requested import RequestedParts, asked_of

log = logging.getLogger(__name__)

#: Steps that run at once share this pool.
POOL = "spark"
CONNECT = "spark_connect"
#: Spark tasks are tried again: drivers and connections come and go. Airflow waits once to twice as long as it is told.
RETRIES = {
    "retries": 4,
    "retry_delay": timedelta(seconds=3),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=2),
}


#: Airflow kills a task that does not end by itself after 5 seconds or so.
SECONDS_TO_STOP = 3.0


class SparkStep(PySparkOperator):
    """One table of a view, through Spark Connect."""

    template_fields = ()  # what is rendered is stored, by a call of the API for every run of every task
    ui_color = "#f6e3c5"

    def __init__(
        self,
        *,
        table: str,
        view: str,
        length: int,
        view_length: int,
        first: bool,
        run: Callable[..., Any],
        done: Callable[[str], dict[str, Any] | None] | None = None,
        workspace: str | None = None,
        **kwargs: Any,
    ) -> None:
        for name, value in {"conn_id": CONNECT, "pool": POOL, "max_active_tis_per_dag": 1, **RETRIES}.items():
            kwargs.setdefault(name, value)
        super().__init__(python_callable=run, show_return_value_in_logs=False, **kwargs)
        self.table, self.view, self.workspace = table, view, workspace
        self.length, self.view_length, self.first, self.done = length, view_length, first, done

    def execute(self, context: Any) -> Any:
        asked = asked_of(context)
        if self.first:
            requested(self.workspace, self.view, asked)
        step = step_of(self, asked, context, ends="announce")
        report = None if self.done is None or asked.requested else self.done(step)
        if report is None:
            self.op_kwargs = {**self.op_kwargs, "step": step}
            wait_for_driver(self.conn_id)
            report = passed(super().execute(context))
        if self.table == self.view:
            computed(self.workspace, self.view, asked)
        if report.get("quiet"):
            # Nothing to tell: no process is started for that. Whoever skips other tasks has to keep the report itself.
            context["ti"].xcom_push("return_value", report)
            raise DownstreamTasksSkipped(tasks=["announce"])  # type: ignore[no-untyped-call]
        return report

    def on_kill(self) -> None:
        let_go(self.op_kwargs)


def requested(workspace: str | None, view: str, asked: RequestedParts) -> None:
    """Before the first step of a run: what somebody requested is marked."""
    if asked.requested and asked.parts is not None:
        with ledger_at(workspace, take_over=True) as (_, ledger):
            request(ledger, view, asked.parts)


def computed(workspace: str | None, view: str, asked: RequestedParts) -> None:
    """After the last step of a run: raises, to be tried again, if what somebody requested still waits for something.

    The sensor saw that what it requires exists; part of that may be about to be computed again.
    """
    if asked.requested and asked.parts is not None:
        with ledger_at(workspace) as (_, ledger):
            graph = ledger.graph()
            span = parse_range(asked.parts, graph[view].length)
            with ledger.database.reading() as r:
                left = not_computed(graph, LedgerFacts(r), view, span, time.time())
        if left:
            raise AirflowException(left)


def let_go(given: Mapping[str, Any]) -> None:
    """A task that is stopped leaves no query behind in the driver that it shares with others.

    In a thread of its own: a signal may come while the client holds its locks.
    """
    if (spark := given.get("spark")) is not None:
        stopping = threading.Thread(target=_interrupt, args=(spark,), daemon=True)
        stopping.start()
        stopping.join(SECONDS_TO_STOP)


def _interrupt(spark: Any) -> None:
    try:
        spark.interruptAll()  # the end of a session alone does not end what it runs
    except Exception:
        log.exception("what runs in Spark could not be interrupted")
    spark.stop()  # and nothing more is begun


def by(context: Any) -> dict[str, Any]:
    """Who writes, for the ledger: people find the log of what wrote a part."""
    ti = context["ti"]
    mapped = -1 if ti.map_index is None else ti.map_index
    return {"dag": ti.dag_id, "run": context["run_id"], "task": ti.task_id, "map_index": mapped}


def step_of(task: Any, asked: RequestedParts, context: Any, ends: str | None = None) -> str:
    """The step as JSON. Helpers always compute whatever is due.

    The first step of a run that nobody requested begins it: the run takes what is due from then on. The last one may
    end it, if it can skip the task that `ends` it.
    """
    step = {"workspace": task.workspace, "table": task.table, "parts": asked.of(task.view_length, task.length)}
    step |= {"only": asked.requested and task.table == task.view, "run": context["run_id"], "by": by(context)}
    if task.first and not (asked.requested and asked.parts is not None):
        step["begins"] = task.view
    if task.table == task.view and ends in task.downstream_task_ids:
        step["ends"] = task.view
    return json.dumps(step)


def passed(report: dict[str, Any]) -> dict[str, Any]:
    """The report, unless parts have failed: their content is what it was before, and the task says why."""
    if report["failed"]:
        told = "\n".join(f"{report['table']}[{part}]: {message}" for part, message in report["failed"].items())
        raise AirflowException(told) if report["again"] else AirflowFailException(told)
    return report


def held_back(report: dict[str, Any]) -> str:
    """Parts and files of a source that its checks hold back. It is told once, by the run that found it."""
    parts = [f"{report['source']}[{part}] is held back: {message}" for part, message in report["failed"].items()]
    return "\n".join([*parts, *(f"{item['file']} is held back: {item['message']}" for item in report["held"])])


class SparkLoad(PySparkOperator):
    """Takes in what is new in a source or dimension. Whether there is anything is found out without Spark."""

    template_fields = ()
    ui_color = "#d5e5f2"

    def __init__(
        self,
        *,
        table: str,
        run: Callable[..., Any],
        look: Callable[[str], bool],
        workspace: str | None = None,
        **kwargs: Any,
    ) -> None:
        # Not in the pool: looking for news must not wait for long steps. A source never has two of these at once.
        # It is not tried for long either: the next look comes soon.
        for name, value in {"conn_id": CONNECT, "retries": 2, "retry_delay": timedelta(seconds=5)}.items():
            kwargs.setdefault(name, value)
        super().__init__(python_callable=run, show_return_value_in_logs=False, **kwargs)
        self.table, self.look, self.workspace = table, look, workspace

    def execute(self, context: Any) -> Any:
        step = json.dumps({"workspace": self.workspace, "table": self.table, "by": by(context)})
        if not self.look(step):
            raise AirflowSkipException(f"{self.table}: nothing new has arrived")
        self.op_kwargs = {**self.op_kwargs, "step": step}
        wait_for_driver(self.conn_id)
        report = super().execute(context)
        if told := held_back(report):
            raise AirflowFailException(told)  # what passed is published, and announced by the reconciler
        if report["refused"] and not (report["files"] or report["closed"] or report["changed"]):
            told = "\n".join(f"{item['file']}: {item['message']}".lstrip(": ") for item in report["refused"])
            raise AirflowFailException(f"{self.table}: {told}")
        return report

    def on_kill(self) -> None:
        let_go(self.op_kwargs)
