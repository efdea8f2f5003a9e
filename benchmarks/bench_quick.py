"""What people wait for, as ratios in one run: nothing to do, a small step, a chain of small parts.

    python benchmarks/bench_quick.py [ROUNDS]

`nothing to do`: CPU of `partwise run` with nothing to do, of that of `partwise status`. Goal: at most 2.
`small step`: a new part of 10,000 and of 1,000,000 rows with results that come as Arrow, of the same written by Spark.
Goals: at most 0.5, and at most 1.
`chain`: 200 parts of a running total, one by one, of the same chained in memory. Goal: at least 8.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench_step import QUERIES, WARM, prepared
from pyspark.sql import SparkSession

from partwise.parts import Parts
from spark_jobs.engine import Engine
from spark_jobs.session.session import session
from spark_jobs.step.run_step import run_step

ROOT = Path(__file__).resolve().parents[1]
CHAINED = 200
TOTAL = (
    "SELECT g, SUM(x) AS x FROM (SELECT g, x FROM {m} UNION ALL SELECT g, x FROM v[j-1]) GROUP BY g\n"
    "initialize: SELECT g, SUM(x) AS x FROM m[i] GROUP BY g"
)


def cpu(folder: Path, *words: str) -> float:
    """Seconds of CPU that a command takes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "partwise.cli", *words], cwd=folder, env=environment, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def nothing_to_do(rounds: int) -> float:
    with tempfile.TemporaryDirectory() as at:
        folder = Path(at) / "w"
        cpu(Path(at), "init", str(folder))
        cpu(folder, "run")
        return statistics.median(cpu(folder, "run") / cpu(folder, "status") for _ in range(rounds))


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def small_step(spark: SparkSession, query: str, size: int, rounds: int) -> float:
    """Seconds of a part by Arrow, of those of the same part written by Spark."""
    with tempfile.TemporaryDirectory() as at:
        engines = [prepared(spark, Path(at) / name, query, WARM + rounds, size) for name in ("arrow", "spark")]
        pair: list[Engine] = [engines[0], replace(engines[1], small_rows=0)]
        ratios = []
        for part in range(WARM + rounds):
            both = {}
            for which in (0, 1) if part % 2 else (1, 0):
                both[which] = timed(lambda which=which, part=part: run_step(pair[which], "v", Parts.single(part)))  # type: ignore[misc]
            ratios.append(both[0] / both[1])
        return statistics.median(ratios[WARM:])


def chain(spark: SparkSession) -> float:
    """Seconds of all parts one by one, of those of the same chained."""
    times = []
    for rows in (100_000, 0):
        with tempfile.TemporaryDirectory() as at:
            engine = replace(prepared(spark, Path(at) / "w", TOTAL, CHAINED, 100), small_rows=rows)
            run_step(engine, "v", Parts.single(0))
            run_step(engine, "v", Parts.single(1))
            began = time.perf_counter()
            while run_step(engine, "v") is not None:
                pass
            times.append(time.perf_counter() - began)
    print(f"  chained {times[0]:.1f} s, one by one {times[1]:.1f} s")
    return times[1] / times[0]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"nothing to do / status, CPU: {nothing_to_do(rounds):.2f}  (goal 2)", flush=True)
    spark = session()
    for size, goal in ((10_000, 0.5), (1_000_000, 1.0)):
        for name, query in QUERIES.items():
            print(
                f"small step, {size:,} rows, {name}: {small_step(spark, query, size, rounds):.2f}  (goal {goal})",
                flush=True,
            )
    print(f"200 parts of a running total, one by one / chained: {chain(spark):.1f}  (goal 8)", flush=True)


if __name__ == "__main__":
    main()
