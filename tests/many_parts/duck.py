"""Runs a query part by part, and lifted, on DuckDB."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import sqlglot

from partwise.compile.many_parts import Lifted, spread
from partwise.sql.references import find, splice
from tests.many_parts.queries import JS

Bag = Counter[tuple[Any, ...]]


class Duck:
    def __init__(self) -> None:
        self.on = duckdb.connect()
        self.on.execute("SET threads = 1")
        self.on.execute("CREATE MACRO pmod(a, b) AS ((a % b) + b) % b")

    def fill(self, tables: dict[str, list[tuple[int | None, ...]]]) -> None:
        for name, rows in tables.items():
            part = ", part BIGINT" if name != "d" else ""
            self.on.execute(f"CREATE OR REPLACE TABLE {name} (k BIGINT, v BIGINT{part})")
            values = ", ".join(str(row).replace("None", "NULL") for row in rows)
            if rows:
                self.on.execute(f"INSERT INTO {name} VALUES {values}")

    def run(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        found = self.on.execute(sql)
        return [d[0] for d in found.description], found.fetchall()

    def part_by_part(self, sql: str) -> tuple[list[str], dict[int, Bag]]:
        """Translated once; the numbers of the parts are put in afterwards."""
        references = find(sql)
        at = {found.start: n for n, found in enumerate(references.tables)}

        def rows(found: Any) -> str:
            if found.reference is None:
                return f"(SELECT * FROM {found.table})"
            return f"(SELECT k, v FROM {found.table} WHERE part BETWEEN 7{at[found.start]:02}001 AND 7{at[found.start]:02}002)"

        text = translated(splice(sql, rows, found=references))
        names, bags = [], {}
        for j in JS:
            here = text
            for n, found in enumerate(references.tables):
                if found.reference is not None:
                    span = found.reference.requires(j)
                    here = here.replace(f"7{n:02}001", str(span.lo)).replace(f"7{n:02}002", str(span.hi))
            names, found_rows = self.run(here)
            bags[j] = Counter(found_rows)
        return names, bags

    def lifted(self, lifted: Lifted) -> tuple[list[str], dict[int, Bag]]:
        text = lifted.named({"__js": parts(JS), **{i.name: relation(i) for i in lifted.inputs}})
        names, rows = self.run(translated(text))
        found: dict[int, Bag] = {j: Counter() for j in JS}
        for row in rows:
            found.setdefault(row[-1], Counter())[row[:-1]] += 1
        return names, found


def translated(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0].replace("TRY_CAST(", "CAST(")


def parts(js: range) -> str:
    return "(" + " UNION ALL ".join(f"SELECT CAST({j} AS BIGINT) AS j" for j in js) + ")"


def relation(given: Any) -> str:
    """Rows with the part that they go to, as the engine makes them."""
    if given.reference is None:
        return f"(SELECT * FROM {given.table})"
    way = spread(given.reference)
    inner = f"SELECT k, v, {way.column(given.column)} FROM {given.table} WHERE {way.where}"
    return f"(SELECT * FROM ({inner}) WHERE {given.column} BETWEEN {JS[0]} AND {JS[-1]})"
