"""Ingest of many small files, with provenance, parts and digests, against Spark's plain load into a Delta table.

Both read the same files with the same listing threshold. Runs alternate, each into tables of its own; ratios of
one pair each, then medians. Who goes first changes with every pair. The plain load knows no files, no parts and no digests.

    python benchmarks/bench_ingest.py [runs]
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import SparkSession

from partwise.workspace import open_workspace
from spark_jobs.engine import Engine
from spark_jobs.ingest import ingest
from spark_jobs.session.session import session

#: Of the plain load, for 1,000 files of 1,000 rows.
GOAL = 1.4
DEFINITION = """
source: m
part: 1 minute
time: event_time
columns: {event_time: timestamp, src: string, dest: string, loss: double}
files: landing/m/*.csv
"""


def files(folder: Path, count: int, rows: int) -> None:
    """One file a minute."""
    folder.mkdir(parents=True)
    for at in range(count):
        hour, minute = at // 60 % 24, at % 60
        stamp = f"2026-10-{1 + at // 1440:02d}T{hour:02d}:{minute:02d}"
        lines = [f"{stamp}:{n % 60:02d},node{n % 100},node{n % 97},{n * 7 % 1000 / 10}" for n in range(rows)]
        (folder / f"{at:05d}.csv").write_text("event_time,src,dest,loss\n" + "\n".join(lines) + "\n")


def ours(spark: SparkSession, base: Path, landing: Path, count: int, rows: int) -> float:
    """A new workspace; only the ingest is timed."""
    shutil.rmtree(base, ignore_errors=True)
    (base / "view_defs").mkdir(parents=True)
    (base / "landing").mkdir()
    (base / "partwise.yaml").write_text("")
    (base / "view_defs" / "m.yaml").write_text(DEFINITION)
    (base / "landing" / "m").symlink_to(landing)
    workspace = open_workspace(str(base), {})
    definitions, ledger = workspace.load(), workspace.open_ledger(time.time())
    workspace.take_over(ledger, definitions, time.time())
    engine = Engine(spark, ledger, definitions, workspace.warehouse)
    start = time.perf_counter()
    done = ingest(engine, workspace)[0]
    seconds = time.perf_counter() - start
    assert (done.files, done.rows, done.quarantined) == (count, count * rows, 0), done
    ledger.database.close()
    return seconds


def plain(spark: SparkSession, target: Path, landing: Path) -> float:
    shutil.rmtree(target, ignore_errors=True)
    start = time.perf_counter()
    columns = "event_time timestamp, src string, dest string, loss double"
    found = spark.read.schema(columns).option("header", "true").csv(f"{landing}/*.csv")
    found.write.format("delta").save(str(target))
    return time.perf_counter() - start


def measure(spark: SparkSession, folder: Path, count: int, rows: int, runs: int, goal: str = "") -> None:
    landing = folder / f"files-{count}"
    files(landing, count, rows)
    ratios, mine, theirs = [], [], []
    for run in range(runs + 1):
        if run % 2:
            b = plain(spark, folder / "plain", landing)
        a = ours(spark, folder / "ours", landing, count, rows)
        if not run % 2:
            b = plain(spark, folder / "plain", landing)
        if run:  # the first pair warms up
            ratios.append(a / b)
            mine.append(a)
            theirs.append(b)
    print(
        f"{count:6} files x {rows:5} rows: ratio {statistics.median(ratios):.2f} "
        f"(from {min(ratios):.2f} to {max(ratios):.2f}); ours {statistics.median(mine):.1f} s, "
        f"plain {statistics.median(theirs):.1f} s, {runs} runs{goal}",
        flush=True,
    )


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    spark = session(master="local[2]")  # with the heap that Spark gives a driver by itself: 1 GB
    with tempfile.TemporaryDirectory() as folder:
        measure(spark, Path(folder), 1_000, 1_000, runs, f"; goal: {GOAL}")
        measure(spark, Path(folder), 10_000, 100, max(2, runs - 1), "; goal: one pass")
    spark.stop()


if __name__ == "__main__":
    main()
