"""A worker: it runs the tasks of rendered DAGs one after the other, on real Spark.

Only the session is not the connection's: it is the one that all tests share.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from partwise.reading import read
from partwise.workspace import open_workspace
from tests.spark.place import Place


class Airflow(Place):
    """Runs the tasks of a DAG as a worker would; what a task raises is what Airflow would see."""

    def __init__(self, folder: Path, spark: SparkSession, definitions: str) -> None:
        super().__init__(folder, spark, definitions)
        from partwise_airflow.render import render

        self.files = render(open_workspace(str(folder)))

    def tasks(self, name: str, part: str | None = None) -> list[Any]:
        """One run; `part`: requested manually. The last task, which tells Airflow's database, is left out."""
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
