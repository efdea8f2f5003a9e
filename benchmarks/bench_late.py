"""Late line items in four deliveries, 90 % + 9 % + 0.9 % + 0.1 %, over views like those of TPC-H: recompute every time, or
join what is late with what was kept.

What counts is refresh / recompute for the three late deliveries together. Also what keeping costs at first, how many rows
are kept, and whether the cost rule would have kept it.

    python benchmarks/bench_late.py [ROWS ...]      (default 200000 2000000; 20000000 takes an hour)
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from partwise import storage
from partwise.choose.state import ExpectedLate, StateFigures, advised
from partwise.compile.load import load
from partwise.compile.relations import Relations
from partwise.compile.state.flat import flat
from partwise.ledger.open import open_ledger
from partwise.ledger.records.strategies import usual_rows
from partwise.ledger.write.commit import Content, Entry
from partwise.storage import schema as schemas
from spark_jobs.engine import Engine
from spark_jobs.session.session import session
from spark_jobs.step.run_step import run_step
from spark_jobs.step.stage import stage

TEXT = """
source: lineitem
part: 1 day
time: t
columns: {{t: timestamp, l_orderkey: bigint, l_suppkey: bigint, l_quantity: bigint, l_price: bigint, l_flag: string,
  l_shipdate: int, l_comment: string}}
