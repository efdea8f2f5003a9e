"""Imports what tasks need into the scheduler, before it forks the workers that they run in.

Every task is a process forked from there. What is imported already costs it nothing; Spark's client and the engine
would otherwise be imported again by each step, which takes longer than many steps themselves.
"""

from __future__ import annotations

import logging
from importlib import import_module

from airflow.listeners import hookimpl

log = logging.getLogger(__name__)

#: Names only: this package does not depend on Spark, and where it is not installed nothing is lost.
MODULES = (
    "partwise_airflow.dags",
    "partwise_airflow.reconcile",
    "partwise.definitions.load",
    "partwise.ledger.open",
    "psycopg2",
    "spark_jobs.step",
    "spark_jobs.ingest.api",
    "pyspark.sql.connect.session",
)


class Preload:
    @hookimpl
    def on_starting(self, component: object) -> None:
        if getattr(component, "job_type", None) != "SchedulerJob":
            return
        for name in MODULES:
            try:
                import_module(name)
            except Exception:
                log.exception("%s cannot be imported ahead; tasks will import it", name)
