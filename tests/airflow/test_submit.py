"""A view with `engine: submit`: the Airflow task that starts spark-submit. A cold driver takes its time."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from partwise.backfill import ask
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records import backfills
from partwise.ledger.runs import existing
from partwise.reading import read
from partwise.workspace import open_workspace
from spark_jobs.airflow import submit, tasks
from tests.spark.place import Place

DEFINITIONS = """
source: s
part: 1 minute
time: at
columns: {at: timestamp, v: int}
delta: others/s
---
view: total
part: 1 minute
engine: submit
update: SELECT SUM(v) AS total FROM s[j]
checks:
  - expect_column_values_to_be_between: {column: total, max_value: 100}
"""


@pytest.mark.xdist_group("airflow")
def test_spark_submit_is_told_of_delta_and_what_results_depend_on() -> None:
    local = submit.settings("local[2]", {"spark.sql.shuffle.partitions": "7"})
    assert "delta-spark" in local["spark.driver.extraClassPath"]
    assert "Delta" in local["spark.sql.extensions"]
    assert local["spark.sql.session.timeZone"] == "UTC"
    assert local["spark.sql.shuffle.partitions"] == "7"
    assert "spark.master" not in local, "the connection names it"
    assert "delta-spark" in submit.settings("spark://master", {})["spark.jars"]


def backfill(place: Place) -> None:
    """A step of a backfill goes by spark-submit as well, whose driver finds out what belongs to it."""
    from partwise_airflow.tasks.submit import Submitted

    ledger = open_workspace(str(place.folder)).open_ledger(time.time())
    graph = ledger.graph()
    with ledger.database.reading() as r:
        there = existing(r, "total")
    with as_defined(ledger, graph, time.time()) as snapshot:
        asked = ask(backfills.world_of(snapshot), "total", there.ranges[0])
    with ledger.database.writing(time.time()) as w:
        begun = backfills.begin(w, graph, asked, True, "test", lambda _: False)
    Submitted(str(place.folder), "total", place.step("total", backfill=begun.number), submit).run()
    with ledger.database.reading() as r:
        done = backfills.progress(r, graph, begun)["total"]
    assert (done.recomputed.count, done.left.count) == (2, 0)
    with ledger.database.writing(time.time()) as w:
        backfills.finish(w, begun.number, done=True)
    ledger.database.close()


@pytest.mark.slow
def test_the_task_computes_from_a_delta_table_of_others_and_says_what_failed(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    place = Place(tmp_path / "ws", spark, DEFINITIONS)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_SUBMIT", '{"conn_type": "spark", "host": "local[1]"}')
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")

    def deliver(*rows: tuple[int, int]) -> None:
        micros = [1_790_000_000_000_000 // 60_000_000 * 60_000_000 + 60_000_000 * minute for minute, _ in rows]
        at = pa.array(micros, pa.timestamp("us", "UTC"))
        found = pa.table({"at": at, "v": pa.array([v for _, v in rows], pa.int32())})
        write_deltalake(place.folder / "others" / "s", found, mode="append")
        tasks.load_source(place.step("s"), spark)

    def run() -> None:
        from partwise_airflow.render import render

        found: dict[str, Any] = {}
        exec(render(open_workspace(str(place.folder)))["total.py"], found)
        run = SimpleNamespace(conf=None, partition_key=None, run_type="asset_triggered")
        task = found["dag"].get_task("total")
        ti = SimpleNamespace(dag_id="total", task_id="total", map_index=-1)
        task.execute({"dag_run": run, "params": {"part": None}, "run_id": "r", "ti": ti})

    deliver((0, 1), (0, 2), (1, 4), (2, 0))
    run()
    assert sorted(read("SELECT total FROM total", str(place.folder)).rows) == [(3,), (4,)]
    backfill(place)
    deliver((2, 500), (3, 0))
    with pytest.raises(AirflowFailException, match="check failed: 1 of 1 values of total"):
        run()
    assert sorted(read("SELECT total FROM total", str(place.folder)).rows) == [(3,), (4,)]
