"""How near fresh answers are, and how many intervals hold: several populations, without Spark.

The definitions and queries of bench_fresh.py, on DuckDB in place of Spark (tests/fresh/engine.py), so that several samples
are cheap: each population has its own keys, and so its own sample. 5 % of the orders come late, and a line for each of 1.25 %.

error    |answer - truth| / truth, the median over groups, then the mean over queries and populations: of what is published
         (stale), of the sample scaled up (plain), and of `query --fresh`
covered  answered cells whose interval holds the truth. Those of one population share a sample

    python benchmarks/bench_fresh_errors.py [POPULATIONS] [--orders 120000] [--draw]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_fresh import DAY, QUERIES, TEXT, Errors, compare, scaled
from benchmarks.figures import FIGURES, draw
from partwise.fresh.read import FreshRequest, fresh
from partwise.ledger.read.as_of import readable
from partwise.parts import Parts
from partwise.storage.paths import table_path
from partwise.storage.query import PinnedTable, connect
from tests.fresh.engine import Engine

RATIO, USED = 0.2, (0.05, 0.1, 0.2)
ORDERS = {"o": "bigint", "customer": "bigint", "region": "bigint", "urgent": "bigint", "product": "bigint"}
LINES = {"o": "bigint", "line": "bigint", "kind": "bigint", "quantity": "bigint", "price": "double"}
Columns = tuple[np.ndarray, ...]


class Population:
    """Orders with Zipf 2 customers, four lines each with Zipf 2 prices; keys differ from population to population."""

    def __init__(self, seed: int, size: int) -> None:
        self.random, self.size, self.first = np.random.default_rng(seed), size, 10_000_000 * seed
        self.orders, self.lines = (
            self.more(0, size),
            self.lines_of(np.arange(size).repeat(4), np.tile(np.arange(4), size)),
        )

    def zipf(self, count: int, most: int) -> np.ndarray:
        return np.minimum(most, 1 / np.maximum(self.random.random(count), 1e-9)).astype(np.int64)

    def more(self, first: int, count: int) -> Columns:
        r = self.random
        numbers = self.first + np.arange(first, first + count)
        groups = (r.integers(0, 5, count), r.integers(0, 2, count), self.zipf(count, 50))
        return numbers, self.first + self.zipf(count, 100_000), *groups

    def lines_of(self, orders: np.ndarray, line: np.ndarray) -> Columns:
        n = len(orders)
        quantity, price = self.random.integers(1, 51, n), 900.0 + 10 * self.zipf(n, 10_000)
        return self.first + orders, line, np.minimum(7, self.zipf(n, 10_000)), quantity, price

    def late(self) -> None:
        share = self.size // 20
        come = self.size + np.arange(share)
        more = self.lines_of(come.repeat(4), np.tile(np.arange(4), share))
        changed = self.lines_of(np.arange(share // 4), np.full(share // 4, 10))
        self.orders = joined(self.orders, self.more(self.size, share))
        self.lines = joined(self.lines, more, changed)


def joined(*parts: Columns) -> Columns:
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def rows(columns: Columns) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


class Shop:
    def __init__(self, folder: Path, made: Population) -> None:
        text = TEXT.format(ratio=100 * RATIO, orders=made.size // 100, cells=made.size // 60)
        self.engine, self.made = Engine(folder, text), made
        self.load()
        self.engine.run()
        self.refresh()

    def load(self) -> None:
        self.engine.load("orders", ORDERS, {DAY: rows(self.made.orders)})
        self.engine.load("lines", LINES, {DAY: rows(self.made.lines)})

    def refresh(self) -> None:
        for view in QUERIES:
            self.engine.ledger.request(view, Parts.single(DAY), time.time())
        self.engine.run()

    def query(self, sql: str, name: str) -> dict[Any, Any]:
        engine = self.engine
        at = readable(engine.ledger.database, [name], [name])[name]
        path = table_path(engine.warehouse, name, at.version.generation)
        with connect(name, {name: PinnedTable(path, at.version.version)}) as on:
            return dict(row if len(row) > 1 else ("all", *row) for row in on.execute(sql).fetchall())

    def fresh(self, sql: str, ratio: float) -> dict[str, Any]:
        @contextmanager
        def registered(seq: int) -> Any:
            yield seq

        e = self.engine
        found, _ = fresh(e.program, e.ledger, e.warehouse, sql, registered, FreshRequest(ratio=ratio))
        return {str(row.group.get("g", "all")): row.cells["x"] for row in found.rows}


def measure(made: Population, found: dict[str, dict[float, Errors]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder), made)
        with closing(shop.engine):
            made.late()
            shop.load()
            shop.engine.run()
            before = {
                (view, sql, share): (
                    shop.query(sql, view),
                    shop.query(scaled(sql, view, share), f"{view}__sample"),
                    shop.fresh(sql, share),
                )
                for view, queries in QUERIES.items()
                for sql in queries
                for share in USED
            }
            shop.refresh()
            for (view, sql, share), (stale, plain, cells) in before.items():
                compare(shop.query(sql, view), stale, plain, cells, found[view][share])


def over(one: float, other: float) -> str:
    return f"{one / other:6.1f}x" if other else "exact"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("populations", nargs="?", type=int, default=3)
    parser.add_argument("--orders", type=int, default=120_000)
    parser.add_argument("--draw", action="store_true")
    asked = parser.parse_args()
    found = {view: {share: Errors([], [], []) for share in USED} for view in QUERIES}
    for seed in range(1, asked.populations + 1):
        measure(Population(seed, asked.orders), found)
    for view, by_share in found.items():
        for share, e in by_share.items():
            if not e.answered:
                print(f"{view:5} {100 * share:4.3g} % of keys: none of {e.asked} cells answered", flush=True)
                continue
            stale, plain, near = (100 * statistics.fmean(part) for part in (e.stale, e.plain, e.fresh))
            print(
                f"{view:5} {100 * share:4.3g} % of keys: stale {stale:6.3f} %  plain {plain:6.3f} %  fresh {near:6.3f} %"
                f"  nearer than stale {over(stale, near)}, than plain {over(plain, near)}"
                f"  {e.answered} of {e.asked} cells answered, {e.covered} covered",
                flush=True,
            )
        shown = {
            name: [(100 * s, 100 * statistics.fmean(getattr(e, name))) for s, e in by_share.items() if e.answered]
            for name in ("stale", "plain", "fresh")
        }
        if asked.draw and any(shown.values()):
            draw(FIGURES / f"fresh_error_{view}.svg", f"Error of answers from {view}", "% of keys", "error, %", shown)


if __name__ == "__main__":
    main()
