"""Few late rows: the keys that they name are computed, all of them, and the answer is exact."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from partwise.compile.sample.hashing import hash_of, threshold
from partwise.fresh import few_keys
from partwise.parts import Parts, parse_part
from tests.fresh.engine import Engine

DEFINITIONS = """
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, region: string, amount: double}
files: landing/*.csv
---
source: visits
part: 1 hour
time: at
columns: {at: timestamp, who: string, n: bigint}
files: landing/v*.csv
---
view: revenue
part: 1 hour
refresh: {every: 1 day}
sample: {ratio: 20 %, key: customer, outliers: {column: amount, keep: 20}}
update: |
  SELECT o.customer, o.region, SUM(o.amount) AS revenue, COUNT(*) AS n
  FROM orders[j] o JOIN visits[j-1..j] v ON v.who = o.customer
  GROUP BY o.customer, o.region
"""
ORDERS = {"customer": "string", "region": "string", "amount": "double"}
VISITS = {"who": "string", "n": "bigint"}
HOUR = {h: parse_part(f"2026-10-03T{h:02d}:00", 3600) for h in (8, 9, 10)}
QUESTIONS = [
    "SELECT SUM(revenue) AS r, COUNT(*) AS n, AVG(revenue) AS a, MAX(revenue) AS m, MEDIAN(revenue) AS h FROM revenue",
    "SELECT region, SUM(revenue) AS r FROM revenue WHERE revenue > 50 GROUP BY region ORDER BY region",
    "SELECT part_timestamp, SUM(n) AS r FROM revenue GROUP BY part_timestamp ORDER BY 1",
]
Ask = Callable[..., Any]


class Shop:
    def __init__(self, engine: Engine) -> None:
        chance = random.Random(3)
        self.engine = engine
        self.orders = {
            HOUR[h]: [
                (f"c{n}", ("EU", "US")[n % 2], float(chance.randrange(1, 90)))
                for n in range(400)
                if chance.random() < 0.7
            ]
            for h in HOUR
        }
        self.visits = {HOUR[h]: [(f"c{n}", 1) for n in range(0, 400, 2)] for h in HOUR}
        engine.load("orders", ORDERS, self.orders)
        engine.load("visits", VISITS, self.visits)
        engine.run()

    def arrive(self, hour: int, *rows: tuple[Any, ...]) -> None:
        self.orders[HOUR[hour]] = [*self.orders[HOUR[hour]], *rows]
        self.engine.load("orders", ORDERS, {HOUR[hour]: self.orders[HOUR[hour]]})

    def visit(self, hour: int, *rows: tuple[Any, ...]) -> None:
        self.visits[HOUR[hour]] = [*self.visits[HOUR[hour]], *rows]
        self.engine.load("visits", VISITS, {HOUR[hour]: self.visits[HOUR[hour]]})


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("PARTWISE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    with closing(Engine(tmp_path, DEFINITIONS)) as engine:
        yield Shop(engine)


def answers(ask: Ask) -> list[dict[str, Any]]:
    return [ask("query", "--fresh", sql) for sql in QUESTIONS]


def assert_exact(ask: Ask, shop: Shop, found: list[dict[str, Any]]) -> None:
    for answer in found:
        assert {cell["method"] for row in answer["rows"] for cell in row["cells"].values()} == {"exact"}, answer
    shop.engine.refresh()
    for sql, answer in zip(QUESTIONS, found, strict=True):
        for row, right in zip(answer["rows"], ask("query", sql), strict=True):
            for name, cell in row["cells"].items():
                assert cell["estimate"] == pytest.approx(right[name], rel=1e-9), (sql, row, right)


def test_late_rows_of_few_keys_are_computed(shop: Shop, ask: Ask) -> None:
    unknown = [f"c{n}" for n in range(100, 160, 2) if hash_of([f"c{n}"]) > threshold(0.2)]
    shop.arrive(9, *((key, "EU", 5000.0) for key in unknown[:6]), ("new", "EU", 7.0))
    shop.visit(9, (unknown[7], 3))  # counts in 9 and 10
    shop.engine.run()
    found = answers(ask)
    assert found[0]["keys"] == {"sampled": 0, "exact": 8, "differing": 8}
    assert found[0]["parts"]["stale"] == ["2026-10-03T09:00", "2026-10-03T10:00"]
    assert_exact(ask, shop, found)


def test_a_correction_and_a_key_that_goes(shop: Shop, ask: Ask) -> None:
    rows = shop.orders[HOUR[9]]
    rows[0] = (rows[0][0], rows[0][1], 1.0)
    del rows[2:4]
    shop.arrive(9)
    shop.engine.run()
    found = answers(ask)
    assert 0 < found[0]["keys"]["differing"] <= 3
    assert_exact(ask, shop, found)


def test_a_part_that_is_requested_and_has_not_changed_is_exact(shop: Shop, ask: Ask) -> None:
    shop.engine.ledger.request("revenue", Parts.single(HOUR[9]), time.time())
    shop.engine.ledger.request("revenue__sample", Parts.single(HOUR[9]), time.time())
    shop.engine.run("revenue__sample")
    found = ask("query", "--fresh", QUESTIONS[0])
    assert {c["method"] for c in found["rows"][0]["cells"].values()} == {"exact"}


def test_many_changed_keys_are_estimated(shop: Shop, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_keys, "MOST_KEYS", 20)
    shop.arrive(9, *((f"c{n}", "EU", 40.0) for n in range(0, 400, 2)))
    shop.engine.run()
    found = ask("query", "--fresh", "SELECT COUNT(*) AS n, SUM(n) AS s FROM revenue")
    assert "exact" not in {c["method"] for c in found["rows"][0]["cells"].values()}


def test_what_the_sample_denies_is_not_believed(shop: Shop, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a changed key were overlooked, a sampled one would show it."""
    sampled = [f"c{n}" for n in range(0, 400, 2) if hash_of([f"c{n}"]) <= threshold(0.2)]
    shop.arrive(9, (sampled[0], "EU", 40.0), (sampled[1], "EU", 50.0))
    shop.engine.run()
    monkeypatch.setattr(few_keys, "_keys_between", lambda *_: {sampled[0]})
    found = ask("query", "--fresh", "SELECT SUM(revenue) AS s FROM revenue")
    assert [why["code"] for why in found["refused"]] == ["few-keys"]


def test_a_late_giant_is_exact(shop: Shop, ask: Ask) -> None:
    shop.arrive(9, ("c2", "EU", 1e9))
    shop.engine.run()
    assert_exact(ask, shop, answers(ask))


def test_rows_are_fresh_as_well(shop: Shop, ask: Ask) -> None:
    shop.arrive(9, ("c2", "JP", 11.0))
    shop.engine.run()
    found = ask("query", "--fresh", "SELECT customer, region, revenue FROM revenue WHERE region = 'JP'")
    assert found["selected"] == [{"row": {"customer": "c2", "region": "JP", "revenue": 22.0}, "fresh": True}]
