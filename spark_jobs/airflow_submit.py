"""The application of views with `engine: submit`: spark-submit runs this file with a step as JSON.

The report is the last line of its output that begins with REPORT.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

FILE = str(Path(__file__).resolve())
REPORT = "PARTWISE_REPORT "


def main(step: str) -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from pyspark.sql import SparkSession

    from spark_jobs.airflow_step import run_table

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    spark = SparkSession.builder.appName(f"partwise {json.loads(step)['table']}").getOrCreate()
    try:
        report = run_table(step, spark)
    finally:
        spark.stop()
    print(REPORT + json.dumps(report), flush=True)
    for part, message in report["failed"].items():
        print(f"{report['table']}[{part}]: {message}", file=sys.stderr)
    return 1 if report["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
