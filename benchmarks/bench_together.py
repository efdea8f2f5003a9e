"""Many small views over one source: a new part of all of them in one job, against one step after the other.

    python benchmarks/bench_together.py [VIEWS ...] [--parts 9]

Both workspaces get the same parts of 10,000 rows, turn by turn, in one warm session; what counts is the median of the ratios,
and that all digests are equal. `one by one` is a loop over steps; `side by side` is `partwise run` with `batch: {views: 1}`.
Goals against one by one: 10 views at most 0.3, 50 views at most 0.2.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench_step import SOURCE, prepared
from sqlalchemy import select

from partwise.compile.load import load
from partwise.ledger.schema import part as parts_table
from partwise.parts import Parts
from partwise.settings import Batch
from spark_jobs.engine import Engine
from spark_jobs.run import run
from spark_jobs.session.session import session
from spark_jobs.step.run_step import run_step
from spark_jobs.together import run_together

GOALS = {10: 0.3, 50: 0.2}
SIZE, WARM = 10_000, 3
QUERIES = (
    "SELECT g, SUM(x) AS s FROM m[j] GROUP BY g",
    "SELECT g, COUNT(*) AS n, AVG(y) AS a FROM m[j] WHERE x > 0.{k} GROUP BY g",
    "SELECT g, MAX(x) AS top, MIN(y) AS low FROM m[j] GROUP BY g HAVING MAX(x) > 0.{k}",
    "SELECT t, g, x + y AS z FROM m[j] WHERE y < 0.0{k}",
    "SELECT COUNT(*) AS n, SUM(y) AS s FROM m[j] WHERE g % 10 = {k}",
)


def views(count: int) -> dict[str, str]:
    return {f"v{n}": QUERIES[n % len(QUERIES)].format(k=1 + n // len(QUERIES)) for n in range(count)}


def workspace(spark: object, at: Path, count: int, parts: int, batch: Batch) -> Engine:
    engine = prepared(spark, at, "SELECT g FROM {m}", parts, SIZE)  # type: ignore[arg-type]
    texts = [f"view: {name}\npart: 1 minute\nupdate: {sql}\n" for name, sql in views(count).items()]
    (at / "view_defs" / "all.yaml").write_text("---\n".join([SOURCE, *texts]))
    engine.definitions = load(str(at / "view_defs"))
    assert engine.definitions.ok, [str(p) for p in engine.definitions.problems]
    engine.ledger.define(engine.definitions.graph(), 0.0)
    engine.batch, engine.step_seconds = batch, math.inf
    return engine


def digests(engine: Engine) -> list[tuple[str, int, str]]:
    with engine.ledger.database.reading() as r:
        found = r.on.execute(select(parts_table.c.table, parts_table.c.part, parts_table.c.digest))
        return sorted((table, p, digest) for table, p, digest in found if table != "m")


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare(spark: object, count: int, parts: int) -> None:
    names = list(views(count))
    with tempfile.TemporaryDirectory() as folder:
        one = workspace(spark, Path(folder) / "one", count, parts, Batch(views=1))
        many = workspace(spark, Path(folder) / "many", count, parts, Batch(views=count))
        times: dict[str, list[float]] = {"one by one": [], "side by side": [], "together": []}
        for p in range(parts):
            due = {name: Parts.single(p) for name in names}
            alone: tuple[str, Callable[[], object]] = (
                ("one by one", lambda due=due: [run_step(one, name, only) for name, only in due.items()])  # type: ignore[misc]
                if p % 2 == 0
                else ("side by side", lambda due=due: list(run(one, within=lambda: due)))  # type: ignore[misc]
            )
            both = [alone, ("together", lambda due=due: list(run_together(many, names, due)))]  # type: ignore[misc]
            for what, work in both if p % 3 else both[::-1]:
                took = timed(work)
                if p >= WARM:
                    times[what].append(took)
        assert digests(one) == digests(many)
        median = {what: statistics.median(found) for what, found in times.items()}
        ratios = [f"{median['together'] / median[what]:.2f} of {what}" for what in ("one by one", "side by side")]
        goal = f"  (goal {GOALS[count]} of one by one)" if count in GOALS else ""
        print(f"{count} views: {', '.join(ratios)}; {median['together']:.2f} s, same digests{goal}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("views", nargs="*", type=int, default=[10, 50])
    parser.add_argument("--parts", type=int, default=9)
    given = parser.parse_args()
    spark = session()
    for count in given.views:
        compare(spark, count, given.parts)


if __name__ == "__main__":
    main()
