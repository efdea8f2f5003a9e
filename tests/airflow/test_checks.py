"""Failing checks in Airflow runs: the tasks of the rendered DAGs, one after the other, on real Spark.

Only the session is not the connection's: it is the one that all tests share.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from partwise.backfill import ask
from partwise.ledger import backfills
from partwise.ledger.as_defined import as_defined
from partwise.parts import parse_range
from partwise.reading import read
from partwise.workspace import open_workspace
from spark_jobs import airflow_step
from spark_jobs.engine import Engine
from spark_jobs.verify import verify

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: m
part: 1 minute
time: at
columns: {at: timestamp, x: int}
files: landing/*.csv
checks:
  - expect_column_values_to_be_between: {column: x, min_value: 0}
---
view: v
part: 1 minute
update: SELECT x FROM m[j]
checks:
  - expect_column_values_to_be_between: {column: x, max_value: 100}
---
view: w
part: 1 minute
update: SELECT SUM(x) AS s FROM v[j]
"""


class Airflow:
    """Runs the tasks of a DAG as a worker would; what a task raises is what Airflow would see."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark = folder, spark
        (folder / "view_defs").mkdir(parents=True)
        (folder / "landing").mkdir()
        (folder / "partwise.yaml").touch()
        (folder / "view_defs" / "all.yaml").write_text(DEFINITIONS)
        from partwise_airflow.render import render

        self.files = render(open_workspace(str(folder)))

    def run(self, name: str, part: str | None = None) -> list[Any]:
        """One run; `part`: asked for by hand. The last task, which tells Airflow's database, is left out."""
        found: dict[str, Any] = {}
        exec(self.files[f"{name}.py"], found)  # what Airflow does with a DAG file
        run = SimpleNamespace(conf={"part": part}, partition_key=None, run_type="manual" if part else "asset_triggered")
        from airflow.sdk.exceptions import DownstreamTasksSkipped

        reports: list[Any] = []
        self.skipped: list[str] = []
        pushing = SimpleNamespace(xcom_push=lambda key, value: reports.append(value))
        pushing.dag_id, pushing.map_index = name, -1
        context = {"dag_run": run, "params": {"part": None}, "run_id": "r", "ti": pushing}
        for task in found["dag"].topological_sort():
            if task.task_id != "announce":
                pushing.task_id = task.task_id
                try:
                    reports.append(task.execute(context))
                except DownstreamTasksSkipped as skipping:
                    self.skipped = list(skipping.tasks)
        return reports

    def land(self, name: str, *rows: tuple[int, int]) -> Path:
        file = self.folder / "landing" / f"{name}.csv"
        before = file.stat().st_mtime if file.exists() else time.time() - 600
        file.write_text("at,x\n" + "".join(f"2026-10-03T10:{minute:02d}:00,{x}\n" for minute, x in rows))
        os.utime(file, (before + 1, before + 1))
        return file

    def seen(self, table: str = "v") -> dict[int, list[int]]:
        """What `query` reads of each minute, and delta-rs as well."""
        column = "s" if table == "w" else "x"
        found: dict[int, list[int]] = {}
        sql = f"SELECT minute(part_timestamp), {column} FROM {table} ORDER BY 1, 2"
        for minute, value in read(sql, str(self.folder)).rows:
            found.setdefault(minute, []).append(value)
        stored = DeltaTable(str(self.folder / "warehouse" / table)).to_pyarrow_table().column(column).to_pylist()
        if table != "m":  # of a source there are rows of open parts besides
            assert sorted(stored) == sorted(value for some in found.values() for value in some)
        return found


