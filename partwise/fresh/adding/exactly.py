"""Few keys, computed exactly by DuckDB from what the view reads, without an engine.

The view's own query runs over the fresh rows of its inputs, for these keys alone. Spark and DuckDB are not the same, so
only what both mean alike is tried, and the result counts only if the same query gives, for some keys of the sample,
the rows that Spark computed. Otherwise there is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from partwise.compile.program import Runnable, Sampled
from partwise.fresh.adding.compared import quoted
from partwise.parts import Parts
from partwise.sql.references import FoundReference, splice

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Keys of the sample that a part is compared by, and parts that are computed at most.
COMPARED, MOST_PARTS = 20, 200
COMPUTED = "__computed"
_HIDDEN = frozenset(["part", "part_timestamp", "_file"])
_ALIKE = (
    exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Literal,
    exp.Boolean, exp.Null, exp.Paren, exp.Where, exp.Group, exp.Having, exp.Join, exp.And, exp.Or, exp.Not, exp.EQ,
    exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Case, exp.If,
    exp.Coalesce, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Sum, exp.Count, exp.Min, exp.Max, exp.Avg, exp.Abs,
    exp.Subquery, exp.With, exp.CTE, exp.Union, exp.Distinct, exp.Filter,
)  # fmt: skip


class NotAlike(Exception):
    """The query cannot be computed here for sure."""


def alike(text: str) -> str:
    """The query as DuckDB writes it. Raises NotAlike."""
    try:
        tree = parse_one(text, read="spark")
    except SqlglotError as why:
        raise NotAlike(str(why)) from None
    for node in tree.walk():
        if type(node) not in _ALIKE:
            raise NotAlike(f"{type(node).__name__} may mean something else here")
        if isinstance(node, exp.Join) and (node.kind not in ("", "INNER") or node.method):
            raise NotAlike(f"{node.kind or node.method} JOIN")
    return tree.sql("duckdb")


def compute(
    connection: DuckDBPyConnection,
    table: Runnable,
    sampled: Sampled,
    view: str,
    dirty: Parts,
    wanted: str,
    spelled: Callable[[str], str],
) -> None:
    """Makes a table with the wanted rows of these parts, as the view would have them. Raises NotAlike.

    `wanted` is a condition on columns of the view, never NULL. The inputs are views of the connection; `spelled` gives
    their names.
    """
    if table.initialize is not None or table.name.lower() in table.inputs:
        raise NotAlike("its parts are computed from its own earlier parts")
    if table.update.found.names_part or dirty.count > MOST_PARTS:
        raise NotAlike("too much, or too much about parts")
    columns = connection.execute(f"DESCRIBE {quoted(view)}").fetchall()
    own = [(str(row[0]), str(row[1])) for row in columns if str(row[0]).lower() not in ("part", "part_timestamp")]
    all_columns = ", ".join(f"CAST({quoted(c)} AS {t}) AS {quoted(c)}" for c, t in own)
    connection.execute(f"CREATE TEMP TABLE {COMPUTED} AS SELECT * FROM {quoted(view)} WHERE FALSE")
    names = {n: f"__in_{n}" for n in range(len(table.update.found.tables))}
    numbered = {id(found): n for n, found in enumerate(table.update.found.tables)}
    text = alike(splice(table.update.text, lambda f: names[numbered[id(f)]], found=table.update.found))
    for part in dirty:
        for n, found in enumerate(table.update.found.tables):
            _restrict(connection, names[n], found, part, spelled)
        shown = f"SELECT {all_columns} FROM ({text}) v"
        texts = ", ".join(f"CAST({quoted(key)} AS VARCHAR)" for key, _ in sampled.key)
        probes = connection.execute(
            f"SELECT DISTINCT {wanted} AS wanted, {texts} FROM {quoted(sampled.sample)} WHERE part = {part} "
            f"ORDER BY ALL DESC LIMIT {COMPARED}"
        ).fetchall()
        if not probes:
            raise NotAlike("there is nothing to compare with")
        probed = of_keys(sampled.key, [row[1:] for row in probes])
        names_of = ", ".join(quoted(c) for c, _ in own)
        here = connection.execute(f"{shown} WHERE {probed}").fetchall()
        there = connection.execute(
            f"SELECT {names_of} FROM {quoted(sampled.sample)} WHERE part = {part} AND {probed}"
        ).fetchall()
        if not _same(here, there):
            raise NotAlike("it gives other rows than the sample has")
        stamp = f"(SELECT stamp FROM (SELECT to_timestamp({part} * {table.part}) AS stamp))"
        connection.execute(
            f"INSERT INTO {COMPUTED} BY NAME SELECT {part} AS part, {stamp} AS part_timestamp, * FROM ({shown}) "
            f"WHERE {wanted}"
        )


def _restrict(
    connection: DuckDBPyConnection, name: str, found: FoundReference, part: int, spelled: Callable[[str], str]
) -> None:
    """A view with the rows that a reference means for this part."""
    table = quoted(spelled(found.table))
    hidden = [str(row[0]) for row in connection.execute(f"DESCRIBE {table}").fetchall()]
    shown = ", ".join(quoted(c) for c in hidden if c.lower() not in _HIDDEN)
    where = ""
    if found.reference is not None:
        lo, hi = found.reference.requires(part)
        where = f" WHERE part BETWEEN {lo} AND {hi}"
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {shown} FROM {table}{where}")


def among(key: str, kind: str, keys: Sequence[str | None]) -> str:
    """Never NULL."""
    texts = ["'" + k.replace("'", "''") + "'" for k in keys if k is not None]
    values = texts if kind == "string" else [f"CAST({text} AS {kind})" for text in texts]
    listed = f"{quoted(key)} IN ({', '.join(values)})" if values else "FALSE"
    return f"(COALESCE({listed}, FALSE) OR {quoted(key)} IS NULL)" if None in keys else f"COALESCE({listed}, FALSE)"


def of_keys(key: Sequence[tuple[str, str]], keys: Sequence[Sequence[str | None]]) -> str:
    """The same of keys of one or several columns."""
    if len(key) == 1:
        return among(*key[0], [values[0] for values in keys])
    each = [
        " AND ".join(among(column, kind, [value]) for (column, kind), value in zip(key, values, strict=True))
        for values in keys
    ]
    return f"({' OR '.join(f'({text})' for text in each) or 'FALSE'})"


def _same(here: list[tuple[Any, ...]], there: list[tuple[Any, ...]]) -> bool:
    """The same rows, up to how doubles were added."""

    def order(row: tuple[Any, ...]) -> str:
        return str(tuple(f"{v:.9g}" if isinstance(v, float) else v for v in row))

    def equal(a: Any, b: Any) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
        return type(a) is type(b) and bool(a == b)

    pairs = zip(sorted(here, key=order), sorted(there, key=order), strict=True) if len(here) == len(there) else None
    return pairs is not None and all(equal(a, b) for x, y in pairs for a, b in zip(x, y, strict=True))
