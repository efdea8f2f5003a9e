"""A workspace as Airflow's tasks find it: definitions, a folder where files land, and steps as JSON."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from partwise.workspace import open_workspace
from spark_jobs.airflow import tasks
from spark_jobs.engine import Engine
from spark_jobs.verify.verify import Verified, verify


class Place:
    """Its source (`s`, unless a test says otherwise) has a time `at` and a number `x`."""

    def __init__(self, folder: Path, spark: SparkSession, definitions: str) -> None:
        self.folder, self.spark = folder, spark
        (folder / "view_defs").mkdir(parents=True)
        (folder / "landing").mkdir()
        (folder / "partwise.yaml").touch()
        (folder / "view_defs" / "all.yaml").write_text(definitions)

    def land(self, name: str, *rows: tuple[int, int]) -> Path:
        """A file with these minutes and values, old enough to be read; one of this name is replaced."""
        file = self.folder / "landing" / f"{name}.csv"
        before = file.stat().st_mtime if file.exists() else time.time() - 600
        file.write_text("at,x\n" + "".join(f"2026-10-03T10:{minute:02d}:00,{x}\n" for minute, x in rows))
        os.utime(file, (before + 1, before + 1))
        return file

    def step(self, table: str, **more: Any) -> str:
        return json.dumps({"workspace": str(self.folder), "table": table, "run": "r", **more})

    def load(self, name: str | None = None, *rows: tuple[int, int]) -> dict[str, Any]:
        """Take in what has landed, with a file of this name and these rows."""
        if name is not None:
            self.land(name, *rows)
        return tasks.load_source(self.step("s"), self.spark)

    def run(self, table: str, **more: Any) -> dict[str, Any]:
        return tasks.run_table(self.step(table, **more), self.spark)

    def verified(self) -> Verified:
        where = open_workspace(str(self.folder))
        ledger = where.open_ledger(time.time())
        try:
            assert ledger.audit() == {}
            return verify(Engine(self.spark, ledger, where.load(), where.warehouse))
        finally:
            ledger.database.close()
