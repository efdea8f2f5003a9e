"""Several streams: pairs against the whole join, groups of a join by every strategy, DISTINCT by last occurrence against
reading the window.

One new part in a steady state: all tables that a strategy keeps are computed and written, in Parquet, in one warm session.

    python benchmarks/bench_several.py [--rows 200000] [--windows 10,50,200] [--results 1,10] [--keys 2000,0.1]

`--rows` are in a window, `--results` how many rows the join has for each row of a window, `--keys` how many different rows
a window has (a share of its rows up to 1). Goals: pairs at 50 parts and 10 x results <= 0.6 of recompute; `last` with 2M rows,
200 parts and 2,000 keys <= 0.3; the chosen strategy at most 1.15 x the best.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from parquet_tables import Tables

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


def measure(tables: Tables, plans: dict[str, Translation], first: int, rounds: int) -> dict[str, float]:
    """Median seconds of a part, strategies in turns; the first round warms up."""
    for plan in plans.values():
        for view in plan.views[:-1]:
            tables.first(view, first - 1)
    seconds: dict[str, list[float]] = {name: [] for name in plans}
    for j in range(first, first + rounds + 1):
        for name, plan in plans.items():
            seconds[name].append(sum(tables.update(view, j) for view in plan.views))
    return {name: statistics.median(times[1:]) for name, times in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--windows", default="10,50,200")
    parser.add_argument("--results", default="1,10")
    parser.add_argument("--keys", default="2000,0.1")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    spark = session(conf={"spark.driver.memory": "4g"})
    print(
        f"{asked.rows:,} rows in a window of each stream; median seconds for one new part, and as a share of recompute"
    )
    for window in (int(n) for n in asked.windows.split(",")):
        per_part = asked.rows // window
        for results in (int(n) for n in asked.results.split(",")):
            with tempfile.TemporaryDirectory() as folder:
                tables = Tables(spark, Path(folder))
                for name in "ab":
                    fill(tables, name, window + asked.rounds + 2, per_part, asked.rows // results)
                plans = {"recompute": made("whole", JOIN, window), "pairs": made("pairs", JOIN, window, output="pairs")}
                found = measure(tables, plans, window + 1, asked.rounds)
                told("join", window, f"{results} x", found, "")
                grouped = {s: made(f"g_{s}", GROUPED, window, s) for s in ("recompute", "cells", "factor")}
                chosen = made("g", GROUPED, window).choice.strategy
                found = measure(tables, grouped, window + 1, asked.rounds)
                told(
                    "grouped",
                    window,
                    f"{results} x",
                    found,
                    f"chosen {chosen} {found[chosen] / min(found.values()):.2f}",
                )
        for keys in asked.keys.split(","):
            many = int(float(keys) * asked.rows) if float(keys) <= 1 else int(keys)
            with tempfile.TemporaryDirectory() as folder:
                tables = Tables(spark, Path(folder))
                fill(tables, "a", window + asked.rounds + 2, per_part, many)
                plans = {s: made(f"d_{s}", DISTINCT, window, s) for s in ("recompute", "last")}
                found = measure(tables, plans, window + 1, asked.rounds)
                shape = plans["last"].shape
                assert shape is not None
                chosen = by_counts(shape, per_part, many).strategy
                told(
                    "distinct",
                    window,
                    f"{many:,} keys",
                    found,
                    f"chosen {chosen} {found[chosen] / min(found.values()):.2f}",
                )


def told(what: str, window: int, about: str, found: dict[str, float], more: str) -> None:
    whole = found["recompute"]
    times = "  ".join(f"{name} {seconds:.2f}s ({seconds / whole:.2f})" for name, seconds in found.items())
    print(f"{what:8} W={window:<4} {about:14} {times}  {more}", flush=True)


if __name__ == "__main__":
    main()
