"""A query in two gives what the query gives: on DuckDB, over random queries and rows with NULLs and duplicates."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import duckdb
import pytest
import sqlglot

from partwise.compile.state.flat import Flat, NotSplit, flat
from partwise.compile.state.split import JoinSplit, split_off
from partwise.definitions import Statement
from partwise.definitions.yaml.places import Placed
from partwise.relation import Known
from partwise.sql.references import analyse, splice
from tests.relation.tpch import QUERIES, TABLES

COLUMNS = {"m": ("k", "v", "x"), "n": ("k", "w", "y"), "o": ("k", "v", "z"), "d": ("k", "name_", "z")}
KNOWN = {name: Known(dict.fromkeys(columns, "bigint")) for name, columns in COLUMNS.items()}


def statement(text: str) -> Statement:
    analysis = analyse(text, "j")
    return Statement(text, "j", analysis.found, Placed(text, "v.yaml", ((0, 1, 1),)), text)


def of(text: str) -> Flat:
    return flat(statement(text), KNOWN.get)


class Tables:
    """Every table is the same for all parts but those of n, whose j-1 differs."""

    def __init__(self) -> None:
        self.on = duckdb.connect()
        self.on.execute("SET threads = 1")

    def fill(self, rng: random.Random) -> None:
        for name in ("m", "n", "n_before", "o", "d"):
            columns = COLUMNS[name.partition("_")[0]]
            rows = [[rng.choice(["0", "1", "1", "2", "NULL"]) for _ in columns] for _ in range(rng.randint(2, 7))]
            values = ", ".join(f"({', '.join(row)})" for row in rows)
            typed = ", ".join(f"CAST({c} AS BIGINT) AS {c}" for c in columns)
            self.on.execute(
                f"CREATE OR REPLACE TABLE {name} AS SELECT {typed} FROM (VALUES {values}) t({', '.join(columns)})"
            )

    def run(self, text: str, kept: str | None = None) -> Counter[tuple[Any, ...]]:
        def name(found: Any) -> str:
            if found.table == "kept_table":
                return f"({self._plain(kept or '')})"
            return "n_before" if found.brackets == "j-1" else found.table

        spark = splice(text, name)
        return Counter(self.on.execute(sqlglot.transpile(spark, read="spark", write="duckdb")[0]).fetchall())

    def _plain(self, text: str) -> str:
        return splice(text, lambda found: "n_before" if found.brackets == "j-1" else found.table)


def query(rng: random.Random) -> str:
    """Two to four references in one FROM, by commas or JOIN, with conditions of all kinds."""
    aliases = dict(
        zip("abce", rng.sample(["m[j]", "n[j]", "n[j-1]", "o[j]", "d"], rng.choice([3, 3, 4])), strict=False)
    )
    listed = [*aliases]

    def column(alias: str) -> str:
        name = rng.choice(COLUMNS[re.sub(r"\[.*", "", aliases[alias])])
        unique = sum(name in COLUMNS[re.sub(r"\[.*", "", t)] for t in aliases.values()) == 1
        return name if unique and rng.random() < 0.5 else f"{alias}.{name}"

    def condition(alias: str) -> str:
        return rng.choice(
            [
                f"{column(alias)} > 0",
                f"{column(alias)} IS NOT NULL -- why not\n",
                f"{column(alias)} BETWEEN 0 AND 2",
                f"({column(alias)} = 1 OR {column(rng.choice(listed))} <= 2)",
                f"{column(alias)} IN (0, 1, 2)",
                f"NOT {column(alias)} = 3",
                f"{column(alias)} IS DISTINCT FROM 2",
                f"EXISTS (SELECT 1 FROM d q WHERE q.k = {column(alias)})",
                f"{column(alias)} + {column(rng.choice(listed))} < 5",
                f"{column(alias)} IN (SELECT q.v FROM m[j] q WHERE q.x >= 0)",
            ]
        )

    joins = [f"{column(a)} = {column(b)}" for a, b in pairwise(listed)]
    where = [condition(rng.choice(listed)) for _ in range(rng.choice([0, 1, 2]))]
    if rng.random() < 0.5:
        source = ", ".join(f"{aliases[a]} {a}" for a in listed)
        where = joins + where
    else:
        source = f"{aliases[listed[0]]} {listed[0]}" + "".join(
            f" {rng.choice(['JOIN', 'INNER JOIN'])} {aliases[b]} AS {b} ON {on}"
            for b, on in zip(listed[1:], joins, strict=True)
        )
    conditions = f" WHERE {' AND '.join(where)}" if where else ""
    a, b, c = (rng.choice(listed) for _ in range(3))
    shape = rng.randrange(4)
    if shape == 0:
        return f"SELECT {column(a)} AS r, {column(b)} + 1 AS s FROM {source}{conditions}"
    if shape == 1:
        g = column(a)
        return f"SELECT {g} AS g, COUNT(*) AS n, SUM({column(b)}) AS s FROM {source}{conditions} GROUP BY {g} HAVING COUNT({column(c)}) > 0"
    if shape == 2:
        g = column(a)
        return f"SELECT {g}, MAX({column(b)}) AS s FROM {source}{conditions} GROUP BY {g} ORDER BY {g}"
    return f"SELECT DISTINCT {column(a)} AS r, (SELECT MAX(q.v) FROM m[j] q WHERE q.k = {column(b)}) AS s FROM {source}{conditions}"


def splits(found: Flat) -> list[JoinSplit]:
    made = []
    numbers = [each.occurrence for each in found.joined]
    for size in range(2, len(numbers)):
        for kept in combinations(numbers, size):
            try:
                made.append(split_off(found, kept, "kept_table"))
            except NotSplit:
                continue
    return made


def test_random_queries() -> None:
    compared, tables = 0, Tables()
    for seed in range(150):
        rng = random.Random(seed)
        text = query(rng)
        tables.fill(rng)
        expected = tables.run(text)
        for each in splits(of(text)):
            assert tables.run(each.rest, each.text) == expected, f"seed {seed}: {text}\n{each.text}\n{each.rest}"
            rest = [t.written for t in analyse(each.rest).found.tables]
            names = [t.written for t in analyse(text).found.tables]
            assert rest == ["kept_table[j]" if n is None else names[n] for n in each.occurrences]
            compared += bool(expected)
    assert compared > 80


def test_the_queries_of_the_paper() -> None:
    """What is kept of TPC-H's joins reads only what the rest needs."""
    found = flat(statement(QUERIES[10]), TABLES.get)
    each = split_off(found, (0, 1, 3), "kept_table")
    assert each.text == (
        "SELECT customer.c_custkey AS c_custkey, customer.c_name AS c_name, customer.c_nationkey AS c_nationkey, "
        "orders.o_orderkey AS o_orderkey, orders.o_custkey AS o_custkey, nation.n_nationkey AS n_nationkey, "
        "nation.n_name AS n_name\nFROM customer AS customer, orders[j] AS orders, nation AS nation\n"
        "WHERE (c_custkey = o_custkey)\n  AND (c_nationkey = n_nationkey)"
    )
    assert each.rest.startswith(
        "SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, n_name\n"
    )
    assert "FROM lineitem[j] AS lineitem, kept_table[j] AS kept__\nWHERE (c_custkey = o_custkey AND" in each.rest
    assert each.occurrences == (2, None)


