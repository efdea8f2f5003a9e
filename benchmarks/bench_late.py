"""Late line items in four deliveries, 90 % + 9 % + 0.9 % + 0.1 %, over views like those of TPC-H: recompute every time, or
compute from what was kept.

Each query is a view for everything that could be kept of it, and one more for what is chosen (`ours`). All of them stand
in one workspace and get the same deliveries. What counts is refresh / recompute for the three late deliveries together,
and bytes kept as a share of keeping everything. Then the choice for several budgets, with what was measured for each.

    python benchmarks/bench_late.py [ROWS ...]      (default 200000 2000000; 20000000 takes an hour)
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from partwise import storage
from partwise.choose.frontier import KeptOption, within_budget
from partwise.choose.keeping import view_state
from partwise.choose.settled import with_kept_states
from partwise.choose.state import NOTHING, ExpectedLate, StateAdvice, best
from partwise.compile.load import load
from partwise.compile.relations import Relations
from partwise.compile.state.generate import state_mark
from partwise.ledger.open import open_ledger
from partwise.ledger.records.kept_states import KeptChoice
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
"""
VIEW = """
---
view: {name}
part: 1 day
{more}
update: |
  {query}
"""
_SUMS = "SUM(l_price) AS revenue, COUNT(l_price) AS prices, COUNT(*) AS n"
#: Query and the inputs that can be kept joined; Q1 reads one table.
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


@dataclass(frozen=True)
class Variant:
    """A view: what is kept of its query, and how its parts are repaired."""

    query: str
    kind: str  # recompute | groups | everything | ours
    join: tuple[str, ...] = ()
    groups: bool = False
    by: str = "recompute"

    @property
    def name(self) -> str:
        return f"{self.query}_{self.kind}".lower()


def variants() -> list[Variant]:
    found = []
    for name, (_, joined) in QUERIES.items():
        join = tuple(joined.split(", ")) if joined else ()
        found += [Variant(name, "recompute"), Variant(name, "ours", by="auto")]
        if name == "Q18":
            found += [Variant(name, "groups", groups=True, by="auto")]
            found += [Variant(name, "everything", join, True, by="auto")]
        elif join:
            found += [Variant(name, "everything", join, by="merge")]
        else:
            found += [Variant(name, "everything", by="merge")]
    return found