files: l/*.csv
---
source: orders
part: 1 day
time: t
columns: {{t: timestamp, o_orderkey: bigint, o_custkey: bigint, o_orderdate: int, o_priority: string, o_comment: string}}
files: o/*.csv
---
dimension: customer
columns: {{c_custkey: bigint, c_nationkey: bigint, c_name: string, c_segment: string}}
files: c.csv
---
dimension: supplier
columns: {{s_suppkey: bigint, s_nationkey: bigint}}
files: s.csv
---
dimension: nation
columns: {{n_nationkey: bigint, n_name: string, n_region: string}}
files: n.csv
---
view: v
part: 1 day
{more}
update: |
  {query}
"""
_SUMS = "SUM(l_price) AS revenue, COUNT(l_price) AS prices, COUNT(*) AS n"
#: Query and the inputs that are kept joined; Q1 reads one table.
QUERIES = {
    "Q1": (f"SELECT l_flag, {_SUMS} FROM lineitem[j] WHERE l_shipdate <= 2400 GROUP BY l_flag", ""),
    "Q3": (
        f"SELECT l_orderkey, o_orderdate, {_SUMS} FROM customer, orders[j], lineitem[j] WHERE c_segment = 'BUILDING' "
        "AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < 1200 AND l_shipdate > 1200 "
        "GROUP BY l_orderkey, o_orderdate",
        "customer, orders",
    ),
    "Q5": (
        f"SELECT n_name, {_SUMS} FROM customer, orders[j], lineitem[j], supplier, nation WHERE c_custkey = o_custkey "
        "AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey "
        "AND n_region = 'ASIA' AND o_orderdate < 400 GROUP BY n_name",
        "customer, orders",
    ),
    "Q10": (
        f"SELECT c_custkey, c_name, n_name, {_SUMS} FROM customer, orders[j], lineitem[j], nation WHERE c_custkey = o_custkey "
        "AND l_orderkey = o_orderkey AND l_flag = 'R' AND c_nationkey = n_nationkey AND o_orderdate BETWEEN 600 AND 690 "
        "GROUP BY c_custkey, c_name, n_name",
        "customer, orders, nation",
    ),
    "Q18": (
        f"SELECT c_name, c_custkey, o_orderkey, o_orderdate, {_SUMS} FROM customer, orders[j], lineitem[j] WHERE o_orderkey IN "
        "(SELECT i.l_orderkey FROM lineitem[j] i GROUP BY i.l_orderkey HAVING SUM(i.l_quantity) > 280) "
        "AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_name, c_custkey, o_orderkey, o_orderdate",
        "customer, orders",
    ),
}
SHARES = (0.9, 0.09, 0.009, 0.001)


def tables(spark: SparkSession, size: int) -> dict[str, DataFrame]:
    def h(salt: int, most: int) -> str:
        return f"pmod(xxhash64(id, {salt}), {most})"

    orders, customers, suppliers = size // 4, max(1, size // 40), max(1, size // 600)
    return {
        "orders": spark.range(orders).selectExpr(
            "0L AS part", "timestamp_seconds(0) AS part_timestamp", "timestamp_seconds(0) AS t", "id AS o_orderkey",
            f"{h(1, customers)} AS o_custkey", f"CAST({h(2, 2400)} AS INT) AS o_orderdate",
            f"concat({h(3, 5)}, '-PRIORITY') AS o_priority", "repeat(sha1(CAST(id AS STRING)), 1) AS o_comment",
        ),
        "customer": spark.range(customers).selectExpr(
            "id AS c_custkey", f"{h(4, 25)} AS c_nationkey", "concat('Customer#', id) AS c_name",
            f"element_at(array('BUILDING', 'AUTOMOBILE', 'MACHINERY', 'FURNITURE', 'HOUSEHOLD'), CAST({h(5, 5)} AS INT) + 1) AS c_segment",
        ),
        "supplier": spark.range(suppliers).selectExpr("id AS s_suppkey", f"{h(6, 25)} AS s_nationkey"),
        "nation": spark.range(25).selectExpr(
            "id AS n_nationkey", "concat('NATION ', id) AS n_name",
            "element_at(array('ASIA', 'EUROPE', 'AFRICA', 'AMERICA', 'MIDDLE EAST'), CAST(id % 5 AS INT) + 1) AS n_region",
        ),
    }  # fmt: skip


def line_items(spark: SparkSession, size: int, first: int, count: int) -> DataFrame:
    suppliers = max(1, size // 600)
    return spark.range(first, first + count).selectExpr(
        "0L AS part", "timestamp_seconds(0) AS part_timestamp", "timestamp_seconds(0) AS t",
        f"pmod(xxhash64(id, 7), {size // 4}) AS l_orderkey", f"pmod(xxhash64(id, 8), {suppliers}) AS l_suppkey",
        "1 + pmod(xxhash64(id, 9), 50) AS l_quantity", "pmod(xxhash64(id, 10), 100000) AS l_price",
        "element_at(array('R', 'A', 'N', 'N'), CAST(pmod(xxhash64(id, 11), 4) AS INT) + 1) AS l_flag",
        "CAST(pmod(xxhash64(id, 12), 2500) AS INT) AS l_shipdate", "sha1(CAST(id AS STRING)) AS l_comment",
    )  # fmt: skip


def arrive(engine: Engine, table: str, given: DataFrame, rows: int, mark: str) -> None:
    with engine.leased(table) as held:
        definition = engine.definitions.usable[table]
        path = engine.path(table, 0)
        if not storage.exists(path):
            storage.create(path, schemas.of(dict(definition.columns), parts="part" in given.columns))  # type: ignore[union-attr]
            engine.ledger.adopt(held, [(0, None)], engine.now())
        handle = storage.open_at(path)
        files = stage(given, handle, mark)
        entry = Entry(table, 0, engine.definitions.graph()[table].fingerprint, None, None, {0: Content(rows, mark)})
        version = storage.commit(handle, files, (), {"kind": "ingest", "entry": entry.to_json()})
        engine.ledger.commit(held, entry, version, engine.now(), keep=True)


def measure(
    spark: SparkSession, at: Path, query: str, join: str, size: int, by: str
) -> tuple[list[float], float, Engine]:
    """Seconds of the view's step for each late delivery, those of keeping, and the engine."""
    (at / "view_defs").mkdir(parents=True)
    more = f"state: {{join: [{join}]}}" if join else ""
    (at / "view_defs" / "all.yaml").write_text(TEXT.format(query=query, more=more))
    definitions = load(str(at / "view_defs"))
    assert definitions.ok, [str(p) for p in definitions.problems]
    ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", 0.0)
    ledger.define(definitions.graph(), 0.0)
    engine = Engine(spark, ledger, definitions, str(at / "warehouse"), repair_by=by)
    for name, given in tables(spark, size).items():
        arrive(engine, name, given, given.count(), f"a{name}")
    first, kept, took = 0, 0.0, []
    for number, share in enumerate(SHARES):
        count = round(size * share)
        arrive(engine, "lineitem", line_items(spark, size, first, count), first + count, f"l{number}")
        first += count
        if number == 1 and join:
            began = time.perf_counter()
            run_step(engine, "v__joined")
            kept = time.perf_counter() - began
        began = time.perf_counter()
        report = run_step(engine, "v")
        assert report is not None
        assert bool(report.kept) == bool(join and number), report
        if number:
            took.append(time.perf_counter() - began)
    return took, kept, engine


def would_keep(engine: Engine, size: int) -> str:
    """What the cost rule says with the deliveries known."""
    program = engine.definitions
    view = program.usable["v"]
    found = flat(view.update, Relations(program).known)  # type: ignore[union-attr]
    with engine.ledger.database.reading() as r:
        rows = {each.occurrence: float(usual_rows(r, each.reference.table) or 1) for each in found.joined}
        result = float(usual_rows(r, "v") or 1)
    late = {e.occurrence: ExpectedLate(3.0, size / 30) for e in found.joined if e.reference.table == "lineitem"}
    return ", ".join(advised(found, StateFigures(rows, late, result)).join) or "nothing"


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or [200_000, 2_000_000]
    spark = session()
    print(
        f"{'rows':>10}  {'query':5} {'recompute':>9} {'kept':>7} {'ratio':>6} {'+merge':>7} {'ratio':>6} {'keeping':>8} {'rows kept':>10}  rule"
    )
    for size in sizes:
        for name, (query, join) in QUERIES.items():
            variants = {"recompute": ("", "recompute"), "kept": (join, "recompute"), "merge": (join, "merge")}
            totals: dict[str, float] = {}
            keeping, rows, rule = 0.0, 0, "nothing"
            for variant, (kept, by) in variants.items():
                if variant == "kept" and not join:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    took, seconds, engine = measure(spark, Path(folder) / "w", query, kept, size, by)
                    totals[variant] = sum(took)
                    if kept:
                        keeping = seconds
                        with engine.ledger.database.reading() as r:
                            rows = usual_rows(r, "v__joined") or 0
                        rule = would_keep(engine, size)
            plain = totals["recompute"]
            with_it = totals.get("kept", plain)
            print(
                f"{size:10,}  {name:5} {plain:8.2f}s {with_it:6.2f}s {with_it / plain:6.2f} {totals['merge']:6.2f}s "
                f"{totals['merge'] / plain:6.2f} {keeping:7.2f}s {rows:10,}  {rule}",
                flush=True,
            )


if __name__ == "__main__":
    main()
