"""Runs generated views part by part on DuckDB.

The SQL is Spark's. sqlglot turns it into DuckDB's dialect; what it gets wrong for our purpose is put right here
(it weakens CAST to TRY_CAST, and does not know `aggregate`, `raise_error` and `percentile` with frequencies).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from partwise.compile import GeneratedView, InputTable, Translation
from partwise.parts import Range
from partwise.sql import find

Row = dict[str, Any]


def to_duckdb(sql: str) -> str:
    sql = re.sub(r"percentile\((\w+), ([\d.]+), (\w+)\)", r"percentile_of(\1, \2, \3)", sql)  # sqlglot drops the third
    tree = sqlglot.parse_one(sql, dialect="spark").transform(_fix)
    return tree.sql("duckdb").replace("TRY_CAST(", "CAST(")


def _fix(node: exp.Expr) -> exp.Expr:
    ranked = isinstance(node, exp.Ordered) and isinstance(window := node.find_ancestor(exp.Window), exp.Window)
    if ranked and isinstance(window.this, exp.RowNumber) and not node.root().find(exp.Struct):
        return node  # no struct is sorted beside it
    if isinstance(node, exp.Ordered) and not node.args.get("desc") and isinstance(node.parent_select, exp.Select):
        # In structs, by which rows are sorted elsewhere, NULL is last on DuckDB and first on Spark.
        return exp.Ordered(this=node.this, desc=node.args.get("desc"), nulls_first=False)
    if isinstance(node, exp.Reduce):
        return exp.Anonymous(this="LIST_REDUCE", expressions=[node.this, node.args["merge"], node.args["initial"]])
    if isinstance(node, exp.Quantile):
        value, share = node.this.sql("duckdb"), node.args["quantile"].sql("duckdb")
        return sqlglot.parse_one(f"QUANTILE_CONT(CAST({value} AS DOUBLE), {share})", dialect="duckdb")
    if isinstance(node, exp.Anonymous):
        name = node.name.upper()
        if name == "RAISE_ERROR":
            return exp.Cast(
                this=exp.Anonymous(this="ERROR", expressions=node.expressions), to=exp.DataType.build("boolean")
            )
        if name == "PERCENTILE_OF":
            value, share, times = (e.sql("duckdb") for e in node.expressions)
            every = f"FLATTEN(LIST(LIST_TRANSFORM(RANGE(CAST({times} AS BIGINT)), LAMBDA k : CAST({value} AS DOUBLE))))"
            return sqlglot.parse_one(f"LIST_AGGREGATE({every}, 'quantile_cont', {share})", dialect="duckdb")
        if name == "AGGREGATE":
            rows, initial, merge = node.expressions
            return exp.Anonymous(this="LIST_REDUCE", expressions=[rows, merge, initial])
    return node


@cache
def compiled(sql: str, index: str) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """DuckDB's text with `<<k.lo>>`, `<<k.hi>>` for the parts of the k-th reference, and the references."""
    found = find(sql, index)
    assert not found.problems, (found.problems, sql)
    text = sql
    for at, table in reversed(list(enumerate(found.tables))):
        parts = f" WHERE part BETWEEN 7000{at}0001 AND 7000{at}0002" if table.reference is not None else ""
        alias = "" if table.alias else f" AS {table.table}"
        text = f"{text[: table.start]}(SELECT * FROM {table.table}{parts}){alias}{text[table.end :]}"
    return to_duckdb(text), tuple((t.table, t.reference) for t in found.tables)


