"""What is imported ahead of tasks: by a real Job, in a process of its own, which then forks as Airflow does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from partwise.workspace import open_workspace

ROOT = Path(__file__).resolve().parents[2]

#: As the scheduler and the dag-processor begin: sys.argv is their command, and they make a Job.
BEGIN = """
import json, os, sys, threading
sys.argv = ["airflow", *{command!r}]
from airflow.jobs.job import Job
before = set(sys.modules)
Job()
threads = [open(f"/proc/self/task/{{t}}/comm").read().strip() for t in os.listdir("/proc/self/task")]
found = {{
    "new": sorted(set(sys.modules) - before),
    "missing": [name for name in {modules!r} if name not in sys.modules],
    "python": [t.name for t in threading.enumerate()],
    "threads": threads,
}}
"""

#: A child as a task: it looks around, then works with Spark, Delta and the ledger.
FORK = """
child = os.fork()
if child == 0:
    try:
        before = set(sys.modules)
        from partwise_airflow.preload import Preload
        from airflow.sdk.execution_time.task_runner import TaskRunnerMarker
        Preload().on_starting(TaskRunnerMarker())
        from pyspark.sql import SparkSession
        from spark_jobs.airflow.tasks import _engine
        spark = SparkSession.builder.remote({remote!r}).getOrCreate()
        with _engine(spark, {{"workspace": {workspace!r}}}) as (engine, _):
            rows = spark.range(7).toPandas()["id"].sum()
        import deltalake, pyarrow
        deltalake.write_deltalake({table!r}, pyarrow.table({{"x": [1, 2]}}))
        count = deltalake.DeltaTable({table!r}).to_pyarrow_table().num_rows
        told = {{"rows": int(rows), "count": count, "more": sorted(set(sys.modules) - before)}}
        open({answer!r}, "w").write(json.dumps(told))
        spark.stop()
        os._exit(0)
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
assert os.waitpid(child, 0)[1] == 0
"""


def python(code: str, **more: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]), **more}
    code += '\nprint("FOUND " + json.dumps(found))\n'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    return json.loads(line.removeprefix("FOUND "))


@pytest.mark.parametrize("command, client", [("scheduler", True), ("dag-processor", False), ("triggerer", None)])
@pytest.mark.xdist_group("airflow")
def test_each_component_imports_what_is_forked_from_it(command: str, client: bool | None) -> None:
    from partwise_airflow.preload import MODULES

    found = python(BEGIN.format(command=[command, "--skip-serve-logs"], modules=MODULES.get(command, ())))
    assert ("pyspark.sql.connect.session" in found["new"]) is bool(client), "Spark only where steps come from"
    assert ("partwise_airflow.service.backfill" in found["new"]) is (client is not None)
    assert found["missing"] == [], "every name exists"
    assert found["python"] == ["MainThread"]


@pytest.mark.xdist_group("airflow")
def test_a_scheduler_whose_tasks_run_elsewhere_imports_nothing() -> None:
    celery = "airflow.providers.celery.executors.celery_executor.CeleryExecutor"
    found = python(BEGIN.format(command=["scheduler"], modules=()), AIRFLOW__CORE__EXECUTOR=celery)
    assert "pyspark.sql.connect.session" not in found["new"]


@pytest.mark.spark
def test_after_the_scheduler_imported_all_a_fork_works_with_spark_delta_and_the_ledger(
    driver: str, workspace: Path, tmp_path: Path
) -> None:
    """gRPC, Arrow and delta-rs do not survive a fork once they are in use: they must be loaded, and no more."""
    open_workspace(str(workspace)).open_ledger(time.time()).database.close()  # making one takes more than opening it
    answer = tmp_path / "answer"
    fork = FORK.format(remote=driver, workspace=str(workspace), table=str(tmp_path / "t"), answer=str(answer))
    found = python(BEGIN.format(command=["scheduler"], modules=()) + fork)
    assert found["python"] == ["MainThread"]
    assert not [name for name in found["threads"] if "grpc" in name or "tokio" in name], found["threads"]
    told = json.loads(answer.read_text())
    assert (told["rows"], told["count"]) == (21, 2)
    assert not [n for n in told["more"] if n.partition(".")[0] in ("partwise_airflow", "spark_jobs", "grpc")]
    assert len(told["more"]) < 100, " ".join(told["more"])
