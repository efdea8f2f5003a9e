"""A backfill from the page, in a real browser, carried out by real Spark. Airflow stands aside: the steps are its tasks'."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request
from playwright.sync_api import Browser, expect
from pyspark.sql import SparkSession

from partwise.backfill import ask
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records import backfills
from partwise.parts import parse_range
from partwise.reading import read
from partwise.workspace import open_workspace
from spark_jobs.airflow import tasks
from spark_jobs.run import run_all
from tests.page.serve import Runs, application, serving
from tests.spark.landing import DAY, DEFINITION, World

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("browser")]

VIEWS = """
---
view: by_hand
part: 1 minute
repair: manual
update: SELECT SUM(loss) AS loss FROM m[j]
---
view: after
part: 1 minute
update: SELECT loss + 1 AS loss FROM by_hand[j]
"""


@dataclass
class Carried(Runs):
    """What is started is carried out, table by table, as the tasks of the DAG do it."""

    spark: Any = None
    workspace: str = ""
    threads: list[threading.Thread] = field(default_factory=list)

    async def trigger(self, request: Request, dag: str, values: dict[str, Any]) -> str:
        self.threads.append(threading.Thread(target=self.carry_out, args=(values,), daemon=True))
        self.threads[-1].start()
        return await super().trigger(request, dag, values)

    def carry_out(self, form: dict[str, Any]) -> None:
        ledger = open_workspace(self.workspace).open_ledger(time.time())
        try:
            graph = ledger.graph()
            with as_defined(ledger, graph, time.time()) as snapshot:
                asked = ask(backfills.world_of(snapshot), form["table"], parse_range(form["range"], 60))
            with ledger.database.writing(time.time()) as w:
                number = backfills.begin(w, graph, asked, form["downstream"], "test", lambda _: False).number
            for name in (n for n in graph.order if graph[n].kind == "view"):
                step = {"workspace": self.workspace, "table": name, "backfill": number, "run": "r"}
                tasks.run_backfill(json.dumps(step), name, self.spark)
            with ledger.database.writing(time.time()) as w:
                backfills.finish(w, number, done=True)
            self.state = "success"
        finally:
            ledger.database.close()


def test_what_is_repaired_by_hand_is_repaired_from_the_page(
    tmp_path: Path, spark: SparkSession, browser: Browser
) -> None:
    world = World(spark, tmp_path / "ws").define(DEFINITION + VIEWS)
    for name, rows in (("first.csv", [(10, "x", 1.0), (11, "x", 2.0), (12, "x", 4.0)]), ("late.csv", [(10, "y", 8.0)])):
        world.csv(name, *rows)
        world.ingest()
        run_all(world.engine)
    sums = "SELECT v.loss, a.loss FROM by_hand v JOIN after a ON a.part = v.part ORDER BY v.part"
    assert read(sums, str(world.folder)).rows == [(1.0, 2.0), (2.0, 3.0)], "nobody requested the repair yet"
    runs = Carried(spark=spark, workspace=str(world.folder))
    with serving(application(world.folder, None, runs)) as address:
        page = browser.new_context(viewport={"width": 1300, "height": 800}, timezone_id="UTC").new_page()
        page.goto(f"{address}/partwise/#table=by_hand&part=2026-10-03T00:10")
        expect(page.locator("#panel .why")).to_contain_text("manual")
        page.get_by_role("button", name="Show the plan").click()
        expect(page.locator(".plan")).to_contain_text("after")
        page.get_by_role("button", name="Backfill 1 part").click()
        expect(page.locator(".started")).to_contain_text("finished", timeout=30_000)
        for table in ("by_hand", "after"):
            shown = "([t, m]) => partsPage.boxOf(t, m).word === 'repaired'"
            page.wait_for_function(shown, arg=[table, (DAY + 10) * 60 + 30], timeout=20_000)
        page.context.close()
        runs.threads[0].join(20)
    assert read(sums, str(world.folder)).rows == [(9.0, 10.0), (2.0, 3.0)]
    world.ledger.database.close()
