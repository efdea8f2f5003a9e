"""Imports what tasks and DAG files need into the process that they are forked from, before it forks.

Every task is a process forked from the scheduler, every look at a DAG file one forked from the dag-processor. What is
imported there already costs them nothing; else each step would import Spark's client and the engine again, which takes
longer than many steps themselves.

Importing is all that happens here, and it leaves nothing behind that a fork would break: no connection, no channel, no
thread of Python's, of gRPC's or of delta-rs's. (numpy and Arrow start threads of their own, which they stop before a
fork and start again when they are used.) A test forks after this and uses Spark, Delta and a database.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module

from airflow.configuration import conf
from airflow.listeners import hookimpl

log = logging.getLogger(__name__)

#: Names only: this package does not depend on Spark, and where it is not installed nothing is lost.
FILES = (
    "airflow.dag_processing.dagbag",
    "partwise_airflow.dags",
    "partwise_airflow.service.reconcile",
    "partwise_airflow.service.backfill",
    "partwise_airflow.service.upkeep",
    "partwise_airflow.bundle",
    "spark_jobs.airflow.tasks",
    "spark_jobs.airflow.company",
    "spark_jobs.airflow.submit",
    "jinja2.ext",
)
TASKS = (
    *FILES,
    "airflow.sdk.definitions.asset.metadata",
    "airflow.sdk.execution_time.cache",
    "airflow.sdk.execution_time.task_runner",
    "airflow.sdk.execution_time.timeout",
    "airflow.providers.common.io.version_compat",
    "partwise.compile.assemble",
    "partwise.compile.sample.generate",
    "partwise.compile.table",
    "partwise.compile.translate",
    "partwise.definitions.reading",
    "partwise.ledger.open",
    "partwise.serve.postgres",
    "psycopg2",
    "pyarrow.fs",
    "pyarrow.parquet",
    "spark_jobs.engine",
    "spark_jobs.session.session",
    "spark_jobs.step.run_step",
    "spark_jobs.together",
    "spark_jobs.ingest.api",
    "spark_jobs.ingest.files.by_arrow",
    "pyspark.sql.connect.catalog",
    "pyspark.sql.connect.session",
    "grpc._channel",
)
MODULES = {"scheduler": TASKS, "dag-processor": FILES}


class Preload:
    @hookimpl
    def on_starting(self, component: object) -> None:
        # Called when a component makes its Job, which does not know yet of what kind it is; but the command does.
        # A task calls it as well, with the command of the scheduler that it was forked from.
        if type(component).__name__ != "Job":
            return
        command = sys.argv[1] if len(sys.argv) > 1 else ""
        if command == "scheduler" and "LocalExecutor" not in conf.get("core", "executor"):
            return  # tasks of other executors come from elsewhere
        for name in MODULES.get(command, ()):
            try:
                import_module(name)
            except Exception:
                log.exception("%s cannot be imported ahead; tasks will import it", name)
        if command == "scheduler":
            _find_listeners()


def _find_listeners() -> None:
    """Tasks look for plugins with listeners, by reading all of them; what was found is kept by the process."""
    try:
        import_module("airflow.sdk.listener").get_listener_manager()
    except Exception:
        log.exception("the listeners of tasks cannot be looked for ahead; tasks will do it")
