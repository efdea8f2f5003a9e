"""Several streams: pairs against the whole join, groups of a join by every strategy, DISTINCT by last occurrence against
reading the window.

One new part in a steady state: all tables that a strategy keeps are computed and written, in Parquet, in one warm session.

    python benchmarks/bench_several.py [--rows 200000] [--windows 10,50,200] [--results 1,10] [--keys 2000,0.1]
        [--only join,grouped,distinct]

Each time is told with its share of recompute, and that of the CPU seconds of this process and its JVM: they depend less on
what else the machine does. `--rows` are in a window, `--results` how many rows the join has for each row of a window, `--keys` how many different rows
a window has (a share of its rows up to 1). Goals: pairs at 50 parts and 10 x results <= 0.6 of recompute; `last` with 2M rows,
200 parts and 2,000 keys <= 0.3; the chosen strategy at most 1.15 x the best.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import psutil
from parquet_tables import Tables
from pyspark.sql import SparkSession

from partwise.choose.window import by_counts
from partwise.compile import InputTable, QueryView, Translation, translate
from spark_jobs.session.session import session

COLUMNS = {"k": "bigint", "x": "int", "t": "timestamp"}
INPUTS = {name: InputTable(name, "source", 60, COLUMNS, "t") for name in "ab"}
JOIN = "SELECT a.k, a.x, b.x AS y FROM a [WINDOW {w} minutes] JOIN b [WINDOW {w} minutes] ON b.k = a.k"
GROUPED = (
    "SELECT a.k, COUNT(*) AS n, SUM(b.x) AS x FROM a [WINDOW {w} minutes] JOIN b [WINDOW {w} minutes] ON b.k = a.k "
    "GROUP BY a.k"
)
DISTINCT = "SELECT DISTINCT k FROM a [WINDOW {w} minutes]"


def made(name: str, query: str, window: int, strategy: str | None = None, output: str = "snapshot") -> Translation:
    view = QueryView(name, query.format(w=window), 60, strategy=strategy, output=output)  # type: ignore[arg-type]
    return translate(view, INPUTS)


def fill(tables: Tables, name: str, parts: int, rows: int, keys: int) -> None:
    numbered = tables.numbered(parts, rows)
    salt = ord(name)
    tables.fill(name, numbered.selectExpr(
        "part", f"pmod(xxhash64(id, {salt}), {keys}L) AS k", "CAST(id & 1023 AS INT) AS x", "timestamp_seconds(part * 60) AS t"
    ))  # fmt: skip


def cpu_seconds() -> float:
    """Of this process and its JVM."""
    own = psutil.Process()
    times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
    return sum(found.user + found.system for found in times)


def measure(tables: Tables, plans: dict[str, Translation], first: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Median seconds of a part, and CPU seconds; strategies in turns; the first round warms up."""
    for plan in plans.values():
        for view in plan.views[:-1]:
            tables.first(view, first - 1)
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in plans}
    for j in range(first, first + rounds + 1):
        for name, plan in plans.items():
            before = cpu_seconds()
            wall = sum(tables.update(view, j) for view in plan.views)
            seconds[name].append((wall, cpu_seconds() - before))
    return {
        name: (statistics.median(wall for wall, _ in times[1:]), statistics.median(cpu for _, cpu in times[1:]))
        for name, times in seconds.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--windows", default="10,50,200")
    parser.add_argument("--results", default="1,10")
    parser.add_argument("--keys", default="2000,0.1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="join,grouped,distinct")
    asked = parser.parse_args()
    spark = session(conf={"spark.driver.memory": "4g"})
    print(
        f"{asked.rows:,} rows in a window of each stream; median seconds for one new part, and as a share of recompute"
    )
    for window in (int(n) for n in asked.windows.split(",")):
        for results in (int(n) for n in asked.results.split(",")):
            joins(spark, asked, window, results)
        for keys in asked.keys.split(",") if "distinct" in asked.only else ():
            distinct(spark, asked, window, int(float(keys) * asked.rows) if float(keys) <= 1 else int(keys))


def joins(spark: SparkSession, asked: argparse.Namespace, window: int, results: int) -> None:
    per_part, first = asked.rows // window, window + 1
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(spark, Path(folder))
        for name in "ab":
            fill(tables, name, window + asked.rounds + 2, per_part, asked.rows // results)
        if "join" in asked.only:
            plans = {"recompute": made("whole", JOIN, window), "pairs": made("pairs", JOIN, window, output="pairs")}
            told("join", window, f"{results} x", measure(tables, plans, first, asked.rounds), "")
        if "grouped" in asked.only:
            plans = {s: made(f"g_{s}", GROUPED, window, s) for s in ("recompute", "cells", "factor")}
            found = measure(tables, plans, first, asked.rounds)
            shape, cells = made("g", GROUPED, window).shape, tables.rows("g_cells__cells", first)
            assert shape is not None
            new = cells.selectExpr(f"sum({shape.weight})").head()
            chosen = by_counts(shape, per_part, new[0] if new else None).strategy
            told("grouped", window, f"{results} x", found, against_best(found, chosen))


def distinct(spark: SparkSession, asked: argparse.Namespace, window: int, keys: int) -> None:
    per_part = asked.rows // window
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(spark, Path(folder))
        fill(tables, "a", window + asked.rounds + 2, per_part, keys)
        plans = {s: made(f"d_{s}", DISTINCT, window, s) for s in ("recompute", "last")}
        found = measure(tables, plans, window + 1, asked.rounds)
        shape = plans["last"].shape
        assert shape is not None
        # As they are counted: the different rows of one window.
        seen = tables.rows("d_last__last", window + 1).count()
        told(
            "distinct", window, f"{keys:,} keys", found, against_best(found, by_counts(shape, per_part, seen).strategy)
        )


def told(what: str, window: int, about: str, found: dict[str, tuple[float, float]], more: str) -> None:
    whole, whole_cpu = found["recompute"]
    times = "  ".join(
        f"{name} {wall:.2f}s ({wall / whole:.2f}, CPU {cpu:.2f}s {cpu / whole_cpu:.2f})"
        for name, (wall, cpu) in found.items()
    )
    print(f"{what:8} W={window:<4} {about:14} {times}  {more}", flush=True)


def against_best(found: dict[str, tuple[float, float]], chosen: str) -> str:
    wall, cpu = (found[chosen][at] / min(each[at] for each in found.values()) for at in (0, 1))
    return f"chosen {chosen} {wall:.2f} (CPU {cpu:.2f})"


if __name__ == "__main__":
    main()
