"""WHERE lists keys: exact answers, also of keys of several columns, of a part of the key, and of other types than text."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from partwise.compile.sample.hashing import hash_of, threshold
from partwise.parts import parse_part
from tests.fresh.engine import Engine

DEFINITIONS = """
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, shop: bigint, amount: double}
files: landing/*.csv
---
view: revenue
part: 1 hour
refresh: {every: 1 day}
sample: {ratio: 20 %, outliers: {column: amount, keep: 20}}
update: SELECT customer, shop, SUM(amount) AS revenue, COUNT(*) AS n FROM orders[j] GROUP BY customer, shop
---
view: strange
part: 1 hour
refresh: {every: 1 day}
sample: {ratio: 20 %, key: [name, shop]}
update: SELECT upper(customer) AS name, shop, SUM(amount) AS revenue FROM orders[j] GROUP BY upper(customer), shop
"""
COLUMNS = {"customer": "string", "shop": "bigint", "amount": "double"}
EIGHT, NINE = (parse_part(f"2026-10-03T{hour}:00", 3600) for hour in ("08", "09"))
KEYS = [(f"c{n}", shop) for n in range(200) for shop in (-1, 0, 1)]
SAMPLED = [k for k in KEYS if hash_of([k[0], str(k[1])]) <= threshold(0.2)]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("PARTWISE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    with closing(Engine(tmp_path, DEFINITIONS)) as made:
        yield made


def test_listed_keys_are_exact(engine: Engine, ask: Callable[..., Any]) -> None:
    chance = random.Random(3)

    def orders(share: float) -> list[tuple[Any, ...]]:
        return [(c, s, round(chance.gammavariate(2.0, 30.0), 2)) for c, s in KEYS if chance.random() < share]

    rows = {EIGHT: orders(0.9), NINE: orders(0.9)}
    engine.load("orders", COLUMNS, rows)
    engine.run()
    rows[NINE] = rows[NINE] + orders(0.5)
    engine.load("orders", COLUMNS, {NINE: rows[NINE]})
    engine.run()

    def total(view: str, where: str) -> Any:
        found = ask("query", "--fresh", f"SELECT SUM(revenue) AS r FROM {view} WHERE {where}")
        (row,) = found["rows"]
        return row["cells"]["r"], found

    (known, shop), (unknown, other) = SAMPLED[0], next(k for k in KEYS if k not in SAMPLED)
    for where, meant in (
        (f"customer = '{known}' AND shop = {shop}", [(known, shop)]),
        (f"shop IN ({other}, 7) AND customer = '{unknown}'", [(unknown, other)]),
        (f"customer IN ('{known}', '{unknown}')", [k for k in KEYS if k[0] in (known, unknown)]),
        ("shop = -1 AND customer LIKE 'c1%'", [k for k in KEYS if k[1] == -1 and k[0].startswith("c1")]),
    ):
        cell, _ = total("revenue", where)
        right = sum(amount for part in rows.values() for c, s, amount in part if (c, s) in meant)
        assert cell["method"] == "exact", where
        assert cell["estimate"] == pytest.approx(right), where

    # Spark and DuckDB may write a name differently: what the sample does not have is not computed.
    unsampled = next(k for k in KEYS if hash_of([k[0].upper(), str(k[1])]) > threshold(0.2))
    sql = f"SELECT SUM(revenue) AS r FROM strange WHERE name = '{unsampled[0].upper()}' AND shop = {unsampled[1]}"
    (refused,) = ask("query", "--fresh", sql, code=2)["refused"]
    assert refused["code"] == "key-not-sampled"
    assert "exact:" not in refused["hint"]  # which lists keys of one column alone
    _, found = total("strange", "shop = 1")
    assert [each["code"] for each in found["refused"]] in ([], ["few-keys"], ["large-key"])