class Late:
    """A workspace with all variants, and what their steps take."""

    def __init__(self, spark: SparkSession, at: Path, size: int) -> None:
        self.spark, self.size = spark, size
        (at / "view_defs").mkdir(parents=True)
        text = TEXT.format()
        self.variants = variants()
        for each in self.variants:
            more = f"repair: {{by: {each.by}}}"
            text += VIEW.format(name=each.name, more=more, query=QUERIES[each.query][0])
        (at / "view_defs" / "all.yaml").write_text(text)
        definitions = load(str(at / "view_defs"))
        assert definitions.ok, [str(p) for p in definitions.problems]
        ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", 0.0)
        ledger.define(definitions.graph(), 0.0)
        self.engine = Engine(spark, ledger, definitions, str(at / "warehouse"), step_seconds=inf)
        self.took: dict[str, list[float]] = {each.name: [] for each in self.variants}
        self.how: dict[str, list[str]] = {each.name: [] for each in self.variants}
        self.making: dict[str, float] = {}
        self.bytes: dict[str, int] = {}
        self.chosen: dict[str, StateAdvice] = {}
        self.options: dict[str, list[StateAdvice]] = {}

    def run(self) -> None:
        for name, given in tables(self.spark, self.size).items():
            arrive(self.engine, name, given, given.count(), f"a{name}")
        first = 0
        for number, share in enumerate(SHARES):
            count = round(self.size * share)
            arrive(
                self.engine, "lineitem", line_items(self.spark, self.size, first, count), first + count, f"l{number}"
            )
            first += count
            # Who comes first reads files that nobody has read before: in turns.
            for each in self.variants if number % 2 == 0 else self.variants[::-1]:
                self._refresh(each, number)
            if not number:
                self._keep()

    def _refresh(self, each: Variant, number: int) -> None:
        began = time.perf_counter()
        if f"{each.name}__grouped" in self.engine.definitions.helpers:
            run_step(self.engine, f"{each.name}__grouped")
        report = run_step(self.engine, each.name)
        assert report is not None
        if number:
            self.took[each.name].append(time.perf_counter() - began)
            by = "recompute" if report.repair is None else report.repair.by
            self.how[each.name].append(f"{by}{', kept' if report.kept else ''}")
            print(each.name, f"{self.took[each.name][-1]:.2f}", self.how[each.name][-1], file=sys.stderr, flush=True)

    def _keep(self) -> None:
        """What each variant is about, and for `ours` what the rule chooses with three late deliveries to come."""
        choices: dict[str, KeptChoice] = {}
        for each in self.variants:
            join, groups = each.join, each.groups
            if each.kind == "ours":
                best_of = self.chosen[each.query] = self._best(each)
                join, groups = best_of.join, best_of.groups
            if join or groups:
                mark = state_mark(self.engine.definitions.views[each.name])
                choices[each.name] = KeptChoice(each.name, tuple(join), groups, mark, 10**9)
        program = with_kept_states(self.engine.definitions, choices)
        helpers = {h.name: h for name in choices for h in program.alternative(name).kept_helpers}
        graph = {name: table for name, table in program.graph().tables.items() if name in helpers}
        self.engine.ledger.keep_states(choices, graph, [*helpers], time.time())
        self.engine.catch_up()
        for name in helpers:
            began = time.perf_counter()
            assert run_step(self.engine, name) is not None
            view = name.rpartition("__")[0]
            self.making[view] = self.making.get(view, 0.0) + time.perf_counter() - began
            handle = storage.open_at(self.engine.path(name, 0))
            self.bytes[view] = self.bytes.get(view, 0) + sum(file.size for file in handle.files)

    def _best(self, each: Variant) -> StateAdvice:
        program = self.engine.definitions
        with self.engine.ledger.database.reading() as r:
            found = view_state(r, program, Relations(program), program.views[each.name])
        if found is None:
            return NOTHING
        statement = program.views[each.name].alternatives[0].table.update
        late = [n for n, table in enumerate(statement.found.tables) if table.table == "lineitem"]
        expected = {n: ExpectedLate(3.0, self.size / 30) for n in late}
        figures = replace(found.figures, late=expected)
        options = self.options[each.query] = replace(found, figures=figures).options()
        return best(options)

    def show(self) -> None:
        for query in QUERIES:
            plain = sum(self.took[f"{query}_recompute".lower()])
            everything = self.bytes.get(f"{query}_everything".lower(), 0)
            kinds = [each for each in self.variants if each.query == query and each.kind != "recompute"]
            for each in sorted(kinds, key=lambda v: v.kind == "ours"):
                seconds, kept = self.took[each.name], self.bytes.get(each.name, 0)
                share = f"{kept / everything:6.0%}" if everything and kept else "     -"
                rule = f"  {what(self.chosen[query])}" if each.kind == "ours" else ""
                print(
                    f"{self.size:10,}  {query:4} {each.kind:10} {plain:7.2f}s {sum(seconds):7.2f}s {sum(seconds) / plain:6.2f}  "
                    f"{' '.join(f'{s:6.2f}' for s in seconds)}  {self.making.get(each.name, 0.0):6.2f}s {kept / 1e6:8.2f} MB {share}  "
                    f"{'; '.join(self.how[each.name])}{rule}",
                    flush=True,
                )
        self._sweep()

    def _sweep(self) -> None:
        """The choice over all queries for shares of what everything takes."""
        queries = [query for query in QUERIES if self.options.get(query)]
        curves = [[KeptOption(0.0, 0.0), *self._curve(query)] for query in queries]
        most = sum(max(o.bytes for o in curve) for curve in curves)
        for share in (0.0, 0.01, 0.1, 0.5, 1.0):
            chosen = within_budget(curves, share * most)
            said = ", ".join(f"{q}: {'; '.join(o.kept) or 'nothing'}" for q, o in zip(queries, chosen, strict=True))
            print(f"{self.size:10,}  budget {share:5.0%} of {most / 1e6:.1f} MB (estimated): {said}", flush=True)

    def _curve(self, query: str) -> list[KeptOption]:
        paying = [o for o in self.options[query] if o.pays]
        return [KeptOption(o.bytes, o.cost - o.recompute, frozenset([what(o)])) for o in paying]


def what(advice: StateAdvice) -> str:
    parts = [*advice.join, *(["groups"] if advice.groups else [])]
    return " + ".join(parts) or "nothing"


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or [200_000, 2_000_000]
    spark = session()
    print(
        f"{'rows':>10}  view            recompute    kept  ratio  9 %   0.9 %   0.1 %   making    bytes   of everything"
    )
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            late = Late(spark, Path(folder) / "w", size)
            late.run()
            late.show()


if __name__ == "__main__":
    main()