@pytest.fixture
def airflow(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Airflow:
    from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator

    monkeypatch.setattr(
        PySparkOperator, "execute_callable", lambda task: task.python_callable(**task.op_kwargs, spark=spark)
    )
    monkeypatch.setenv("PARTWISE_WORKSPACE", str(tmp_path / "ws"))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_CONNECT", '{"conn_type": "spark"}')  # no Connect server to wait for
    return Airflow(tmp_path / "ws", spark)


def clean(airflow: Airflow) -> None:
    where = open_workspace(str(airflow.folder))
    ledger = where.open_ledger(time.time())
    found = verify(Engine(airflow.spark, ledger, where.load(), where.warehouse))
    assert (list(found.different), found.stale, ledger.audit()) == ([], 0, {})
    ledger.database.close()


def test_a_view_whose_part_fails(airflow: Airflow) -> None:
    """First build, late rows and a request: the task fails with the reason, good parts are there, the bad one is not."""
    from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

    airflow.land("a", (0, 1), (1, 500), (2, 3), (3, 0))
    airflow.run("m")
    with pytest.raises(AirflowFailException, match=r"v\[2026-10-03T10:01\]: check failed: 1 of 1 values of x"):
        airflow.run("v")
    assert airflow.seen() == {0: [1], 2: [3]}
    airflow.run("w")
    assert airflow.seen("w") == {0: [1], 2: [3]}
    with pytest.raises(TaskDeferred) as waits:
        airflow.run("w", part="2026-10-03T10:01")
    assert "w[2026-10-03T10:01] waits: v 0/1, missing 10:01" in waits.value.trigger.serialize()[1]["waits"]

    airflow.land("a", (0, 1), (1, 50), (2, 3), (3, 0))
    airflow.land("late", (2, 101))
    airflow.run("m")
    with pytest.raises(AirflowFailException, match=r"v\[2026-10-03T10:02\]: check failed: 1 of 2 values of x"):
        airflow.run("v")
    airflow.run("w")
    assert (airflow.seen(), airflow.seen("w")) == ({0: [1], 1: [50], 2: [3]}, {0: [1], 1: [50], 2: [3]})
    with pytest.raises(AirflowFailException, match="check failed"):
        airflow.run("v", part="2026-10-03T10:02")  # asked for, it fails as before
    assert airflow.seen()[2] == [3]

    airflow.land("late", (2, 100))
    skipped = {}
    for name in ("m", "v", "w"):
        airflow.run(name)
        skipped[name] = airflow.skipped
    assert skipped == {"m": [], "v": [], "w": ["announce"]}, "nothing follows from w: nothing is told"
    assert (airflow.seen()[2], airflow.seen("w")[2]) == ([3, 100], [103])
    clean(airflow)


def test_a_backfill_whose_part_fails(airflow: Airflow) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from partwise_airflow.step import passed

    airflow.land("a", (0, 1), (1, 60), (2, 0))
    for name in ("m", "v", "w"):
        airflow.run(name)
    stricter = DEFINITIONS.replace("max_value: 100", "max_value: 50")
    (airflow.folder / "view_defs" / "all.yaml").write_text(stricter)
    where = open_workspace(str(airflow.folder))
    ledger = where.open_ledger(time.time())
    where.take_over(ledger, where.load(), time.time())
    graph = ledger.graph()
    with as_defined(ledger, graph, time.time()) as snapshot:
        asked = ask(backfills.world_of(snapshot), "v", parse_range("2026-10-03T10:00..2026-10-03T10:01", 60))
    with ledger.database.writing(time.time()) as w:
        number = backfills.begin(w, graph, asked, True, "test", lambda _: False).number
    ledger.database.close()
    step = f'{{"workspace": "{airflow.folder}", "table": "v", "backfill": {number}, "run": "r"}}'
    with pytest.raises(AirflowFailException, match=r"v\[2026-10-03T10:01\]: check failed"):
        passed(airflow_step.run_backfill(step, "v", airflow.spark))
    assert airflow.seen() == {0: [1], 1: [60]}


def test_a_source_whose_parts_fail(airflow: Airflow) -> None:
    """Told once, by the run that finds it; waiting for a correction is no news for the next look."""
    from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

    airflow.land("a", (0, 1), (1, -5), (2, 3), (3, 0))
    with pytest.raises(AirflowFailException, match=r"m\[2026-10-03T10:01\] is held back: check failed: 1 of 1"):
        airflow.run("m")
    assert airflow.seen("m") == {0: [1], 2: [3]}  # the other parts are there
    late = airflow.land("late", (2, -7))
    with pytest.raises(AirflowFailException, match=r"landing/late.csv is held back: m\[2026-10-03T10:02\]"):
        airflow.run("m")
    with pytest.raises(AirflowSkipException, match="nothing new has arrived"):
        airflow.run("m")
    late.unlink()
    airflow.run("m")  # nobody waits for it any more
    airflow.land("a", (0, 1), (1, 5), (2, 3), (3, 0))
    airflow.run("m")
    assert airflow.seen("m") == {0: [1], 1: [5], 2: [3]}
    with pytest.raises(AirflowSkipException, match="nothing new has arrived"):
        airflow.run("m")
    airflow.run("v")
    airflow.run("w")
    assert airflow.seen("w") == {0: [1], 1: [5], 2: [3]}
    clean(airflow)
