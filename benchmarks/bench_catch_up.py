"""1,000 small missing parts: one step after the other, against one catch-up, in one warm session.

One by one would take long, so a few parts are computed so and their mean is scaled up; the catch-up is measured
whole. Goals, one by one / ours: at least 30 without self-reference, at least 10 for the helper of a pattern.

    python benchmarks/bench_catch_up.py [PARTS [ALONE]]
"""

from __future__ import annotations

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
from spark_jobs.step import many
from spark_jobs.step.run_step import run_step
from spark_jobs.step.stage import stage

DEFINITIONS = """
source: m
part: 1 minute
time: {column: t, tie: u}
columns: {t: timestamp, u: bigint, g: bigint, x: bigint}
files: landing/*.csv
---
view: per_group
part: 1 minute
update: SELECT g, COUNT(*) AS n, SUM(x) AS s FROM m[j] GROUP BY g
---
view: of_ten
part: 1 minute
update: SELECT g, COUNT(*) AS n, MAX(x) AS top FROM m[j-9..j] GROUP BY g
---
view: joined
part: 1 minute
update: SELECT a.g, a.x, b.n FROM m[j] a LEFT JOIN (SELECT g, COUNT(*) AS n FROM m[j-1] GROUP BY g) b ON a.g = b.g
---
view: high
share: false
part: 1 minute
query: SELECT g, COUNT(*) AS n, SUM(x) AS s FROM m PATTERN [a, b+] WHERE a.x > 20 AND b.x > 20 GROUP BY g
---
view: rolled
share: false
part: 1 minute
strategy: subtract
query: SELECT g, COUNT(*) AS n, SUM(x) AS s FROM m [WINDOW 30 minutes] GROUP BY g
"""
ROWS = 300  # of a part, in 100 groups
WARM = 3
#: What is measured, what must be there before, and the goal.
MEASURED = [
    ("per_group", None, 30),
    ("of_ten", None, 30),
    ("joined", None, 30),
    ("high__helper", None, 10),
    ("rolled__rolling", "rolled__panes", 10),
]


def prepared(spark: SparkSession, at: Path, parts: int) -> Engine:
    """A source with all its parts, and views without any."""
    (at / "view_defs").mkdir(parents=True)
    (at / "view_defs" / "all.yaml").write_text(DEFINITIONS)
    definitions = load(str(at / "view_defs"))
    assert definitions.ok, [str(p) for p in definitions.problems]
    ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", 0.0)
    ledger.define(definitions.graph(), 0.0)
    engine = Engine(spark, ledger, definitions, str(at / "warehouse"), most_parts=parts)
    rows = spark.range(parts * ROWS).selectExpr(
        f"id DIV {ROWS} AS part",
        f"timestamp_seconds(id DIV {ROWS} * 60) AS part_timestamp",
        f"timestamp_seconds(id DIV {ROWS} * 60 + id % 60) AS t",
        "id AS u",
        "xxhash64(id) & 127 AS g",
        "xxhash64(id, 1) & 63 AS x",
    )
    with engine.leased("m") as held:
        handle = storage.create(engine.path("m", 0), schemas.of(dict(definitions.usable["m"].columns)))
        ledger.adopt(held, [(0, None)], engine.now())
        files = stage(rows.repartitionByRange(8, F.col("part")), handle, "all")
        mark = definitions.graph()["m"].fingerprint
        entry = Entry("m", 0, mark, None, None, {p: Content(ROWS, f"{ROWS}:{p}") for p in range(parts)})
        version = storage.commit(handle, files, (), {"kind": "ingest", "entry": entry.to_json()})
        ledger.commit(held, entry, version, engine.now(), keep=True)
    return engine


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def step(engine: Engine, view: str, parts: Parts | None = None) -> int:
    report = run_step(engine, view, parts)
    assert report is not None
    assert not report.failed, report.failed
    return report.parts.count


def first_part(engine: Engine, view: str) -> int:
    return min(s.parts.lo for s in engine.ledger.plan(engine.now(), [view]).steps if s.table == view)


def looped(engine: Engine, view: str, parts: Parts) -> float:
    """Seconds a part, if the step loops over its parts inside."""
    worth, many._ROW = many._ROW, 10**9
    try:
        return timed(lambda: step(engine, view, parts)) / parts.count
    finally:
        many._ROW = worth


def main() -> None:
    parts = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    alone = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    spark = session()
    print(f"{parts:,} missing parts of {ROWS} rows; one by one: mean of {alone} parts, times {parts:,}")
    print(f"{'view':16} {'one by one':>11} {'loop':>8} {'catch-up':>9} {'ratio':>6}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        engine = prepared(spark, Path(folder) / "w", parts)
        for view, before, goal in MEASURED:
            if before:
                step(engine, before)
            first = first_part(engine, view)
            for j in range(first, first + WARM):
                step(engine, view, Parts.single(j))
            at = first + WARM
            each = timed(lambda at=at, view=view: [step(engine, view, Parts.single(j)) for j in range(at, at + alone)])  # type: ignore[misc]
            at += alone
            loop = looped(engine, view, Parts.of((at, at + alone - 1))) if goal < 30 else None
            done: list[int] = []
            took = timed(lambda view=view, done=done: done.append(step(engine, view)))  # type: ignore[misc]
            one, ours = each / alone * parts, took / done[0] * parts
            inside = f"{loop * parts:7.0f}s" if loop is not None else f"{'-':>8}"
            print(f"{view:16} {one:10.0f}s {inside} {ours:8.1f}s {one / ours:6.0f}  (goal {goal})", flush=True)


if __name__ == "__main__":
    main()
