"""Few keys computed by DuckDB: only what Spark means as well, and only if sampled keys come out as Spark computed them."""

from __future__ import annotations

import duckdb
import pytest

from partwise.compile.load import load_texts
from partwise.compile.sample.generate import basis
from partwise.fresh.adding.exactly import COMPUTED, NotAlike, alike, among, compute
from partwise.parts import Parts

TEXT = """\
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, region: string, amount: double}
files: orders/*.csv
---
dimension: regions
columns: {region: string, name: string}
files: regions.csv
---
view: v
part: 1 hour
sample: {key: customer, outliers: {column: amount}}
update: |
  SELECT o.customer, COALESCE(r.name, 'none') AS name, SUM(amount) AS total, COUNT(*) AS n
  FROM orders[j-1..j] o LEFT JOIN regions r ON r.region = o.region WHERE o.amount > 0 GROUP BY 1, 2
"""


def world(sampled: str) -> duckdb.DuckDBPyConnection:
    on = duckdb.connect(":memory:")
    on.execute("SET TimeZone = 'UTC'")
    on.execute(
        'CREATE TABLE orders (part BIGINT, part_timestamp TIMESTAMPTZ, _file VARCHAR, "at" TIMESTAMPTZ, customer VARCHAR, region VARCHAR, amount DOUBLE)'
    )
    on.execute(
        "INSERT INTO orders SELECT p, NULL, 'f', NULL, c, r, a FROM (VALUES (6, 'a', 'EU', 9), (7, 'a', 'EU', 1), (7, 'b', 'US', 2), (8, 'a', 'EU', 4), (8, 'b', 'XX', 8), "
        "(8, 'o''c', 'EU', 16), (8, 'a', 'EU', -3), (9, 'a', 'EU', 32)) AS t(p, c, r, a)"
    )  # fmt: skip
    on.execute(
        "CREATE TABLE regions AS SELECT 0 AS part, * FROM (VALUES ('EU', 'Europe'), ('US', 'States')) AS t(region, name)"
    )
    columns = "customer VARCHAR, name VARCHAR, total DOUBLE, n BIGINT, part BIGINT, part_timestamp TIMESTAMPTZ"
    on.execute(f"CREATE TABLE v ({columns})")
    on.execute(f"CREATE TABLE v__sample ({columns}, sample_hash BIGINT, sample_exact BOOLEAN)")
    on.execute(f"INSERT INTO v__sample SELECT *, 8, NULL, 0, FALSE FROM (VALUES {sampled}) AS t")
    return on


def computed(on: duckdb.DuckDBPyConnection, *keys: str) -> list[tuple[object, ...]]:
    view = load_texts({"a.yaml": TEXT.encode()}).views["v"]
    assert view.sampled is not None
    compute(on, basis(view), view.sampled, "v", Parts.single(8), among("customer", "string", keys), lambda name: name)
    return on.execute(
        f"SELECT customer, name, total, n, part, epoch(part_timestamp) FROM {COMPUTED} ORDER BY 1, 2"
    ).fetchall()


def test_rows_of_keys_are_those_of_the_view() -> None:
    on = world("('a', 'Europe', 5.0, 2)")
    assert computed(on, "b", "o'c", "nobody") == [
        ("b", "States", 2.0, 1, 8, 28800.0),
        ("b", "none", 8.0, 1, 8, 28800.0),
        ("o'c", "Europe", 16.0, 1, 8, 28800.0),
    ]


@pytest.mark.parametrize(
    "sampled", ["('a', 'Europe', 5.5, 2)", "('a', 'Europe', 5.0, 2), ('b', 'none', 8.0, 1)", "('a', NULL, 5.0, 2)"]
)
def test_what_the_sample_denies_does_not_count(sampled: str) -> None:
    with pytest.raises(NotAlike, match="other rows than the sample"):
        computed(world(sampled), "b")


def test_without_anything_to_compare_with_nothing_is_said() -> None:
    on = world("('a', 'Europe', 5.0, 2)")
    on.execute("DELETE FROM v__sample")
    with pytest.raises(NotAlike, match="nothing to compare"):
        computed(on, "b")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a / b FROM t",
        "SELECT lower(a) FROM t",
        "SELECT CAST(a AS INT) FROM t",
        "SELECT ROW_NUMBER() OVER (ORDER BY a) FROM t",
        "SELECT a FROM t ORDER BY a LIMIT 3",
        "SELECT a FROM t WHERE a LIKE 'x%'",
        "SELECT a FROM t LEFT SEMI JOIN u ON t.a = u.a",
        "SELECT a FROM t CROSS JOIN u",
        "SELECT a FROM t NATURAL JOIN u",
        "SELECT current_date() FROM t",
        "SELECT a FROM t WHERE a = DATE '2026-10-03'",
        "SELECT explode(a) FROM t",
    ],
)
def test_what_may_mean_something_else_is_left_alone(sql: str) -> None:
    with pytest.raises(NotAlike):
        alike(sql)
