"""Views with `engine: submit`: their steps go to a cluster by spark-submit."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from partwise.ledger.facts import LedgerFacts
from partwise.parts import part_text
from partwise.workspace import open_workspace
from partwise_airflow.place import ledger_at
from partwise_airflow.tasks.requested import asked_of
from partwise_airflow.tasks.step import POOL, RETRIES, computed, requested, step_of

SUBMIT = "spark_submit"
#: What Spark needs, for a master and the settings of a workspace.
Settings = Callable[[str, Mapping[str, str]], dict[str, str]]


class SubmitStep(SparkSubmitOperator):
    """One table of a view, as an application of its own. Its driver opens the ledger and the warehouse by itself."""

    ui_color = "#f6d3b5"

    def __init__(
        self,
        *,
        table: str,
        view: str,
        length: int,
        view_length: int,
        first: bool,
        application: str,
        settings: Settings,
        workspace: str | None = None,
        **kwargs: Any,
    ) -> None:
        defaults = {"conn_id": SUBMIT, "pool": POOL, "max_active_tis_per_dag": 1, "verbose": False, **RETRIES}
        for name, value in defaults.items():
            kwargs.setdefault(name, value)
        super().__init__(application=application, name=f"partwise-{table}", **kwargs)
        self.table, self.view, self.workspace = table, view, workspace
        self.length, self.view_length, self.first = length, view_length, first
        self.settings, self.connection = settings, str(kwargs["conn_id"])

    def execute(self, context: Any) -> None:
        asked, began = asked_of(context), time.time()
        if self.first:
            requested(self.workspace, self.view, asked)
        self.application_args = [step_of(self, asked, context)]
        self.conf = conf_of(self.connection, self.workspace, self.settings) | (self.conf or {})
        find_spark()
        try:
            super().execute(context)
        except AirflowException:
            # spark-submit says only that it failed; the ledger knows whether the query did, and why.
            say_why(self.workspace, self.table, began)
            raise
        if self.table == self.view:
            computed(self.workspace, self.view, asked)


class Submitted:
    """A step by spark-submit inside a task that may also use a session: a backfill reaches views of both kinds."""

    def __init__(self, workspace: str | None, table: str, step: str, submit: Any) -> None:
        find_spark()
        self.workspace, self.table, self.file = workspace, table, submit.FILE
        self.hook = SparkSubmitHook(
            conf=conf_of(SUBMIT, workspace, submit.settings),
            conn_id=SUBMIT,
            application_args=[step],
            name=f"partwise-{table}",
            verbose=False,
        )

    def run(self) -> None:
        began = time.time()
        try:
            self.hook.submit(self.file)
        except AirflowException:
            say_why(self.workspace, self.table, began)
            raise


def conf_of(connection: str, workspace: str | None, settings: Settings) -> dict[str, str]:
    """Settings of Spark for the master that a connection names, with those of the workspace."""
    master = BaseHook.get_connection(connection).host or ""
    return settings(master, open_workspace(workspace).spark_conf)


def say_why(workspace: str | None, table: str, since: float) -> None:
    """Raises with what the ledger knows to have failed since then; returns if that is nothing."""
    with ledger_at(workspace) as (_, ledger):
        length = ledger.graph()[table].length
        with ledger.database.reading() as r:
            failures = LedgerFacts(r).failures().get(table, {})
    found = {p: failure for p, failure in failures.items() if failure.at >= since}
    if not found:
        return
    told = "\n".join(f"{table}[{part_text(p, length)}]: {f.message}" for p, f in found.items())
    again = any(failure.retry_at is not None for failure in found.values())
    raise AirflowException(told) if again else AirflowFailException(told)


def find_spark() -> None:
    """spark-submit of the Spark that is installed beside Airflow, unless another one is set up."""
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None and not os.environ.get("SPARK_HOME"):
        os.environ["SPARK_HOME"] = str(Path(spec.origin).parent)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    os.environ["PATH"] = os.pathsep.join(folders)
