"""MAX and SUM windows: each strategy, and the one that is chosen (ViewDF, figures 9-12).

One new part in a steady state: all tables that a strategy keeps are computed and written, in Parquet, in one warm session.
"chosen" goes by the query alone; "advised" is what `partwise explain` recommends once the ledger has rows to count.

    python benchmarks/bench_windows.py [--rows 50000] [--windows 5,20,100] [--groups 1000,0.1,1] [--figures FOLDER]

Groups below or equal to 1 are a share of the rows. The paper's size is --rows 1000000. Goal: at most 1.10 x the best.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
from pathlib import Path

from figures import FIGURES, draw
from parquet_tables import Tables
from pyspark.sql import SparkSession

from partwise.translation import InputTable, QueryView, Translation, translate
from spark_jobs.session import session

COLUMNS = {"g": "bigint", "t": "timestamp", "x": "int"}
AGGREGATES = ("MAX", "SUM")
STRATEGIES = ("recompute", "merge", "subtract")
ROUNDS = 3


def translated(
    aggregate: str, window: int, strategy: str | None, rows: int | None = None, groups: int | None = None
) -> Translation:
    query = f"SELECT g, {aggregate}(x) AS a FROM m [WINDOW {window} minutes] GROUP BY g"
    view = QueryView(f"v_{strategy}", query, 60, strategy=strategy, groups=groups)  # type: ignore[arg-type]
    return translate(view, {"m": InputTable("m", "source", 60, COLUMNS, "t", rows=rows)})


def fill(spark: SparkSession, tables: Tables, parts: int, rows: int, groups: int) -> None:
    numbers = spark.range(parts * rows).selectExpr(f"id DIV {rows} AS part", "id")
    tables.fill(
        "m",
        numbers.selectExpr(
            "part",
            f"IF({groups} = {rows}, id % {rows}, pmod(xxhash64(id), {groups}L)) AS g",
            "timestamp_seconds(part * 60) AS t",
            "CAST(xxhash64(id, 7) & 1048575 AS INT) AS x",
        ),
    )


def prepare(spark: SparkSession, tables: Tables, made: Translation, first: int) -> None:
    """All helpers up to the part before `first`."""
    for view in made.views[:-1]:
        if view.initialize is not None:
            tables.first(view, first - 1)
            continue
        # Every pane at once: the generated query, grouped by part as well.
        sql = re.sub(r"\bm\[j\]", "__all", view.update)
        sql = sql.replace("SELECT ", "SELECT part, ", 1).replace("GROUP BY ", "GROUP BY part, ")
        spark.read.parquet(str(tables.at / "m")).createOrReplaceTempView("__all")
        tables.fill(view.name, spark.sql(sql))


def measure(spark: SparkSession, aggregate: str, window: int, rows: int, groups: int) -> dict[str, float]:
    """Median seconds of a new part, by strategy."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(spark, Path(folder))
        fill(spark, tables, window + ROUNDS + 2, rows, groups)
        plans = {s: translated(aggregate, window, s) for s in STRATEGIES if aggregate == "SUM" or s != "subtract"}
        seconds: dict[str, list[float]] = {strategy: [] for strategy in plans}
        for made in plans.values():
            prepare(spark, tables, made, window + 1)
        for turn in range(ROUNDS + 1):
            for strategy, made in plans.items():
                seconds[strategy].append(sum(tables.update(view, window + 1 + turn) for view in made.views))
        sums = {
            s: tables.rows(made.views[-1].name, window + 1 + ROUNDS).selectExpr("COUNT(*)", "SUM(a)").collect()[0]
            for s, made in plans.items()
        }
        assert len(set(sums.values())) == 1, sums
        found = {strategy: statistics.median(times[1:]) for strategy, times in seconds.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--windows", default="5,20,100")
    parser.add_argument("--groups", default="1000,0.1,1")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="folder for the figures")
    asked = parser.parse_args()
    windows = [int(n) for n in asked.windows.split(",")]
    groups = [int(float(n) * asked.rows) if float(n) <= 1 else int(n) for n in asked.groups.split(",")]
    spark = session(conf={"spark.sql.shuffle.partitions": "4"})
    print(f"{asked.rows:,} rows per part; seconds for one new part")
    print(f"{'':4} {'W':>4} {'groups':>9} {'recompute':>10} {'merge':>7} {'subtract':>9}  {'chosen':16} advised")
    for aggregate in AGGREGATES:
        for many in groups:
            lines: dict[str, list[tuple[float, float]]] = {}
            for window in windows:
                found = measure(spark, aggregate, window, asked.rows, many)
                best = min(found.values())
                names = [
                    translated(aggregate, window, None).choice.strategy,
                    translated(aggregate, window, None, asked.rows, many).choice.strategy,
                ]
                told = [f"{name} {found[name] / best:.2f}" for name in names]
                times = " ".join(f"{found.get(s, float('nan')):8.2f}s" for s in STRATEGIES)
                print(f"{aggregate:4} {window:4} {many:9,} {times}  {told[0]:16} {told[1]}", flush=True)
                for strategy, seconds in found.items():
                    lines.setdefault(strategy, []).append((window, seconds))
            title = f"{aggregate}, {asked.rows:,} rows and {many:,} groups per part"
            path = asked.figures / f"window_{aggregate.lower()}_{many}_groups.svg"
            draw(path, title, "parts in a window", "seconds per part", lines)


if __name__ == "__main__":
    main()
