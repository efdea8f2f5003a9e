"""One part, from the plan to the ledger, against the same query written manually with `replaceWhere`.

Both run in one warm session on the same source, turn by turn; what counts is the median of the ratios.
Goals for a new part: at most 1.10 with 1,000,000 rows, at most 0.5 with 10,000.

    python benchmarks/bench_step.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from partwise import storage
from partwise.compile.load import load
from partwise.ledger.open import open_ledger
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts
from partwise.storage import schema as schemas
from spark_jobs.engine import Engine
from spark_jobs.session.session import session
from spark_jobs.step.run_step import run_step
from spark_jobs.step.stage import stage

SOURCE = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: bigint, x: double, y: double}
files: landing/*.csv
"""
QUERIES = {
    "aggregated": "SELECT g, COUNT(*) AS n, SUM(x) AS s, MAX(y) AS top FROM {m} GROUP BY g",
    "row by row": "SELECT t, g, x + y AS z, CASE WHEN x > 0.5 THEN 'high' ELSE 'low' END AS k FROM {m} WHERE y < 0.9",
}
GOALS = {10_000: 0.5, 1_000_000: 1.10}
WARM = 3


def rows(spark: SparkSession, parts: int, size: int) -> object:
    numbers = spark.range(parts * size).selectExpr(f"id DIV {size} AS part", "id")
    return numbers.selectExpr(
        "part",
        "timestamp_seconds(part * 60) AS part_timestamp",
        "timestamp_seconds(part * 60 + id % 60) AS t",
        "xxhash64(id) & 1023 AS g",
        "(xxhash64(id, 1) & 65535) / 65536D AS x",
        "(xxhash64(id, 2) & 65535) / 65536D AS y",
    )


def prepared(spark: SparkSession, at: Path, query: str, parts: int, size: int, warehouse: str | None = None) -> Engine:
    """A workspace whose source has all its parts, and whose view has none."""
    (at / "view_defs").mkdir(parents=True)
    text = query.format(m="m[j]")
    (at / "view_defs" / "all.yaml").write_text(f"{SOURCE}---\nview: v\npart: 1 minute\nupdate: |\n  {text}\n")
    definitions = load(str(at / "view_defs"))
    assert definitions.ok, [str(p) for p in definitions.problems]
    ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", 0.0)
    ledger.define(definitions.graph(), 0.0)
    engine = Engine(spark, ledger, definitions, warehouse or str(at / "warehouse"))
    with engine.leased("m") as held:
        source = definitions.usable["m"]
        handle = storage.create(engine.path("m", 0), schemas.of(dict(source.columns)))
        ledger.adopt(held, [(0, None)], engine.now())
        placed = rows(spark, parts, size).repartitionByRange(parts, F.col("part"))
        files = stage(placed, handle, "all")
        mark = definitions.graph()["m"].fingerprint
        entry = Entry("m", 0, mark, None, None, {p: Content(size, f"{size}:{p}") for p in range(parts)})
        version = storage.commit(handle, files, (), {"kind": "ingest", "entry": entry.to_json()})
        ledger.commit(held, entry, version, engine.now(), keep=True)
    return engine


def by_engine(engine: Engine, part: int) -> None:
    steps = engine.ledger.plan(engine.now()).steps
    assert steps
    report = run_step(engine, "v", Parts.single(part))
    assert report is not None
    assert report.changed.count == 1


def by_hand(spark: SparkSession, engine: Engine, query: str, table: str, part: int) -> None:
    source = spark.read.format("delta").load(engine.path("m", 0)).where(f"part = {part}")
    source.drop("part", "part_timestamp").createOrReplaceTempView("by_hand")
    result = spark.sql(query.format(m="by_hand")).selectExpr(
        f"{part}L AS part", f"timestamp_seconds({part * 60}L) AS part_timestamp", "*"
    )
    result.write.format("delta").mode("overwrite").option("replaceWhere", f"part = {part}").save(table)


def timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(spark: SparkSession, at: Path, query: str, size: int, rounds: int) -> tuple[float, float, float]:
    """Seconds of both, and the median of the ratios."""
    parts = WARM + rounds
    engine = prepared(spark, at, query, parts, size)
    ours, theirs = [], []
    for part in range(parts):
        pair: list[tuple[list[float], Callable[[], None]]] = [
            (ours, lambda part=part: by_engine(engine, part)),  # type: ignore[misc]
            (theirs, lambda part=part: by_hand(spark, engine, query, str(at / "by_hand"), part)),  # type: ignore[misc]
        ]
        for times, work in pair if part % 2 else reversed(pair):
            times.append(timed(work))
    ours, theirs = ours[WARM:], theirs[WARM:]
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return statistics.median(ours), statistics.median(theirs), statistics.median(ratios)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    spark = session()
    print(
        f"one new part, median of {rounds} rounds\n{'rows':>9}  {'query':12} {'step':>7} {'manually':>8} {'ratio':>6}"
    )
    for size, goal in GOALS.items():
        for name, query in QUERIES.items():
            with tempfile.TemporaryDirectory() as folder:
                ours, theirs, ratio = measure(spark, Path(folder) / "w", query, size, rounds)
            print(f"{size:9,}  {name:12} {ours:6.2f}s {theirs:7.2f}s {ratio:6.2f}  (goal {goal})", flush=True)


if __name__ == "__main__":
    main()
