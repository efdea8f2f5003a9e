"""A sample is the hash filter of the view, row by row: over random queries, with NULL keys, listed and largest keys.

The generated text runs on DuckDB over whole tables; so does the view's own, and its rows are filtered afterwards.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
from sqlglot import transpile

from partwise.compile.load import load_texts
from partwise.compile.program import Runnable
from partwise.compile.sample.generate import basis
from partwise.compile.sample.hashing import hash_of, threshold
from partwise.sql.references import FoundReference, find, splice
from tests.fresh.engine import hashes, xxhash64
from tests.relation.duck import Rows
from tests.relation.queries import query

SEEDS = 250
TABLES = """\
source: m
part: 1 hour
time: at
columns: {at: timestamp, k: bigint, v: bigint}
files: m.csv
---
source: n
part: 1 hour
time: at
columns: {at: timestamp, k: bigint, v: bigint}
files: n.csv
---
dimension: d
columns: {k: bigint, v: bigint}
files: d.csv
---
view: x
part: 1 hour
sample: RULE
update: |
  TEXT
"""
RULES = ("{ratio: 50 %, key: k, exact: [1], outliers: {column: v, keep: 2}}", "{ratio: 40 %, key: k}")


class Tables:
    """Whole tables in DuckDB; a reference is a view of those parts that it means."""

    def __init__(self, data: Rows) -> None:
        self.on = duckdb.connect()
        self.on.create_function("hash_of_texts", lambda a: xxhash64(*a), ["VARCHAR[]"], "BIGINT")
        self.on.execute("CREATE MACRO try_sum(x) AS SUM(x)")
        for name, rows in data.items():
            self.on.execute(f"CREATE TABLE {name} (k BIGINT, v BIGINT, part BIGINT)")
            if rows:
                self.on.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", [(*r, None)[:3] for r in rows])

    def meant(self, found: FoundReference) -> str:
        if found.reference is None:
            return f"(SELECT k, v FROM {found.table})"
        if found.table == "x__sizes":
            return "x__sizes"
        span = found.reference.requires(0)
        return f"(SELECT k, v FROM {found.table} WHERE part BETWEEN {span.lo} AND {span.hi})"

    def run(self, text: str) -> list[tuple[Any, ...]]:
        spark = splice(text, self.meant)
        (written,) = transpile(spark, read="spark", write="duckdb")
        return self.on.execute(hashes(written.replace("TRY_CAST(", "CAST("))).fetchall()

    def keep(self, name: str, text: str) -> None:
        (written,) = transpile(splice(text, self.meant), read="spark", write="duckdb")
        self.on.execute(f"CREATE TABLE {name} AS {hashes(written)}")


def compiled(text: str) -> tuple[Runnable, dict[str, Runnable], float] | None:
    """The view, its helpers and the ratio: with the largest keys if they can be found."""
    for rule, ratio in zip(RULES, (0.5, 0.4), strict=True):
        found = load_texts({"a.yaml": TABLES.replace("RULE", rule).replace("TEXT", text).encode()})
        view = found.views.get("x")
        if view is not None and view.sampled is not None:
            return basis(view), dict(found.helpers), ratio
    return None


def test_a_sample_is_a_filter_of_the_view_row_by_row() -> None:
    filtered = largest = sampled = 0
    for seed in range(SEEDS):
        text, data = query(seed)
        found = compiled(text)
        if found is None:
            continue
        _, helpers, ratio = found
        sampled += 1
        tables = Tables(data)
        exact: set[Any] = set()
        if "x__sizes" in helpers:
            tables.keep("x__sizes", helpers["x__sizes"].update.text)
        if ratio == 0.5:
            exact = {r[0] for r in tables.on.execute("SELECT key_0 FROM x__sizes WHERE place <= 2").fetchall()} | {1}
            largest += 1
        sample = helpers["x__sample"].update.text
        filtered += (
            len(find(sample).tables) > len(find(text).tables) or "WHERE xxhash64('partwise', CASE WHEN `" in sample
        )
        limit = threshold(ratio)
        at = [d[0] for d in described(tables, text)].index("k")
        wanted: Counter[tuple[Any, ...]] = Counter()
        for row in tables.run(text):
            hashed = hash_of([None if row[at] is None else str(row[at])])
            if hashed <= limit or row[at] in exact:
                wanted[(*row, hashed, row[at] in exact)] += 1
        assert Counter(tables.run(sample)) == wanted, (seed, text, sample)
    assert sampled > SEEDS / 5
    assert filtered > sampled / 4
    assert largest > 10


def described(tables: Tables, text: str) -> list[tuple[Any, ...]]:
    (written,) = transpile(splice(text, tables.meant), read="spark", write="duckdb")
    return tables.on.execute(f"DESCRIBE {written.replace('TRY_CAST(', 'CAST(')}").fetchall()
