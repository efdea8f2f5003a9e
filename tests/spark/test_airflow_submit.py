"""A view with `engine: submit`: its application, started by spark-submit. A cold driver takes its time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from spark_jobs.airflow_submit import FILE, REPORT
from tests.spark.test_airflow_step import Place

pytestmark = pytest.mark.slow


def test_it_finds_everything_by_the_step_alone(tmp_path: Path, spark: SparkSession) -> None:
    place = Place(tmp_path / "ws", spark)
    place.land("a", (0, 1), (1, 2), (2, 4))
    place.load()
    home = Path(pyspark.__file__).parent
    options = ["--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command = [str(home / "bin" / "spark-submit"), *options, FILE, place.step("inverse")]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=place.folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith(REPORT))
    assert json.loads(line.removeprefix(REPORT))["steps"][0]["parts"] == ["2026-10-03T10:00..2026-10-03T10:01"]
