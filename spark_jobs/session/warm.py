"""`python -m spark_jobs.session.warm --remote sc://...`: what a driver does for the first time costs ten times as much; do it now."""

from __future__ import annotations

import argparse
import tempfile
import time

from spark_jobs.session.session import session


def main() -> None:
    parser = argparse.ArgumentParser(description="Warms a Spark Connect server up.")
    parser.add_argument("--remote", required=True)
    remote = parser.parse_args().remote
    began = time.monotonic()
    spark = session(remote=remote)
    with tempfile.TemporaryDirectory() as folder:
        spark.range(10).selectExpr("id", "id % 2 AS part").write.parquet(f"{folder}/plain")
        spark.read.parquet(f"{folder}/plain").groupBy("part").count().collect()
        spark.range(10).write.format("delta").save(f"{folder}/delta")
        spark.read.format("delta").load(f"{folder}/delta").collect()
    spark.stop()
    print(f"warm after {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
