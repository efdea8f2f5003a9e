"""Fresh answers from the shell: samples do not wait, and what they say holds when the view is refreshed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.compile.sample.hashing import hash_of, hash_sql, threshold

from .shell import Shell

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, region: string, amount: double}
files: landing/o*.csv
---
view: revenue
part: 1 hour
refresh: {every: 1 day}
sample: {ratio: 20 %, key: customer, outliers: {column: amount, keep: 40}, exact: [c7]}
update: |
  SELECT customer, region, SUM(amount) AS revenue, COUNT(*) AS n FROM orders[j] GROUP BY customer, region
---
view: total
part: 1 hour
refresh: {every: 1 day}
sample: {ratio: 20 %, key: customer, exact: [c7]}
initialize: SELECT customer, SUM(CAST(amount AS DECIMAL(18,2))) AS total FROM orders[i] GROUP BY customer
update: |
  SELECT COALESCE(p.customer, m.customer) AS customer,
         CAST(COALESCE(p.total, 0) + COALESCE(m.x, 0) AS DECIMAL(28,2)) AS total
  FROM total[j-1] p
  FULL OUTER JOIN (SELECT customer, SUM(CAST(amount AS DECIMAL(18,2))) AS x FROM orders[j] GROUP BY customer) m
  ON m.customer <=> p.customer
"""
RATIO, CUSTOMERS, REGIONS = 0.2, 1500, ("EU", "US")


def lines(chance: random.Random, hour: int, share: float, count: int = CUSTOMERS) -> list[str]:
    found = []
    for n in range(count):
        if chance.random() < share:
            name = "" if n == 11 else f"c{n}"  # one customer is NULL
            amount = round(chance.gammavariate(2.0, 30.0), 2)
            found.append(f"2026-10-03T{hour:02d}:{chance.randrange(60):02d}:10,{name},{REGIONS[n % 2]},{amount}")
    return found


