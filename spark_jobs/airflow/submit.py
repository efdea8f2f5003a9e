"""The application of views with `engine: submit`: spark-submit runs this file with a step as JSON.

The report is the last line of its output that begins with REPORT.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path

FILE = str(Path(__file__).resolve())
REPORT = "PARTWISE_REPORT "


#: Of a driver of ours, but not of one that spark-submit starts: its connection names the master, and people may watch it.
_NOT_SAID = ("spark.master", "spark.ui.enabled")


def settings(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """What spark-submit is told with --conf: Delta, what results depend on, and what the workspace says (`conf`)."""
    from spark_jobs.session.session import driver_settings

    found = driver_settings(master, conf)
    return {name: value for name, value in found.items() if name not in _NOT_SAID} | dict(conf)


def main(step: str) -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from pyspark.sql import SparkSession

    from spark_jobs.airflow.tasks import run_backfill, run_table

    asked = json.loads(step)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    spark = SparkSession.builder.appName(f"partwise {asked['table']}").getOrCreate()
    try:
        report = run_backfill(step, asked["table"], spark) if "backfill" in asked else run_table(step, spark)
    finally:
        spark.stop()
    print(REPORT + json.dumps(report), flush=True)
    for part, message in report["failed"].items():
        print(f"{report['table']}[{part}]: {message}", file=sys.stderr)
    return 1 if report["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
