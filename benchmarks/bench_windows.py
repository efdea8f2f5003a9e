"""MAX and SUM windows: each strategy, and the one that is chosen (ViewDF, figures 9-12).

One new part in a steady state: all tables that a strategy keeps are computed and written, in Parquet, in one warm session.
"before" is what the query alone says, before there are rows to count; "chosen" is what the counts say, and so what runs.

    python benchmarks/bench_windows.py [--rows 200000] [--windows 5,20,100] [--groups 1000,0.1,1] [--aggregates MAX,SUM]

Groups below or equal to 1 are a share of the rows. Goal: at most 1.10 x the best.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from figures import FIGURES, draw
from parquet_tables import Tables
from pyspark.sql import SparkSession

from partwise.choose.window import by_counts
from partwise.compile import GeneratedView, InputTable, QueryView, Translation, translate
from spark_jobs.session.session import session

COLUMNS = {"g": "bigint", "t": "timestamp", "x": "int"}
STRATEGIES = ("recompute", "merge", "subtract")


def translated(aggregate: str, window: int, strategy: str | None) -> Translation:
    query = f"SELECT g, {aggregate}(x) AS a FROM m [WINDOW {window} minutes] GROUP BY g"
    view = QueryView(f"{aggregate.lower()}_{strategy}", query, 60, strategy=strategy)  # type: ignore[arg-type]
    return translate(view, {"m": InputTable("m", "source", 60, COLUMNS, "t")})


def fill(tables: Tables, parts: int, rows: int, groups: int) -> None:
    """Every part has all groups if there are as many as rows, else rows fall into groups at random."""
    group = "k" if groups == rows else f"pmod(xxhash64(id), {groups}L)"
    tables.fill(
        "m",
        tables.numbered(parts, rows).selectExpr(
            "part", f"{group} AS g", "timestamp_seconds(part * 60) AS t", "CAST(xxhash64(id, 7) & 1048575 AS INT) AS x"
        ),
    )


def fill_panes(spark: SparkSession, tables: Tables, view: GeneratedView) -> None:
    """Every pane at once: the generated query, grouped by part as well. They are the same for every window."""
    if tables.has(view.name):
        return
    sql = re.sub(r"\bm\[j\]", "__all", view.update)
    sql = sql.replace("SELECT ", "SELECT part, ", 1).replace("GROUP BY ", "GROUP BY part, ")
    spark.read.parquet(str(tables.at / "m")).createOrReplaceTempView("__all")
    tables.fill(view.name, spark.sql(sql).repartition("part"))


def measure(
    spark: SparkSession, tables: Tables, aggregate: str, window: int, parts: Sequence[int]
) -> dict[str, list[float]]:
    """Seconds of these parts by strategy, all in turns; what was there before is not counted."""
    plans = {s: translated(aggregate, window, s) for s in STRATEGIES if aggregate == "SUM" or s != "subtract"}
    for made in plans.values():
        for view in made.views[:-1]:
            if view.initialize is None:
                fill_panes(spark, tables, view)
            else:
                tables.first(view, parts[0] - 1)
    seconds: dict[str, list[float]] = {strategy: [] for strategy in plans}
    for j in parts:
        for strategy, made in plans.items():
            seconds[strategy].append(sum(tables.update(view, j) for view in made.views))
    sums = {
        s: tables.rows(made.views[-1].name, parts[-1]).selectExpr("COUNT(*)", "SUM(a)").collect()[0]
        for s, made in plans.items()
    }
    assert len(set(sums.values())) == 1, sums
    return {strategy: times[1:] for strategy, times in seconds.items()}  # the first one warms up


def told(aggregate: str, window: int, rows: int, groups: int, found: dict[str, float]) -> str:
    best = min(found.values())
    made = translated(aggregate, window, None)
    assert made.shape is not None
    names = [made.choice.strategy, by_counts(made.shape, rows, groups).strategy]
    times = " ".join(f"{found[s]:8.2f}s" if s in found else f"{'-':>9}" for s in STRATEGIES)
    before, chosen = (f"{name} {found[name] / best:.2f}" for name in names)
    return f"{aggregate:4} {window:4} {groups:9,} {times}  {before:16} {chosen}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--windows", default="5,20,100")
    parser.add_argument("--groups", default="1000,0.1,1")
    parser.add_argument("--aggregates", default="MAX,SUM")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--figures", type=Path, default=FIGURES, help="folder for the figures")
    asked = parser.parse_args()
    windows = [int(n) for n in asked.windows.split(",")]
    groups = [int(float(n) * asked.rows) if float(n) <= 1 else int(n) for n in asked.groups.split(",")]
    spark = session(conf={"spark.driver.memory": "4g"})
    print(f"{asked.rows:,} rows per part; median seconds for one new part")
    print(f"{'':4} {'W':>4} {'groups':>9} {'recompute':>9} {'merge':>9} {'subtract':>9}  {'before':16} chosen")
    first = max(windows) + 1
    for many in groups:
        with tempfile.TemporaryDirectory() as folder:
            tables = Tables(spark, Path(folder))
            fill(tables, first + asked.rounds + 1, asked.rows, many)
            for aggregate in asked.aggregates.split(","):
                lines: dict[str, list[tuple[float, float]]] = {}
                for window in windows:
                    times = measure(spark, tables, aggregate, window, range(first, first + asked.rounds + 1))
                    found = {strategy: statistics.median(seconds) for strategy, seconds in times.items()}
                    print(told(aggregate, window, asked.rows, many, found), flush=True)
                    for strategy, seconds in found.items():
                        lines.setdefault(strategy, []).append((window, seconds))
                title = f"{aggregate}, {asked.rows:,} rows and {many:,} groups per part"
                path = asked.figures / f"window_{aggregate.lower()}_{many}_groups.svg"
                draw(path, title, "parts in a window", "seconds per part", lines)


if __name__ == "__main__":
    main()
