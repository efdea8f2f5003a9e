"""Views with `engine: submit`: their steps go to a cluster by spark-submit."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from partwise.ledger.facts import LedgerFacts
from partwise.parts import part_text
from partwise_airflow.asked import asked_of
from partwise_airflow.place import ledger_at
from partwise_airflow.step import POOL, RETRIES, begun, step_of

SUBMIT = "spark_submit"


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
        workspace: str | None = None,
        **kwargs: Any,
    ) -> None:
        defaults = {"conn_id": SUBMIT, "pool": POOL, "max_active_tis_per_dag": 1, "verbose": False, **RETRIES}
        for name, value in defaults.items():
            kwargs.setdefault(name, value)
        super().__init__(application=application, name=f"partwise-{table}", **kwargs)
        self.table, self.view, self.workspace = table, view, workspace
        self.length, self.view_length, self.first = length, view_length, first

    def execute(self, context: Any) -> None:
        asked, began = asked_of(context), time.time()
        if self.first:
            begun(self.workspace, self.view, asked, context["run_id"])
        self.application_args = [step_of(self, asked, context["run_id"])]
        find_spark()
        try:
            super().execute(context)
        except AirflowException:
            # spark-submit says only that it failed; the ledger knows whether the query did, and why.
            self._say_why(began)
            raise

    def _say_why(self, since: float) -> None:
        with ledger_at(self.workspace) as (_, ledger), ledger.database.reading() as r:
            failures = LedgerFacts(r).failures().get(self.table, {})
        found = {p: failure for p, failure in failures.items() if failure.at >= since}
        if not found:
            return
        told = "\n".join(f"{self.table}[{part_text(p, self.length)}]: {f.message}" for p, f in found.items())
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