class Runner:
    """Views are filled part by part; what runs a query and keeps tables is left to the engine."""

    def __init__(self, translation: Translation) -> None:
        self.views = translation.views
        self.built: dict[str, set[int]] = {view.name: set() for view in self.views}
        self.start: dict[str, int] = {}
        self.sources: dict[str, set[int]] = {}
        self.memory: dict[tuple[str, int], list[Row]] = {}

    def run_text(self, sql: str, index: str, part: int) -> tuple[list[str], list[tuple[Any, ...]]]:
        raise NotImplementedError

    def store(self, name: str, names: list[str], part: int, rows: list[tuple[Any, ...]], sql: str, index: str) -> None:
        raise NotImplementedError

    def build(self, view: GeneratedView, part: int) -> bool:
        """Computes one part; says whether its content changed."""
        sql, index = self.text_of(view, part)
        if not self.built[view.name]:
            self.start[view.name] = part
        names, rows = self.run_text(sql, index, part)
        old = self.content(view.name, part)
        self.memory[view.name, part] = [dict(zip(names, row, strict=True)) for row in rows]
        if view.helper:  # nothing reads the view itself
            self.store(view.name, names, part, rows, sql, index)
        self.built[view.name].add(part)
        return old != self.content(view.name, part)

    def text_of(self, view: GeneratedView, part: int) -> tuple[str, str]:
        first = not self.built[view.name] or part == self.start[view.name]
        return (view.initialize, "i") if first and view.initialize else (view.update, "j")

    def content(self, name: str, part: int) -> Counter[str]:
        return Counter(repr(row) for row in self.rows(name, part))

    def rows(self, name: str, part: int) -> list[Row]:
        return self.memory.get((name, part), [])

    def parts_of(self, table: str) -> set[int]:
        return self.built[table] if table in self.built else self.sources.get(table, set())

    def missing(self, view: GeneratedView, part: int) -> list[tuple[str, int]]:
        """Parts that this one needs and that are not there (those before the start of an optional table aside)."""
        first = not self.built[view.name] or part == self.start[view.name]
        sql, index = self.text_of(view, part)
        wanted = []
        for table, reference in compiled(sql, index)[1]:
            if reference is None or table == view.name:
                continue
            low, high = reference.requires(part)
            if table in view.optional:
                low = max(low, min(self.parts_of(table), default=high))
                low = min(low, high) if first else low
            wanted += [(table, p) for p in range(low, high + 1) if p not in self.parts_of(table)]
        return wanted

    def reads(self, view: GeneratedView, part: int) -> set[tuple[str, int]]:
        sql, index = self.text_of(view, part)
        found = set()
        for table, reference in compiled(sql, index)[1]:
            if reference is not None:
                low, high = reference.requires(part)
                found |= {(table, p) for p in range(low, high + 1)}
        return found


class Duck(Runner):
    """Tables in DuckDB, with a column `part`."""

    def __init__(self, translation: Translation, inputs: Iterable[InputTable]) -> None:
        super().__init__(translation)
        self.con = duckdb.connect()
        self.con.execute("SET threads = 1")
        # From the least and greatest values it would tell that nothing comes out, and leave out the test that raises an error.
        self.con.execute("SET disabled_optimizers = 'statistics_propagation'")
        self.con.execute("CREATE MACRO pmod(a, b) AS ((a % b) + b) % b")
        for table in inputs:
            part = "part BIGINT, " if table.kind != "dimension" else ""
            columns = ", ".join(f'"{name}" {kind}' for name, kind in (table.columns or {}).items())
            self.con.execute(f"CREATE TABLE {table.name} ({part}{columns})")

    def close(self) -> None:
        self.con.close()

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        batch = list(rows)
        if batch:
            marks = ", ".join("?" for _ in batch[0])
            values = [list(row.values()) for row in batch]
            names = ", ".join(f'"{name}"' for name in batch[0])
            self.con.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)

    def run_text(self, sql: str, index: str, part: int) -> tuple[list[str], list[tuple[Any, ...]]]:
        text, references = compiled(sql, index)
        for at, (_, reference) in enumerate(references):
            if reference is not None:
                span: Range = reference.requires(part)
                text = text.replace(f"7000{at}0001", str(span.lo)).replace(f"7000{at}0002", str(span.hi))
        cursor = self.con.execute(text)
        return [d[0] for d in cursor.description], cursor.fetchall()

    def store(self, name: str, names: list[str], part: int, rows: list[tuple[Any, ...]], sql: str, index: str) -> None:
        if not self.built[name]:
            text, references = compiled(sql, index)
            for at in range(len(references)):
                text = text.replace(f"7000{at}0001", "0").replace(f"7000{at}0002", "0")
            self.con.execute(f"CREATE TABLE {name} AS SELECT CAST(0 AS BIGINT) AS part, * FROM ({text}) LIMIT 0")
        if part in self.built[name]:
            self.con.execute(f"DELETE FROM {name} WHERE part = {part}")
        if rows:
            marks = ", ".join("?" for _ in range(len(names) + 1))
            self.con.executemany(f"INSERT INTO {name} VALUES ({marks})", [(part, *row) for row in rows])


def catch_up(runner: Runner, sources: Mapping[str, set[int]]) -> None:
    """Builds every part of every view for which all inputs exist, in order; `sources`: parts of the input tables."""
    runner.sources = dict(sources)
    last = max(p for parts in sources.values() for p in parts)
    for view in runner.views:
        for part in range(last + 1):
            begins_or_follows = not runner.built[view.name] or part - 1 in runner.built[view.name]
            if begins_or_follows and part not in runner.built[view.name] and not runner.missing(view, part):
                runner.build(view, part)


def repair(runner: Runner, changed: set[tuple[str, int]]) -> list[tuple[str, int]]:
    """Recomputes what reads a changed part, view by view, part by part, and stops where nothing changes."""
    dirty = set(changed)
    recomputed = []
    for view in runner.views:
        for part in sorted(runner.built[view.name]):
            if runner.reads(view, part) & dirty:
                recomputed.append((view.name, part))
                if runner.build(view, part):
                    dirty.add((view.name, part))
    return recomputed
