"""A file that lands during a long-lived session of Spark Connect is seen: no listing is remembered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT

DEFINITIONS = """
source: sales
part: 1 minute
time: at
columns: {at: timestamp, pieces: int}
files: landing/*.csv
---
view: sold
part: 1 minute
update: SELECT SUM(pieces) AS pieces FROM sales[j]
---
view: so_far
part: 1 minute
initialize: SELECT SUM(pieces) AS pieces FROM sales[i]
update: |
  SELECT COALESCE(p.pieces, 0) + COALESCE(n.pieces, 0) AS pieces
  FROM so_far[j-1] p CROSS JOIN (SELECT SUM(pieces) AS pieces FROM sales[j]) n
"""
SESSION = """
import sys, time
from pathlib import Path
from partwise.workspace import open_workspace
from spark_jobs.engine import Engine
from spark_jobs.ingest import ingest
from spark_jobs.run import run_all
from spark_jobs.session.session import session
from partwise import storage

here, spark = Path.cwd(), session(remote=sys.argv[1])
where = open_workspace(str(here))
ledger = where.open_ledger(time.time())
engine = Engine(spark, ledger, where.take_over(ledger, where.load(), time.time()), where.warehouse)
for number in range(3):
    rows = [f"2026-10-03T10:{minute:02d}:{number:02d},{10 ** number}" for minute in range(4)]
    (here / "landing" / f"{number}.csv").write_text("\\n".join(["at,pieces", *rows, ""]))
    ingest(engine, where, settle=0)
    run_all(engine)
    for table in ("sold", "so_far"):
        found = storage.open_at(engine.path(table, 0)).table.to_pyarrow_table().sort_by("part")
        print(table, found["pieces"].to_pylist())
"""


@pytest.mark.spark
@pytest.mark.own_process
def test_a_file_that_lands_meanwhile_is_seen(driver: str, tmp_path: Path) -> None:
    for name in ("view_defs", "landing"):
        (tmp_path / name).mkdir()
    (tmp_path / "partwise.yaml").write_text("")
    (tmp_path / "view_defs" / "all.yaml").write_text(DEFINITIONS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", SESSION, driver]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "sold [1, 1, 1]",
        "so_far [1, 2, 3]",
        "sold [11, 11, 11]",
        "so_far [11, 22, 33]",
        "sold [111, 111, 111]",
        "so_far [111, 222, 333]",
    ]
