"""Fresh answers from samples: what cleaning costs beside a refresh, and how near the answers are.

Orders and their lines with Zipf 2 customers and prices, after TPCD-Skew: a join view sampled by order, and a cube of
customers by region and product sampled by cell. 5 % of the orders come late, and a line for each of 1.25 %. One order in a
hundred is exact, and one cell in four: Zipf 2 leaves little in all others.

cost    seconds of the sample's steps (largest keys and sample) / seconds of the view's refresh, turn by turn in one session
error   |answer - truth| / truth, the median over groups and then over queries: of what is published (stale), of the sample
        scaled up (plain), and of `query --fresh`; and how many of its intervals cover the truth

    python benchmarks/bench_fresh.py [ORDERS ...] [--ratio 10] [--rounds 3] [--draw]      (default 200000 1200000)

An order has about four lines. `--draw` writes the figures of docs/benchmarks. Goals: cost 0.2 at 5M lines; on the join view
four times nearer than what is published and ten times nearer than plain sampling.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from figures import FIGURES, draw
from pyspark.sql import DataFrame, SparkSession

from partwise import storage
from partwise.compile.load import load
from partwise.compile.sample.hashing import threshold
from partwise.fresh.read import FreshRequest, fresh
from partwise.ledger.open import open_ledger
from partwise.ledger.read.as_of import readable
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts
from partwise.storage import schema as schemas
from partwise.storage.paths import table_path
from partwise.storage.query import PinnedTable, connect
from spark_jobs.engine import Engine
from spark_jobs.session.session import session
from spark_jobs.step.run_step import run_step
from spark_jobs.step.stage import stage

TEXT = """
source: orders
part: 1 day
time: t
columns: {{t: timestamp, o: bigint, customer: bigint, region: bigint, urgent: bigint, product: bigint}}
files: landing/o*.csv
---
source: lines
part: 1 day
time: t
columns: {{t: timestamp, o: bigint, line: bigint, kind: bigint, quantity: bigint, price: double}}
files: landing/l*.csv
---
view: sold
part: 1 day
repair: manual
sample: {{ratio: {ratio} %, key: o, outliers: {{column: price, keep: {orders}}}}}
update: |
  SELECT l.o, l.line, l.kind, l.quantity, l.price, o.customer, o.region, o.urgent
  FROM lines[j] l JOIN orders[j] o ON o.o = l.o
---
view: cube
part: 1 day
repair: manual
sample: {{ratio: {ratio} %, key: [customer, region, product], outliers: {{column: revenue, keep: {cells}}}}}
update: |
  SELECT o.customer, o.region, o.product, SUM(l.price) AS revenue, COUNT(*) AS n
  FROM lines[j] l JOIN orders[j] o ON o.o = l.o GROUP BY o.customer, o.region, o.product
