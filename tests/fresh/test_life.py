"""Samples through the life of a workspace: changed definitions, expired parts, tables that are made again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from partwise.compile.sample.hashing import hash_of, threshold
from partwise.ledger.write.lease_holding import holding
from partwise.parts import parse_part
from tests.fresh.engine import Engine

DEFINITIONS = """
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, amount: double}
files: landing/*.csv
---
view: revenue
part: 1 hour
refresh: {every: 1 day}
sample: {ratio: 20 %, key: customer, outliers: {column: amount, keep: 60}}
update: SELECT customer, SUM(amount) AS revenue FROM orders[j] GROUP BY customer
"""
COLUMNS = {"customer": "string", "amount": "double"}
HOUR = {h: parse_part(f"2026-10-03T{h:02d}:00", 3600) for h in range(8, 12)}
TOTAL = "SELECT SUM(revenue) AS r, COUNT(*) AS n FROM revenue"
Ask = Callable[..., Any]


def orders(chance: random.Random, share: float) -> list[tuple[Any, ...]]:
    return [(f"c{n}", float(chance.randrange(20, 60))) for n in range(1500) if chance.random() < share]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("PARTWISE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    with closing(Engine(tmp_path, DEFINITIONS)) as made:
        chance = random.Random(2)
        made.load("orders", COLUMNS, {HOUR[h]: orders(chance, 0.8) for h in (8, 9, 10)})
        made.run()
        yield made


def assert_covered(ask: Ask, engine: Engine, found: dict[str, Any]) -> None:
    engine.refresh()
    (right,) = ask("query", TOTAL)
    for name, cell in found["rows"][0]["cells"].items():
        slack = 1e-9 * abs(right[name])
        assert cell["method"] is None or cell["low"] - slack <= right[name] <= cell["high"] + slack


def assert_filter(ask: Ask) -> None:
    whole, sample = (
        {(r["part"], r["customer"]): r["revenue"] for r in ask("query", f"SELECT * FROM {t} WHERE {where}")}
        for t, where in (("revenue", "TRUE"), ("revenue__sample", "NOT sample_exact"))
    )
    exact = {(r["part"], r["key_0"]) for r in ask("query", "SELECT part, key_0 FROM revenue__sizes WHERE place <= 60")}
    assert sample == {k: v for k, v in whole.items() if hash_of([k[1]]) <= threshold(0.2) and k not in exact}


def test_a_changed_query_is_estimated_by_its_new_sample(engine: Engine, ask: Ask) -> None:
    """No late row came, but every published row is of the old query: few changed keys must not be taken for none."""
    engine.define(DEFINITIONS.replace("FROM orders[j]", "FROM orders[j] WHERE amount < 50"))
    engine.run()
    found = ask("query", "--fresh", TOTAL, "--confidence", "99.9")
    assert found["parts"]["stale"] == [f"2026-10-03T{h:02d}:00" for h in (8, 9, 10)]
    assert "exact" not in {c["method"] for c in found["rows"][0]["cells"].values()}
    assert_covered(ask, engine, found)
    assert_filter(ask)


def test_expired_parts_leave_the_sample_with_the_view(engine: Engine, ask: Ask) -> None:
    engine.load("orders", COLUMNS, {HOUR[10]: orders(random.Random(4), 0.9), HOUR[11]: orders(random.Random(5), 0.9)})
    engine.run()
    engine.define(DEFINITIONS.replace("refresh:", "keep: 1 hour\nrefresh:"))
    engine.run()
    ask("retain")
    parts = {
        t: {row["part"] for row in ask("query", f"SELECT DISTINCT part FROM {t}")}
        for t in ("revenue", "revenue__sample")
    }
    assert parts["revenue"] <= parts["revenue__sample"]
    assert HOUR[8] not in parts["revenue"] | parts["revenue__sample"]
    found = ask("query", "--fresh", TOTAL, "--confidence", "99.9")
    assert found["parts"]["stale"] + found["parts"]["missing"]
    assert_covered(ask, engine, found)


@pytest.mark.parametrize("table", ["revenue__sample", "revenue"])
def test_a_table_that_is_made_again_answers_as_before(engine: Engine, ask: Ask, table: str) -> None:
    engine.load("orders", COLUMNS, {HOUR[9]: orders(random.Random(6), 0.9)})
    engine.run()
    before = ask("query", "--fresh", TOTAL)
    with holding(engine.ledger, engine.warehouse, table, time.time) as held:
        engine.ledger.rebuild_again(held, time.time())
    engine.run()
    if table != "revenue":
        after = ask("query", "--fresh", TOTAL)
        for name, cell in before["rows"][0]["cells"].items():
            assert after["rows"][0]["cells"][name]["estimate"] == pytest.approx(cell["estimate"], rel=1e-9)
    engine.refresh()
    assert_filter(ask)