@pytest.mark.parametrize(
    "text, kept, why",
    [
        ("SELECT a.k FROM m[j] a LEFT JOIN n[j] b ON a.k = b.k JOIN d ON d.k = a.k", (0, 1), "LEFT JOIN is not taken"),
        ("SELECT a.k FROM m[j] a JOIN n[j] b USING (k) JOIN d ON d.k = 1", (0, 1), "USING or NATURAL is not taken"),
        ("SELECT * FROM m[j] a, n[j] b, d WHERE a.k = b.k AND d.k = a.k", (0, 1), "a star stands for all columns"),
        ("SELECT a.k FROM m[j] a, n[j] b, d WHERE a.k = b.k", (0, 2), "m, d are not joined with each other"),
        ("SELECT a.k FROM m[j] a, d b, d c WHERE a.k = b.k AND b.k = c.k", (1, 2), "none of it has parts"),
        ("SELECT a.k FROM m[j] a, n[j] b WHERE a.k = b.k", (0, 1), "nothing would be left"),
        ("SELECT a.k FROM m[j] a, n[j] b, o[j] c WHERE a.k = b.k AND c.k = a.k", (0,), "two references at least"),
        ("SELECT a.k FROM m[j] a UNION ALL SELECT b.k FROM n[j] b", (0, 1), "not one SELECT"),
        ("SELECT a.k FROM (SELECT k FROM m[j]) a, n[j] b, d WHERE a.k = b.k", (0, 1), "something else than references"),
        ("SELECT a.k, part FROM m[j] a, n[j] b, d WHERE a.k = b.k", (0, 1), "names the columns part"),
        ("SELECT a.k + b.k FROM m[j] a, n[j] b, d WHERE a.k = b.k AND d.k = b.k", (0, 1), "has no name: write AS"),
        ("WITH q AS (SELECT 1) SELECT a.k FROM m[j] a, n[j] b, d WHERE a.k = b.k", (0, 1), "with WITH is not taken"),
        (
            "SELECT a.k AS r FROM m[j] a, n[j] b, d WHERE a.k = b.k AND EXISTS (SELECT 1 FROM o[j] a WHERE a.z = b.y)",
            (0, 1),
            "a subquery has a table called a",
        ),
    ],
)  # fmt: skip
def test_what_is_not_kept(text: str, kept: tuple[int, ...], why: str) -> None:
    with pytest.raises(NotSplit, match=re.escape(why)):
        split_off(of(text), kept, "kept_table")


def test_conditions_that_can_fail_stay_in_the_rest() -> None:
    text = "SELECT a.x AS r FROM m[j] a, n[j] b, d WHERE a.k = b.k AND b.k = d.k AND 10 / b.w > 1 AND b.y > 0 AND b.y > 'x'"
    each = split_off(of(text), (0, 1), "kept_table")
    assert each.text.endswith("WHERE (a.k = b.k)\n  AND (b.y > 0)")
