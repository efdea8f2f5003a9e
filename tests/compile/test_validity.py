"""Rows joined with what was valid at their time: the statement that runs, on DuckDB, against loops."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import duckdb
import pytest

from partwise.compile.dimensions.validity import valid_text
from partwise.definitions.definitions import Definition, Dimension, Source, Time, View
from partwise.definitions.yaml.places import Place
from partwise.sql.parse import TranslationError
from tests.compile.duck import to_duckdb

HERE = Place("a.yaml", 1, 1)
SALES = {"ts": "timestamp", "item": "string", "n": "bigint"}
TABLES: dict[str, Definition] = {
    "sales": Source("sales", HERE, 60, Time("ts"), SALES),
    "ticks": Source("ticks", HERE, 60, Time("at", "milliseconds"), {"at": "bigint", "item": "string"}),
    "prices": Dimension(
        "prices", HERE, {"item": "string", "price": "bigint", "since": "timestamp"}, key=("item", "since"), valid_from="since"
    ),
    "totals": View("totals", HERE, 60),
}  # fmt: skip


def brute(sales: list[tuple[int, str, int]], prices: list[tuple[str, int, int | None]], left: bool) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for ts, item, n in sales:
        times = [-1 if since is None else since for i, _, since in prices if i == item]
        last = max((t for t in times if t <= ts), default=None)
        hits = [p for i, p, since in prices if i == item and (-1 if since is None else since) == last]
        found.update((item, n, price) for price in hits or ([None] if left else []))
    return found


@pytest.mark.parametrize("side", ["", "LEFT "])
def test_each_row_meets_what_was_valid_at_its_time(side: str) -> None:
    text = f"SELECT s.item, s.n, p.price FROM sales[j] s {side}JOIN prices p ON p.item = s.item WHERE s.n < 100"
    runs = to_duckdb(valid_text(text, "j", TABLES).replace("sales[j]", "sales"))
    rng, con = Random(side), duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.execute("CREATE TABLE sales (ts TIMESTAMP, item VARCHAR, n BIGINT)")
    con.execute("CREATE TABLE prices (item VARCHAR, price BIGINT, since TIMESTAMP)")
    for _ in range(60):
        sales = [(rng.randrange(20), rng.choice("abc"), n) for n in range(rng.randrange(8))]
        prices = [(rng.choice("ab"), p, rng.choice([None, *range(20)])) for p in range(rng.randrange(7))]
        con.execute("DELETE FROM sales")
        con.execute("DELETE FROM prices")
        for ts, item, n in sales:
            con.execute("INSERT INTO sales VALUES (make_timestamp(CAST(? AS BIGINT) * 1000000), ?, ?)", [ts, item, n])
        for item, price, since in prices:
            con.execute(
                "INSERT INTO prices VALUES (?, ?, make_timestamp(CAST(? AS BIGINT) * 1000000))", [item, price, since]
            )
        assert Counter(con.execute(runs).fetchall()) == brute(sales, prices, bool(side)), (sales, prices)


def test_the_time_of_a_row() -> None:
    def on(table: str) -> str:
        return valid_text(f"SELECT x.item, p.price FROM {table}[j] x JOIN prices p ON p.item = x.item", "j", TABLES)

    assert "UNIX_MICROS(CAST(x.ts AS TIMESTAMP)) >= p.__valid_since" in on("sales")
    assert "CAST(x.at AS BIGINT) * 1000L >= p.__valid_since" in on("ticks")
    assert "UNIX_MICROS(x.part_timestamp) >= p.__valid_since" in on("totals")
    assert valid_text("SELECT item FROM sales[j]", "j", TABLES) == "SELECT item FROM sales[j]"


def test_conditions_keep_their_meaning() -> None:
    text = "SELECT s.item, p.price FROM sales[j] s JOIN prices p ON p.item = s.item OR s.n = 1 JOIN ticks[j] t ON t.item = s.item"
    made = valid_text(text, "j", TABLES)
    assert "ON (p.item = s.item OR s.n = 1) AND UNIX_MICROS" in made
    assert made.endswith("< p.__valid_until) JOIN ticks[j] t ON t.item = s.item")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("SELECT s.item, p.price FROM sales[j] s, prices p WHERE p.item = s.item", "only be joined by JOIN"),
        ("SELECT s.item, p.price FROM prices p JOIN sales[j] s ON p.item = s.item", "only be joined by JOIN"),
        ("SELECT s.item, p.price FROM sales[j] s JOIN prices p USING (item)", "only be joined by JOIN"),
        ("SELECT s.item FROM sales[j] s WHERE s.item IN (SELECT item FROM prices)", "only be joined by JOIN"),
        ("SELECT s.item FROM sales[j] s LEFT ANTI JOIN prices p ON p.item = s.item", "only be joined by JOIN"),
        ("SELECT s.item, p.price FROM sales[j] s JOIN ticks[j] t ON true JOIN prices p ON p.item = s.item AND t.at = 1", "one table"),
        ("SELECT p.*, s.n FROM sales[j] s JOIN prices p ON p.item = s.item", "columns have to be named"),
        ("SELECT t.*, p.price FROM totals[j] t JOIN prices p ON p.item = t.item", "columns have to be named"),
    ],
)  # fmt: skip
def test_where_it_is_not_plain_what_was_valid_it_is_refused(text: str, what: str) -> None:
    with pytest.raises(TranslationError) as caught:
        valid_text(text, "j", TABLES)
    (problem,) = caught.value.problems
    assert problem.code == "valid-from"
    assert what in problem.message
    assert problem.hint
