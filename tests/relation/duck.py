"""Runs a query on DuckDB with each reference filled, or filtered, on its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import sqlglot

from partwise.relation import Known, Tree
from partwise.relation.build import build_of
from partwise.sql.references import FoundReference, analyse, splice

Row = tuple[int | None, ...]
Rows = dict[str, list[Row]]
Bag = Counter[tuple[Any, ...]]

COLUMNS = {"k": "bigint", "v": "bigint"}


def tables(key: tuple[str, ...] = ()) -> Any:
    """m and n have parts, d has none. With a key, the rows are such."""
    return {name: Known(COLUMNS, key) for name in ("m", "n", "d")}.get


def condition(pairs: list[tuple[str, Any]]) -> str:
    return " AND ".join(f"({sql}) IS NOT DISTINCT FROM {'NULL' if value is None else value}" for sql, value in pairs)


class Query:
    """A query of part j, translated once."""

    def __init__(self, sql: str, j: int = 0) -> None:
        self.sql, self.analysis, self.j = sql, analyse(sql), j
        self.found = self.analysis.found
        at = {table.start: n for n, table in enumerate(self.found.tables)}
        spark = splice(sql, lambda f: f"__occ{at[f.start]}_", found=self.found)
        text = sqlglot.transpile(spark, read="spark", write="duckdb")[0]
        self.text = text.replace("TRY_CAST(", "CAST(")

    def tree(self, key: tuple[str, ...] = ()) -> Tree:
        return build_of(self.sql, self.analysis, tables(key))

    def own_rows(self, table: FoundReference, data: Rows) -> list[Row]:
        """What a reference means."""
        if table.reference is None:
            return [row[:2] for row in data[table.table]]
        span = table.reference.requires(self.j)
        return [row[:2] for row in data[table.table] if span.lo <= (row[2] or 0) <= span.hi]

    def inputs(self, data: Rows) -> dict[int, list[Row]]:
        return {n: self.own_rows(table, data) for n, table in enumerate(self.found.tables)}


class Duck:
    def __init__(self) -> None:
        self.on = duckdb.connect()
        self.on.execute("SET threads = 1")

    def run(self, query: Query, inputs: Mapping[int, list[Row]], filters: Mapping[int, str] | None = None) -> Bag:
        text = query.text
        for n, rows in inputs.items():
            values = ", ".join(f"({_sql(k)}, {_sql(v)})" for k, v in rows) or "(NULL, NULL)"
            where = "false" if not rows else (filters or {}).get(n) or "true"
            # Types come from the first row: a cast keeps them even if every value is NULL.
            named = "SELECT CAST(a AS BIGINT) AS k, CAST(b AS BIGINT) AS v"
            relation = f"(SELECT * FROM ({named} FROM (VALUES {values}) t(a, b)) WHERE {where})"
            text = text.replace(f"__occ{n}_", relation)
        return Counter(self.on.execute(text).fetchall())

    def names(self, query: Query) -> list[str]:
        return [d[0] for d in self.on.description or ()]

    def values(self, expressions: tuple[str, ...], rows: list[Row]) -> set[tuple[Any, ...]]:
        if not rows:
            return set()
        values = ", ".join(f"({_sql(k)}, {_sql(v)})" for k, v in rows)
        listed = ", ".join(e.replace("`", '"') for e in expressions)
        named = "SELECT CAST(a AS BIGINT) AS k, CAST(b AS BIGINT) AS v"
        return set(self.on.execute(f"SELECT {listed} FROM ({named} FROM (VALUES {values}) t(a, b))").fetchall())


def _sql(value: int | None) -> str:
    return "NULL" if value is None else str(value)
