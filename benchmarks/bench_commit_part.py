"""One part of a table: stage, digest and commit, against `replaceWhere` written manually.

Both compute the same query from the same input and replace the same part in tables of their own. Runs
alternate, so that other work on the machine hurts both alike; ratios of one pair each, then medians.
The hand-written way has neither digests nor a ledger entry.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from partwise import storage
from partwise.parts import Parts
from spark_jobs.session.session import session
from spark_jobs.step import read
from spark_jobs.step.digest import digests
from spark_jobs.step.stage import stage, with_part

PART, LENGTH = 29_000_000, 60


def query(spark: SparkSession, source: str) -> DataFrame:
    rows = spark.read.parquet(source)
    return rows.selectExpr("src", "dest", "loss * 2 AS loss", "CONCAT(src, '-', dest) AS pair", "n + 1 AS n")


def ours(
    spark: SparkSession, source: str, path: str, part: int, step: str, rows: int, seconds: dict[str, float]
) -> None:
    result = with_part(query(spark, source), part, LENGTH)
    handle = storage.open_at(path) if storage.exists(path) else storage.create(path, result.schema.json())
    change = storage.rewrite(handle, Parts.single(part))
    start = time.perf_counter()
    files = stage(result, handle, step, expected=rows)
    staged = time.perf_counter()
    found = digests(read.staged(spark, handle, files), handle.schema)
    digested = time.perf_counter()
    storage.commit(handle, files, change.removed, {"step": step, "digests": found})
    storage.finish(path, step)
    seconds["stage"] = staged - start
    seconds["digest"] = digested - staged
    seconds["commit"] = time.perf_counter() - digested


def by_hand(spark: SparkSession, source: str, path: str, part: int) -> None:
    result = with_part(query(spark, source), part, LENGTH)
    result.write.format("delta").mode("overwrite").option("replaceWhere", f"part = {part}").save(path)


def measure(spark: SparkSession, folder: Path, rows: int, runs: int, new: bool) -> None:
    source = str(folder / f"source-{rows}")
    if not Path(source).exists():
        spark.range(0, rows, 1, 2).selectExpr(
            "CONCAT('node', id % 100) AS src", "CONCAT('node', id % 97) AS dest", "rand(7) * 100 AS loss", "id AS n"
        ).write.parquet(source)
    kind = "new" if new else "same"
    mine, hand = str(folder / f"ours-{rows}-{kind}"), str(folder / f"hand-{rows}-{kind}")
    spark.sql(
        f"CREATE TABLE delta.`{hand}` (part BIGINT, part_timestamp TIMESTAMP, src STRING, dest STRING, loss DOUBLE, "
        "pair STRING, n BIGINT) USING delta"
    )
    ratios, pieces = [], []
    for run in range(-2, runs):  # the first two warm up
        part = PART + run if new else PART
        times, seconds = [], {}
        for act in (
            lambda part=part, run=run, seconds=seconds: ours(spark, source, mine, part, f"r{run + 2}", rows, seconds),
            lambda part=part: by_hand(spark, source, hand, part),
        ):
            start = time.perf_counter()
            act()
            times.append(time.perf_counter() - start)
        if run >= 0:
            ratios.append(times[0] / times[1])
            pieces.append((*times, seconds))
    middle = {name: statistics.median(p[2][name] for p in pieces) for name in pieces[0][2]}
    print(
        f"{rows:>9,} rows, {kind} part: ours / replaceWhere = {statistics.median(ratios):.2f} "
        f"(from {min(ratios):.2f} to {max(ratios):.2f}, n={runs}); "
        f"ours {statistics.median(p[0] for p in pieces):.2f} s "
        f"({', '.join(f'{name} {value:.2f}' for name, value in middle.items())}), "
        f"manually {statistics.median(p[1] for p in pieces):.2f} s",
        flush=True,
    )


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        for rows in (10_000, 1_000_000):
            for new in (True, False):
                measure(spark, Path(folder), rows, runs, new)
    spark.stop()


if __name__ == "__main__":
    main()
