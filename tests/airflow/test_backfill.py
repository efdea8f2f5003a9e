"""A backfill as Airflow carries it out: plan, waves and report, one after the other, on real Spark.

Only the session is not the connection's: it is the one that all tests share.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.ledger.records import backfills
from partwise.workspace import open_workspace
from spark_jobs.airflow import tasks
from tests.spark.place import Place

pytestmark = pytest.mark.spark

DAY = "2026-10-03T10:"
DEFINITIONS = """
source: s
part: 1 minute
time: at
columns: {at: timestamp, x: int}
files: landing/*.csv
---
view: v
part: 1 minute
update: SELECT SUM(x) AS x FROM s[j]
---
view: w
part: 1 minute
repair: manual
update: SELECT x + 1 AS x FROM v[j]
---
view: total
part: 1 minute
initialize: SELECT x FROM v[i]
update: SELECT t.x + v.x AS x FROM total[j-1] t CROSS JOIN v[j] v
"""


class Backfills(Place):
    """Tasks of the backfill's DAG, one after the other."""

    def plan(self, **form: Any) -> dict[str, Any]:
        from partwise_airflow.service.backfill import PlanBackfill

        blank = {"upstream": False, "downstream": True, "dry_run": False, "resume": None}
        task = PlanBackfill(task_id="plan", depth=5, workspace=str(self.folder))
        found: dict[str, Any] = task.execute({"params": blank | form, "run_id": "r"})
        return found

    def backfill(self, **form: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The steps by table, and the report."""
        from partwise_airflow.service.backfill import ReportBackfill

        planned = self.plan(**form)
        done = {}
        for name in (name for wave in planned["waves"] for name in wave):
            step = self.step(name, backfill=planned["number"])
            done[name] = tasks.run_backfill(step, name, self.spark)
        context = {"ti": SimpleNamespace(xcom_pull=lambda task_ids: planned)}
        return done, ReportBackfill(task_id="report", workspace=str(self.folder)).execute(context)

    def stop(self, number: int) -> None:
        ledger = open_workspace(str(self.folder)).open_ledger(time.time())
        with ledger.database.writing(time.time()) as w:
            backfills.finish(w, number, False)
        ledger.database.close()


def test_a_backfill_repairs_manual_views_goes_on_to_the_end_and_leaves_what_others_repair(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Backfills(tmp_path / "ws", spark, DEFINITIONS)
    place.load("a", *((minute, minute + 1) for minute in range(7)))
    for name in ("v", "w", "total"):
        place.run(name)
    place.load("late", (0, 10), (4, 10))
    # Steps of two parts; a run of the view itself would do one of them and leave the rest to the next run.
    (place.folder / "partwise.yaml").write_text("chunk_parts: 2\n")
    monkeypatch.setattr(tasks, "ROUNDS", 1)
    capsys.readouterr()
    steps, report = place.backfill(table="v", range=f"{DAY}00..{DAY}03")
    assert steps.keys() == {"v", "w", "total"}
    # w is repaired manually, and this is the manual request. v[10:04] is stale and nobody requested it: total[10:04] waits for it.
    assert report == [
        {"table": "v", "recomputed": "4", "changed": "1", "unchanged": "3", "left": "0"},
        {"table": "total", "recomputed": "4", "changed": "4", "unchanged": "0", "left": "1"},
        {"table": "w", "recomputed": "1", "changed": "1", "unchanged": "0", "left": "0"},
    ]
    assert (
        "1 of them still due: they wait for other stale parts, and the next run computes them."
        in capsys.readouterr().out
    )
    monkeypatch.setattr(tasks, "ROUNDS", 10)
    for name in ("v", "total"):
        place.run(name)
    # One that was stopped before its first step goes on, with all that it requested.
    number = place.plan(table="w", range=f"{DAY}04..{DAY}05")["number"]
    place.stop(number)
    steps, report = place.backfill(table="w", range="", resume=number)
    assert report == [{"table": "w", "recomputed": "2", "changed": "1", "unchanged": "1", "left": "0"}]
    assert place.verified().different == ()
