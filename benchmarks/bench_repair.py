"""One late row among 100,000 groups: recomputing the part against repairing it, turn by turn in one session.

What counts is the median of the ratios recompute / repair. Also how often the cost rule would have taken the quicker way.

    python benchmarks/bench_repair.py [ROWS ...]      (default 200000 1000000 5000000)
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from partwise import storage
from partwise.choose.repair import Figures, choose
from partwise.compile.load import load
from partwise.ledger.open import open_ledger
from partwise.ledger.write.commit import Content, Entry
from partwise.storage import schema as schemas
from spark_jobs.engine import Engine
from spark_jobs.session.session import session
from spark_jobs.step.run_step import run_step
from spark_jobs.step.stage import stage

TEXT = """
source: m
part: 1 minute
time: t
columns: {{t: timestamp, g: bigint, x: bigint, y: double}}
files: landing/*.csv
---
dimension: d
columns: {{g: bigint, name: string}}
files: d.csv
---
view: v
part: 1 minute
update: |
  {query}
"""
QUERIES = {
    "group": "SELECT g, COUNT(*) AS n, SUM(x) AS s, COUNT(x) AS c, MAX(y) AS top FROM m[j] GROUP BY g",
    "join": "SELECT m.g, d.name, COUNT(*) AS n, SUM(x) AS s, COUNT(x) AS c FROM m[j] m JOIN d ON d.g = m.g "
    "GROUP BY m.g, d.name",
}
GROUPS, ROUNDS, WARM = 100_000, 5, 1
WAYS = ("recompute", "keys", "merge")


def rows(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count).selectExpr(
        "0L AS part",
        "timestamp_seconds(0) AS part_timestamp",
        "timestamp_seconds(id % 60) AS t",
        f"pmod(xxhash64(id), {GROUPS}) AS g",
        "id & 1023 AS x",
        "(xxhash64(id, 2) & 65535) / 65536D AS y",
    )


def arrive(engine: Engine, table: str, given: DataFrame, number: int) -> None:
    """More rows in files of their own, as a late delivery brings them."""
    with engine.leased(table) as held:
        definition = engine.definitions.usable[table]
        path = engine.path(table, 0)
        if not storage.exists(path):
            storage.create(path, schemas.of(dict(definition.columns), parts=table == "m"))
            engine.ledger.adopt(held, [(0, None)], engine.now())
        handle = storage.open_at(path)
        files = stage(given, handle, f"a{number}")
        mark = engine.definitions.graph()[table].fingerprint
        entry = Entry(table, 0, mark, None, None, {0: Content(number, f"{number}:{table}")})
        version = storage.commit(handle, files, (), {"kind": "ingest", "entry": entry.to_json()})
        engine.ledger.commit(held, entry, version, engine.now(), keep=True)


def prepared(spark: SparkSession, at: Path, query: str, size: int) -> Engine:
    (at / "view_defs").mkdir(parents=True)
    (at / "view_defs" / "all.yaml").write_text(TEXT.format(query=query))
    definitions = load(str(at / "view_defs"))
    assert definitions.ok, [str(p) for p in definitions.problems]
    ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", 0.0)
    ledger.define(definitions.graph(), 0.0)
    engine = Engine(spark, ledger, definitions, str(at / "warehouse"))
    arrive(engine, "m", rows(spark, 0, size), 1)
    arrive(engine, "d", spark.range(GROUPS).selectExpr("id AS g", "concat('n', id) AS name"), 1)
    run_step(engine, "v")
    return engine


def measure(spark: SparkSession, at: Path, query: str, size: int, late: int) -> dict[str, list[float]]:
    engine = prepared(spark, at, query, size)
    took: dict[str, list[float]] = {}
    number = 2
    for turn in range(ROUNDS + WARM):
        for by in WAYS if turn % 2 else WAYS[::-1]:
            arrive(engine, "m", rows(spark, size + number * late, late), number)
            number += 1
            began = time.perf_counter()
            report = run_step(replace(engine, repair_by=by), "v")
            if turn >= WARM:
                took.setdefault(by, []).append(time.perf_counter() - began)
            assert report is not None
            assert report.repair is not None
            assert report.repair.by == by, report
    return took


def first_write(spark: SparkSession, at: Path, size: int) -> float:
    """What it costs to write a part sorted and cut by a key for the first time: sorted / unsorted."""
    rows(spark, 0, size).write.parquet(str(at / "in"))
    schema = schemas.of({"t": "timestamp", "g": "bigint", "x": "bigint", "y": "double"})
    tables = [storage.create(str(at / name), schema, keys=keys) for name, keys in (("plain", ()), ("sorted", ("g",)))]
    took: list[list[float]] = [[], []]
    for turn in range(ROUNDS + WARM):
        for which in (0, 1) if turn % 2 else (1, 0):
            began = time.perf_counter()
            stage(spark.read.parquet(str(at / "in")), tables[which], f"w{turn}")
            if turn >= WARM:
                took[which].append(time.perf_counter() - began)
    return statistics.median(b / a for a, b in zip(*took, strict=True))


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or [200_000, 1_000_000, 5_000_000]
    spark = session()
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            ratio = first_write(spark, Path(folder), size)
        print(f"{size:9,}  rows written for the first time, sorted / as they come: {ratio:.2f}", flush=True)
    print(
        f"{'rows':>9}  {'query':6} {'late':>6} {'recompute':>9} {'keys':>8} {'ratio':>6} {'merge':>8} {'ratio':>6}  chosen"
    )
    for size in sizes:
        for name, query in QUERIES.items():
            for late in (1, size // 1000):
                with tempfile.TemporaryDirectory() as folder:
                    took = measure(spark, Path(folder) / "w", query, size, late)
                figures = Figures(size + (GROUPS if name == "join" else 0), 0, GROUPS, late)
                line = f"{size:9,}  {name:6} {late:6,} {statistics.median(took['recompute']):8.2f}s"
                for by in WAYS[1:]:
                    ratio = statistics.median(a / b for a, b in zip(took["recompute"], took[by], strict=True))
                    line += f" {statistics.median(took[by]):7.2f}s {ratio:6.2f}"
                print(f"{line}  {choose('auto', figures, WAYS[1:]).by}", flush=True)


if __name__ == "__main__":
    main()
