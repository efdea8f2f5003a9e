"""Samples of views that read their own earlier parts: computed from the samples of those parts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from partwise.compile.load import load_texts
from partwise.compile.sample.hashing import hash_of, threshold
from partwise.ledger.catalog import settled
from partwise.ledger.write.define import move_start
from partwise.ledger.write.sample_starts import follow_start
from partwise.parts import parse_part
from tests.fresh.engine import Engine

SOURCE = """
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, amount: double}
files: landing/*.csv
---
"""
TOTAL = """
view: total
part: 1 hour
refresh: {every: 1 day}
initialize: SELECT customer, SUM(amount) AS total FROM orders[i] GROUP BY customer
update: |
  SELECT COALESCE(p.customer, m.customer) AS customer, COALESCE(p.total, 0) + COALESCE(m.x, 0) AS total
  FROM total[j-1] p
  FULL OUTER JOIN (SELECT customer, SUM(amount) AS x FROM orders[j] GROUP BY customer) m ON m.customer <=> p.customer
"""
SAMPLE = "sample: {ratio: 20 %, key: customer, exact: [c7]}\n"
COLUMNS = {"customer": "string", "amount": "double"}
HOUR = {h: parse_part(f"2026-10-03T{h:02d}:00", 3600) for h in range(5, 13)}
Rows = list[tuple[Any, ...]]


def orders(chance: random.Random, share: float) -> Rows:
    return [
        (None if n == 11 else f"c{n}", float(chance.randrange(1, 100))) for n in range(900) if chance.random() < share
    ]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("PARTWISE_CACHE", "off")
    monkeypatch.chdir(tmp_path)
    with closing(Engine(tmp_path, SOURCE + TOTAL + SAMPLE)) as made:
        yield made


def rows_of(ask: Callable[..., Any], table: str) -> dict[tuple[int, Any], float]:
    return {(r["part"], r["customer"]): r["total"] for r in ask("query", f"SELECT * FROM {table}")}


def small(key: tuple[int, Any]) -> bool:
    return hash_of([key[1]]) <= threshold(0.2) or key[1] == "c7"


def assert_filter(ask: Callable[..., Any]) -> None:
    whole = rows_of(ask, "total")
    assert rows_of(ask, "total__sample") == {k: total for k, total in whole.items() if small(k)}


def test_a_late_row_goes_on_through_the_sample(engine: Engine, ask: Callable[..., Any]) -> None:
    chance = random.Random(8)
    rows = {HOUR[h]: orders(chance, 0.5) for h in (8, 9, 10)}
    engine.load("orders", COLUMNS, rows)
    engine.run()
    assert_filter(ask)
    rows[HOUR[8]] += orders(chance, 0.4)
    rows[HOUR[11]] = orders(chance, 0.6)
    engine.load("orders", COLUMNS, {HOUR[h]: rows[HOUR[h]] for h in (8, 11)})
    done = engine.run()
    assert "total__sample" in done
    assert "total" not in done
    sample = rows_of(ask, "total__sample")
    questions = [
        "SELECT COUNT(*) AS n FROM total",
        "SELECT COUNT(*) FILTER (WHERE total > 100) AS n FROM total",
        "SELECT MEDIAN(total) AS n FROM total",
        "SELECT SUM(total) AS n FROM total WHERE customer = 'c7'",
    ]
    found = [ask("query", "--fresh", sql, "--confidence", "99.9") for sql in questions]
    assert found[0]["parts"]["stale"] == [f"2026-10-03T{h:02d}:00" for h in (8, 9, 10)]
    assert found[0]["parts"]["missing"] == ["2026-10-03T11:00"]
    # What a key holds is not known before all parts are computed: a sum is refused, and so is a key that is unknown.
    (why,) = ask("query", "--fresh", "SELECT SUM(total) AS s FROM total")["refused"]
    assert why["code"] == "no-bound"
    unknown = next(f"c{n}" for n in range(50, 99) if not small((0, f"c{n}")))
    sql = f"SELECT SUM(total) AS s FROM total WHERE customer = '{unknown}'"
    (why,) = ask("query", "--fresh", sql, code=2)["refused"]
    assert why["code"] == "key-not-sampled"
    assert "its own earlier parts" in why["message"]

    engine.refresh()
    whole = rows_of(ask, "total")
    assert sample == {k: total for k, total in whole.items() if small(k)}
    for sql, answer in zip(questions, found, strict=True):
        (right,), (row,) = ask("query", sql), answer["rows"]
        cell = row["cells"]["n"]
        assert cell["method"] is not None, sql
        assert cell["low"] - 1e-6 <= right["n"] <= cell["high"] + 1e-6, sql
    assert found[3]["rows"][0]["cells"]["n"]["method"] == "exact"


def test_a_sample_that_is_added_later_begins_where_the_view_began(engine: Engine, ask: Callable[..., Any]) -> None:
    chance = random.Random(9)
    engine.define(SOURCE + TOTAL)
    engine.load("orders", COLUMNS, {HOUR[h]: orders(chance, 0.5) for h in (8, 9)})
    engine.run()
    engine.load("orders", COLUMNS, {HOUR[7]: orders(chance, 0.5)})  # before the start: it moves nothing
    engine.run()
    engine.define(SOURCE + TOTAL + SAMPLE)
    engine.run()
    assert_filter(ask)


def test_when_the_view_begins_earlier_so_does_its_sample(engine: Engine, ask: Callable[..., Any]) -> None:
    chance = random.Random(10)
    engine.load("orders", COLUMNS, {HOUR[h]: orders(chance, 0.5) for h in (8, 9)})
    engine.run()
    engine.load("orders", COLUMNS, {HOUR[7]: orders(chance, 0.5)})
    engine.run()
    with engine.ledger.database.writing(time.time()) as w:
        move_start(w, engine.ledger.graph(), "total", HOUR[7])
        follow_start(w, engine.ledger.graph(), "total")
    engine.refresh()
    with engine.ledger.database.reading() as r:
        assert settled(r, "total__sample").start == settled(r, "total").start == HOUR[7]
    assert_filter(ask)


def test_a_view_that_begins_elsewhere_than_its_sample_takes_it_along(engine: Engine, ask: Callable[..., Any]) -> None:
    """The sample is built, then an earlier part arrives, then the view is built for the first time."""
    chance = random.Random(11)
    engine.load("orders", COLUMNS, {HOUR[h]: orders(chance, 0.5) for h in (8, 9)})
    engine.run("total__sample")
    engine.load("orders", COLUMNS, {HOUR[7]: orders(chance, 0.5)})
    engine.refresh()
    engine.run()
    assert_filter(ask)
    with engine.ledger.database.reading() as r:
        assert settled(r, "total__sample").start == settled(r, "total").start


@pytest.mark.parametrize(
    "view, said",
    [
        (TOTAL + "sample: {outliers: {column: total}}\n", "the largest keys of total cannot be kept"),
        (
            TOTAL.partition("update:")[0]
            + "update: SELECT customer, SUM(amount) + COALESCE((SELECT MAX(total) FROM total[j-1]), 0) AS total "
            + "FROM orders[j] GROUP BY customer\n"
            + SAMPLE,
            "it reads its own earlier parts by something else",
        ),
    ],
)
def test_what_cannot_be_sampled(view: str, said: str) -> None:
    found = load_texts({"a.yaml": (SOURCE + view).encode()})
    (problem,) = [p for p in found.problems if p.code == "bad-sample"]
    assert said in problem.message
    assert problem.hint