"""
#: In the manner of TPC-H: large groups, small groups, conditions on rows.
QUERIES = {
    "sold": [
        "SELECT SUM(price) AS x FROM sold",
        "SELECT COUNT(*) AS x FROM sold",
        "SELECT AVG(price) AS x FROM sold",
        "SELECT region AS g, SUM(price) AS x FROM sold GROUP BY region",
        "SELECT kind AS g, SUM(price) AS x FROM sold GROUP BY kind",
        "SELECT kind AS g, COUNT(*) AS x FROM sold WHERE urgent = 1 GROUP BY kind",
        "SELECT region AS g, AVG(quantity) AS x FROM sold WHERE price > 950 GROUP BY region",
        "SELECT SUM(price) FILTER (WHERE kind = 2) / SUM(price) AS x FROM sold",
        "SELECT SUM(price) AS x FROM sold WHERE quantity < 24 AND kind IN (1, 2)",
        "SELECT urgent AS g, SUM(price) AS x FROM sold WHERE region = 2 GROUP BY urgent",
        "SELECT MEDIAN(price) AS x FROM sold",
        "SELECT quantity % 5 AS g, SUM(price) AS x FROM sold GROUP BY quantity % 5",
    ],
    "cube": [
        "SELECT SUM(revenue) AS x FROM cube",
        "SELECT region AS g, SUM(revenue) AS x FROM cube GROUP BY region",
        "SELECT region AS g, SUM(n) AS x FROM cube GROUP BY region",
        "SELECT SUM(revenue) / SUM(n) AS x FROM cube",
    ],
}
DAY = 1


def zipf(seed: int, most: int = 10_000) -> str:
    """A value with P(v >= n) = 1 / n, up to `most`."""
    return f"least({most}L, CAST(1D / ((pmod(xxhash64(id, {seed}), 1000003) + 1) / 1000004D) AS BIGINT))"


def orders(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count).selectExpr(
        f"{DAY}L AS part", f"timestamp_seconds({DAY} * 86400) AS part_timestamp", f"timestamp_seconds({DAY} * 86400) AS t",
        "id AS o", f"{zipf(1, 100_000)} AS customer", "pmod(xxhash64(id, 2), 5) AS region", "pmod(xxhash64(id, 3), 2) AS urgent",
        f"{zipf(7, 50)} AS product",
    )  # fmt: skip


def lines(spark: SparkSession, first: int, count: int, changed: bool = False) -> DataFrame:
    """About four lines an order; `changed`: one line more, as a late correction brings it."""
    numbers = spark.range(4 * first, 4 * (first + count))
    line = "id % 4 + 10" if changed else "id % 4"
    return numbers.selectExpr(
        f"{DAY}L AS part", f"timestamp_seconds({DAY} * 86400) AS part_timestamp", f"timestamp_seconds({DAY} * 86400) AS t",
        "id DIV 4 AS o", f"{line} AS line", f"least(7, {zipf(4)}) AS kind", "1 + pmod(xxhash64(id, 5), 50) AS quantity",
        f"900D + 10 * {zipf(6)} AS price",
    )  # fmt: skip


@dataclass
class Shop:
    engine: Engine
    size: int
    arrived: int = 0

    @classmethod
    def opened(cls, spark: SparkSession, at: Path, size: int, ratio: float) -> Shop:
        (at / "view_defs").mkdir(parents=True)
        (at / "view_defs" / "all.yaml").write_text(
            TEXT.format(ratio=ratio, orders=size // 100, cells=max(100, size // 250))
        )
        program = load(str(at / "view_defs"))
        assert program.ok, [str(p) for p in program.problems]
        ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", 0.0)
        ledger.define(program.graph(), 0.0)
        made = cls(Engine(spark, ledger, program, str(at / "warehouse")), size)
        made.arrive("orders", orders(spark, 0, size))
        made.arrive("lines", lines(spark, 0, size))
        for name in QUERIES:
            made.clean(name)
            made.refresh(name)
            made.follow(name)
        return made

    def arrive(self, table: str, rows: DataFrame) -> None:
        """More rows in files of their own, as a late delivery brings them."""
        self.arrived += 1
        engine = self.engine
        with engine.leased(table) as held:
            path = engine.path(table, 0)
            if not storage.exists(path):
                storage.create(path, schemas.of(dict(engine.definitions.usable[table].columns)))
                engine.ledger.adopt(held, [(0, None)], engine.now())
            handle = storage.open_at(path)
            files = stage(rows, handle, f"a{self.arrived}")
            mark = engine.definitions.graph()[table].fingerprint
            content = Content(self.size + self.arrived, f"{self.size + self.arrived}:{table}")
            entry = Entry(table, 0, mark, None, None, {DAY: content})
            version = storage.commit(handle, files, (), {"kind": "ingest", "entry": entry.to_json()})
            engine.ledger.commit(held, entry, version, engine.now(), keep=True)

    def late(self, turn: int) -> None:
        spark, share = self.engine.spark, self.size // 20
        first = self.size + turn * share
        self.arrive("orders", orders(spark, first, share))
        self.arrive("lines", lines(spark, first, share).unionAll(lines(spark, turn * share, share // 4, changed=True)))

    def step(self, name: str) -> float:
        began = time.perf_counter()
        report = run_step(replace(self.engine, repair_by="recompute"), name)
        assert report is not None, name
        return time.perf_counter() - began

    def clean(self, view: str) -> tuple[float, float]:
        """Seconds of the largest keys, and of the sample."""
        return self.step(f"{view}__sizes"), self.step(f"{view}__sample")

    def refresh(self, view: str) -> float:
        self.engine.ledger.refresh_now(None, self.engine.now())
        self.engine.ledger.request(view, Parts.single(DAY), self.engine.now())
        return self.step(view)

    def follow(self, view: str) -> float:
        return self.step(f"{view}__was")

    def query(self, sql: str, *names: str) -> list[tuple[Any, ...]]:
        found = readable(self.engine.ledger.database, names, names)
        pins = {
            n: PinnedTable(table_path(self.engine.warehouse, n, at.version.generation), at.version.version)
            for n, at in found.items()
        }
        with connect(" ".join(names), pins) as on:
            return [row if len(row) > 1 else ("all", *row) for row in on.execute(sql).fetchall()]

    def fresh(self, sql: str, ratio: float) -> list[tuple[Any, Any]]:
        """Groups with their cells."""

        @contextmanager
        def registered(seq: int) -> Any:
            yield seq

        engine = self.engine
        found, _ = fresh(
            engine.definitions, engine.ledger, engine.warehouse, sql, registered, FreshRequest(ratio=ratio)
        )
        return [(row.group.get("g", "all"), row.cells["x"]) for row in found.rows]


@dataclass
class Errors:
    stale: list[float]
    plain: list[float]
    fresh: list[float]
    covered: int = 0
    answered: int = 0
    asked: int = 0


def errors_of(shop: Shop, before: dict[str, Any], view: str) -> Errors:
    made = Errors([], [], [])
    for sql in QUERIES[view]:
        compare(dict(shop.query(sql, view)), *before[sql], made)
    return made


def compare(truth: dict[Any, Any], stale: dict[Any, Any], plain: dict[Any, Any], cells: Any, made: Errors) -> None:
    own: dict[str, list[float]] = {"stale": [], "plain": [], "fresh": []}
    for group, right in truth.items():
        cell = cells.get(str(group))
        made.asked += 1
        if cell is None or cell.method is None or not right:
            continue
        made.answered += 1
        made.covered += cell.low - 1e-9 * abs(right) <= right <= cell.high + 1e-9 * abs(right)
        for name, value in (("stale", stale.get(group)), ("plain", plain.get(group)), ("fresh", cell.estimate)):
            own[name].append(1.0 if value is None else abs(float(value) - float(right)) / abs(float(right)))
    for name, some in own.items():
        if some:
            getattr(made, name).append(statistics.median(some))


def scaled(sql: str, view: str, ratio: float) -> str:
    """The sample alone: sums and counts over the ratio, averages and quantiles as they are."""
    head, _, rest = sql.partition(f" FROM {view}")
    by = "" if any(f in head for f in ("AVG(", "MEDIAN(", " / ")) else f" / {ratio!r}"
    sampled = f"(SELECT * FROM {view}__sample WHERE sample_hash <= {threshold(ratio)}) AS {view}"
    return head.replace(" AS x", f"{by} AS x") + f" FROM {sampled}" + rest


def measure(
    spark: SparkSession, size: int, ratio: float, rounds: int, used: Sequence[float]
) -> tuple[dict[str, float], dict[str, dict[float, Errors]]]:
    """Cost by view, and errors by view and ratio that is used."""
    took: dict[str, list[tuple[float, float, float]]] = {view: [] for view in QUERIES}
    errors: dict[str, dict[float, Errors]] = {view: {} for view in QUERIES}
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop.opened(spark, Path(folder) / "w", size, 100 * ratio)
        for turn in range(rounds + 1):
            shop.late(turn)
            for view, queries in QUERIES.items():
                cleaned = shop.clean(view)
                before: dict[float, dict[str, Any]] = {}
                if turn == rounds:
                    for share in used:
                        before[share] = {
                            sql: (
                                dict(shop.query(sql, view)),
                                dict(shop.query(scaled(sql, view, share), f"{view}__sample")),
                                {str(group): cell for group, cell in shop.fresh(sql, share)},
                            )
                            for sql in queries
                        }
                refreshed = shop.refresh(view)
                shop.follow(view)
                if turn:
                    took[view].append((*cleaned, refreshed))
                for share, found in before.items():
                    errors[view][share] = errors_of(shop, found, view)
    for view, rounds_ in took.items():
        sizes, sample, refresh = (statistics.median(each) for each in zip(*rounds_, strict=True))
        print(
            f"{4 * size:11,} lines  {view:5} largest keys {sizes:.1f}s  sample {sample:.1f}s  refresh {refresh:.1f}s",
            flush=True,
        )
    return {view: statistics.median((a + b) / c for a, b, c in rounds_) for view, rounds_ in took.items()}, errors


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("orders", nargs="*", type=int, default=[200_000, 1_200_000])
    parser.add_argument("--ratio", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--draw", action="store_true")
    asked = parser.parse_args()
    ratio, spark = asked.ratio / 100, session()
    used = [share for share in (0.01, 0.02, 0.05, ratio) if share <= ratio]
    cost: dict[str, list[tuple[float, float]]] = {view: [] for view in QUERIES}
    errors: dict[str, dict[float, Errors]] = {}
    for size in asked.orders:
        costs, errors = measure(spark, size, ratio, asked.rounds, used)
        for view, share in costs.items():
            cost[view].append((4.0 * size, share))
            print(f"{4 * size:11,} lines  {view:5} cost of cleaning / refresh {share:.2f}", flush=True)
            for each, found in errors[view].items():
                stale, plain, near = (100 * mean(part) for part in (found.stale, found.plain, found.fresh))
                print(
                    f"    {100 * each:4.3g} % of keys: stale {stale:7.3f} %  plain {plain:7.3f} %  fresh {near:7.3f} %"
                    f"  nearer than stale {stale / near:6.1f}x, than plain {plain / near:6.1f}x"
                    f"  {found.answered} of {found.asked} cells answered, {found.covered} covered",
                    flush=True,
                )
        if asked.draw:
            draw_all(asked.ratio, cost, errors)


def draw_all(
    ratio: float, cost: Mapping[str, Sequence[tuple[float, float]]], errors: Mapping[str, dict[float, Errors]]
) -> None:
    draw(
        FIGURES / "fresh_cost.svg",
        f"Cleaning a sample of {ratio:g} % / refreshing the view",
        "lines",
        "seconds / seconds",
        cost,
    )
    for view, found in errors.items():
        shown = {
            name: [(100 * share, 100 * mean(getattr(e, name))) for share, e in found.items() if e.answered]
            for name in ("stale", "plain", "fresh")
        }
        if any(shown.values()):
            draw(
                FIGURES / f"fresh_error_{view}.svg",
                f"Error of answers from {view}",
                "% of keys sampled",
                "median error, %",
                shown,
            )


def mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else math.nan


if __name__ == "__main__":
    main()
