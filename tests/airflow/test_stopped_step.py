"""A Spark task that is stopped leaves no query behind in the driver, which others use as well."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("airflow")


class Session:
    """Notes what is called, in order; an interrupt may fail."""

    def __init__(self, fails: bool = False) -> None:
        self.called: list[str] = []
        self.fails = fails

    def interruptAll(self) -> None:
        self.called.append("interruptAll")
        if self.fails:
            raise RuntimeError("the driver is gone")

    def stop(self) -> None:
        self.called.append("stop")


@pytest.mark.parametrize("fails", [False, True])
def test_what_it_runs_is_interrupted_and_nothing_more_is_begun(fails: bool) -> None:
    from partwise_airflow.tasks.step import SparkLoad

    def run(step: str, spark: Any) -> None: ...

    task = SparkLoad(task_id="load", table="s", run=run, look=lambda step: True)
    task.on_kill()  # before there is a session
    session = Session(fails)
    task.op_kwargs = {"spark": session}
    task.on_kill()
    assert session.called == ["interruptAll", "stop"]


def test_a_driver_that_does_not_answer_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    from partwise_airflow.tasks import step

    monkeypatch.setattr(step, "SECONDS_TO_STOP", 0.1)
    answer = threading.Event()
    step.let_go({"spark": SimpleNamespace(interruptAll=lambda: answer.wait(60), stop=lambda: None)})
    assert not answer.is_set()
    answer.set()


def test_a_query_that_was_interrupted_has_not_failed() -> None:
    from pyspark.errors.exceptions.connect import UnknownException

    from spark_jobs.retry import is_infrastructure

    said = "(org.apache.spark.SparkSQLException) [OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008"
    assert is_infrastructure(UnknownException(said))
    assert not is_infrastructure(UnknownException("[DIVIDE_BY_ZERO] Division by zero."))