def keyed(shell: Shell, table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = shell.json("query", f"SELECT * FROM {table}")
    return {(row["part"], row["customer"], row["region"]): row for row in rows}


def assert_sample_is_a_filter(
    sample: dict[tuple[Any, ...], dict[str, Any]], whole: dict[tuple[Any, ...], dict[str, Any]], exact: set[Any]
) -> None:
    """Row by row: of every part exactly the rows of sampled and exact keys, and the same values."""
    chosen = {k for k in whole if hash_of([k[1]]) <= threshold(RATIO) or (k[0], k[1]) in exact or k[1] == "c7"}
    assert sample.keys() == chosen
    for k, row in sample.items():
        assert row["n"] == whole[k]["n"]
        assert row["revenue"] == pytest.approx(whole[k]["revenue"], rel=1e-12)
        assert row["sample_exact"] == ((k[0], k[1]) in exact or k[1] == "c7")


def is_sampled(customer: Any) -> bool:
    return hash_of([customer]) <= threshold(RATIO) or customer == "c7"


def totals(shell: Shell, table: str) -> dict[tuple[int, Any], Any]:
    return {(row["part"], row["customer"]): row["total"] for row in shell.json("query", f"SELECT * FROM {table}")}


def exact_keys(shell: Shell) -> set[tuple[int, Any]]:
    rows = shell.json("query", "SELECT part, key_0 FROM revenue__sizes WHERE place <= 40")
    return {(row["part"], row["key_0"]) for row in rows}


def test_a_sample_answers_before_the_refresh(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    chance = random.Random(4)
    shell = Shell(tmp_path / "w", DEFINITIONS, monkeypatch, capsys)
    head = "at,customer,region,amount"
    shell.land("o1.csv", head, *(x for h in (8, 9, 10) for x in lines(chance, h, 0.9)), "2026-10-03T11:00:00,c1,EU,1")
    shell("run")
    assert_sample_is_a_filter(keyed(shell, "revenue__sample"), keyed(shell, "revenue"), exact_keys(shell))
    # All clean: the exact answer, as without --fresh.
    total = "SELECT SUM(revenue) AS r, COUNT(*) AS c, AVG(revenue) AS a FROM revenue"
    found = shell.json("query", "--fresh", total)
    assert {c["method"] for c in found["rows"][0]["cells"].values()} == {"exact"}
    assert found["rows"][0]["cells"]["r"]["estimate"] == shell.json("query", total)[0]["r"]

    # Late rows, a giant among them, and a new part: the view waits for its policy, the sample does not.
    late = [*lines(chance, 9, 0.5), "2026-10-03T09:30:00,giant,EU,90000", *lines(chance, 11, 0.9)]
    shell.land("o2.csv", head, *late, "2026-10-03T12:00:00,c1,EU,1")
    done = shell("run")
    assert "revenue__sample" in done
    published = keyed(shell, "revenue")
    sample, exact = keyed(shell, "revenue__sample"), exact_keys(shell)
    questions = [
        total,
        "SELECT region, SUM(revenue) AS r, COUNT(*) AS c FROM revenue GROUP BY region ORDER BY region",
        "SELECT SUM(revenue) FILTER (WHERE n > 1) AS r FROM revenue WHERE part_timestamp >= '2026-10-03T09:00'",
        "SELECT part_timestamp, SUM(n) AS r FROM revenue GROUP BY part_timestamp ORDER BY 1",
        "SELECT MEDIAN(revenue) AS r, QUANTILE_CONT(revenue, 0.9) AS p FROM revenue",
        "SELECT SUM(revenue) AS r, SUM(n) AS n FROM revenue WHERE customer IN ('c7', 'giant') AND part_timestamp < '2026-10-03T11:00'",
        "SELECT COUNT(*) AS n FROM total",
        "SELECT COUNT(*) AS c, SUM(r.n) AS r FROM revenue r JOIN total t ON t.customer = r.customer AND t.part = r.part",
    ]
    running = totals(shell, "total__sample")
    before = [shell.json("query", "--fresh", sql, "--confidence", "99.9") for sql in questions]
    assert before[0]["parts"]["stale"] == ["2026-10-03T09:00"]
    assert before[0]["parts"]["missing"] == ["2026-10-03T11:00"]
    assert before[0]["parts"]["stand_in"] == {"2026-10-03T11:00": "2026-10-03T10:00"}
    said = shell("query", "--fresh", total)
    assert "±" in said
    assert "1 stale + 1 missing of 4 parts, 20 % of keys" in said
    unknown = next(
        f"c{n}" for n in range(1, 99) if hash_of([f"c{n}"]) > threshold(RATIO) and f"c{n}" not in {k for _, k in exact}
    )
    # A key that nobody has looked at is computed from the inputs: exactly.
    questions.append(f"SELECT SUM(revenue) AS r, SUM(n) AS n FROM revenue WHERE customer IN ('{unknown}', 'c7')")
    before.append(shell.json("query", "--fresh", questions[-1]))
    assert {cell["method"] for cell in before[-1]["rows"][0]["cells"].values()} == {"exact"}

    at = before[0]["sequence"]
    some = shell.json("query", "--fresh", total, "--ratio", "10%")
    assert some["ratio"] == 0.1
    assert 0.3 < some["keys"]["sampled"] / before[0]["keys"]["sampled"] < 0.7
    largest = shell.json("query", "--fresh", "SELECT MAX(revenue) AS top FROM revenue")["rows"][0]["cells"]["top"]
    assert largest["method"] == "exact"  # one of the 40 largest keys
    assert largest["estimate"] == 90000

    shell("run", "--now")
    # Estimates were compared with what the refresh gave, and the same question has the same answer later on.
    covered = shell.json("status", "revenue")["estimates"]
    assert covered["of"] == 2
    assert covered["covered"] >= 0.5
    assert "of 2 checks covered" in shell("status", "revenue")
    assert shell.json("query", "--fresh", total)["checked"] == covered
    again = shell.json("query", "--fresh", total, "--as-of", f"@{at}", "--confidence", "99.9")
    for name, cell in again["rows"][0]["cells"].items():
        assert cell["high"] == pytest.approx(before[0]["rows"][0]["cells"][name]["high"], rel=1e-9)
    whole = keyed(shell, "revenue")
    assert_sample_is_a_filter(sample, whole, exact)
    assert shell.json("verify")["different"] == []
    answered = 0
    for sql, answer in zip(questions, before, strict=True):
        truth = shell.json("query", sql)
        for row, right in zip(answer["rows"], truth, strict=True):
            for name, cell in row["cells"].items():
                if cell["method"] is not None:
                    answered += 1
                    assert cell["low"] - 1e-6 <= right[name] <= cell["high"] + 1e-6, (sql, row, right)
    assert answered >= 14, before
    assert all(c["method"] == "exact" for row in before[5]["rows"] for c in row["cells"].values())
    assert published != whole
    assert running == {k: v for k, v in totals(shell, "total").items() if is_sampled(k[1])}

    # One late row: the key that it names is computed, and the answer is exact.
    shell.land("o3.csv", head, "2026-10-03T10:30:00,c3,US,5000")
    shell("run")
    found = shell.json("query", "--fresh", total)
    assert found["keys"]["differing"] == 1
    assert {c["method"] for c in found["rows"][0]["cells"].values()} == {"exact"}
    was = keyed(shell, "revenue__was")
    shell("run", "--now")
    assert found["rows"][0]["cells"]["r"]["estimate"] == pytest.approx(shell.json("query", total)[0]["r"], rel=1e-12)
    # What is published of the sampled keys follows.
    assert was.keys() == {k for k in whole if hash_of([k[1]]) <= threshold(RATIO)}


def test_spark_hashes_as_python_does(spark: SparkSession) -> None:
    keys = ["", "a", "ACME", "n", "v", None, "ä", "x" * 7, "x" * 8, "x" * 31, "x" * 32, "x" * 33, "y" * 200, "🎈", "'"]
    rows = spark.createDataFrame([(k, n) for n, k in enumerate(keys)], "k string, n bigint")
    two = [("k", "string"), ("n", "bigint")]
    kinds = {
        "d": ("decimal(10,2)", ["1.50", "-0.10", None]),
        "t": ("timestamp", ["2026-10-03 10:00:00.000001", "1969-12-31 23:59:59", None]),
        "b": ("boolean", ["true", "false", None]),
        "day": ("date", ["2026-10-03", "0001-01-01", None]),
        "i": ("smallint", ["7", "-7", None]),
    }
    for kind, values in kinds.values():
        for value in values:
            literal = "NULL" if value is None else f"'{value}'"
            typed = f"CAST({literal} AS {kind})"
            text = f"CAST({f'unix_micros({typed})' if kind == 'timestamp' else typed} AS STRING) AS s"
            (row,) = spark.sql(f"SELECT {text}, {hash_sql([(typed, kind)])} AS h").collect()
            assert row.h == hash_of([row.s])
    found = rows.selectExpr("k", "n", f"{hash_sql(two[:1])} AS one", f"{hash_sql(two)} AS both").collect()
    for row in found:
        assert row.one == hash_of([row.k])
        assert row.both == hash_of([row.k, str(row.n)])
