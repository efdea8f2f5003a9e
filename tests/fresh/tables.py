"""A sampled view in DuckDB without a workspace: published, fresh and sampled rows, made by the rules of the helpers."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from partwise.compile.program import Sampled
from partwise.compile.sample.hashing import hash_of, threshold
from partwise.fresh.adding.compared import Compared
from partwise.fresh.adding.rows import ComparedRows
from partwise.fresh.adding.totals import Adding
from partwise.fresh.answer import FreshAnswer
from partwise.fresh.asked.question import ask
from partwise.fresh.deciding import Deciding
from partwise.fresh.states import PartStates
from partwise.parts import Parts

HOUR = 3600
#: part -> rows of (customer, region, x)
Rows = dict[int, list[tuple[str | None, str, float]]]
COLUMNS = "customer VARCHAR, region VARCHAR, x DOUBLE, part BIGINT, part_timestamp TIMESTAMPTZ"


@dataclass
class World:
    """Parts 0 to 3: two clean, one stale, one missing."""

    fresh: Rows
    published: Rows
    ratio: float = 0.2
    keep: int = 0
    salt: str = ""
    listed: tuple[str, ...] = ()
    unique: bool = True
    sized: bool = True
    stand_ins: int = 1
    used: float | None = None
    name: str = "v"

    @property
    def sampled(self) -> Sampled:
        return Sampled(
            f"{self.name}__sample", f"{self.name}__was", f"{self.name}__sizes" if self.sized else None, (("customer", "string"),), self.ratio, self.keep,
            self.listed, self.unique, ("x",) if self.sized else (), row_key=("customer",) if self.unique else (),
        )  # fmt: skip

    @property
    def states(self) -> PartStates:
        there = Parts.single(*self.published)
        stale = Parts.single(
            *(p for p in self.published if sorted(map(str, self.published[p])) != sorted(map(str, self.fresh[p])))
        )
        missing = Parts.single(*self.fresh) - there
        return PartStates(
            there - stale,
            stale,
            missing,
            Parts(),
            dict.fromkeys(missing, tuple(there)[-self.stand_ins :]) if there else {},
        )

    def hash(self, key: str | None) -> int:
        return hash_of([None if key is None else key + self.salt])

    def hashes(self, rows: list[tuple[str | None, str, float]]) -> pa.Array:
        return pa.array([self.hash(row[0]) for row in rows], pa.int64())

    def is_sampled(self, key: str | None) -> bool:
        return self.hash(key) <= threshold(self.ratio)

    def sizes(self, part: int) -> tuple[set[str | None], list[tuple[Any, ...]]]:
        """Exact keys, and rows of the helper."""
        by_key: dict[str | None, list[float]] = defaultdict(list)
        for key, _, x in self.fresh[part]:
            if key not in self.listed:
                by_key[key].append(x)
        order = sorted(by_key, key=lambda k: (-sum(map(abs, by_key[k])), "" if k is None else k))
        top, rest = order[: self.keep], order[self.keep :]
        rows: list[tuple[Any, ...]] = [(n + 1, k, len(by_key[k]), 0.0, 0.0, part) for n, k in enumerate(top)]
        if rest:
            most = max(sum(map(abs, by_key[k])) for k in rest)
            least = min(min(by_key[k]) for k in rest)
            rows.append((self.keep + 1, None, max(len(by_key[k]) for k in rest), most, least, part))
        return {*top, *self.listed}, rows

    def connection(self) -> duckdb.DuckDBPyConnection:
        on = duckdb.connect(":memory:")
        on.execute("SET TimeZone = 'UTC'")
        self.fill(on)
        return on

    def fill(self, on: duckdb.DuckDBPyConnection) -> None:
        v, truth = self.name, "truth" if self.name == "v" else f"truth_{self.name}"
        on.execute(f"CREATE TABLE {v} ({COLUMNS})")
        on.execute(f"CREATE TABLE {v}__was ({COLUMNS}, sample_hash BIGINT)")
        on.execute(f"CREATE TABLE {truth} ({COLUMNS})")
        on.execute(f"CREATE TABLE {v}__sample ({COLUMNS}, sample_hash BIGINT, sample_exact BOOLEAN)")
        on.execute(
            f"CREATE TABLE {v}__sizes (place INT, key_0 VARCHAR, rows BIGINT, size_x DECIMAL(38,6), least_x DOUBLE, part BIGINT)"
        )
        for p, rows in self.published.items():
            _insert(on, v, p, rows)
            was = [row for row in rows if self.is_sampled(row[0])]
            _insert(on, f"{v}__was", p, was, self.hashes(was))
        for p, rows in self.fresh.items():
            exact, sizes = self.sizes(p)
            _insert(on, truth, p, rows)
            for flag in (True, False):
                chosen = [r for r in rows if (r[0] in exact) == flag and (flag or self.is_sampled(r[0]))]
                _insert(on, f"{v}__sample", p, chosen, self.hashes(chosen), flag)
            if sizes:
                shown = ", ".join(f"({a}, {_literal(k)}, {n}, {s!r}, {low!r}, {p})" for a, k, n, s, low, p in sizes)
                on.execute(f"INSERT INTO {v}__sizes VALUES {shown}")

    def answer(self, sql: str, confidence: float = 0.95, within: float | None = None) -> FreshAnswer:
        question = ask(sql, self.sampled.key)
        with self.connection() as on:
            if question.rows is not None:
                deciding = Deciding(question, self.sampled, self.states, HOUR, confidence, within, self.used)
                return ComparedRows(on, deciding, question.rows).answer()
            added = Adding(Compared(on, question, self.sampled, self.states, HOUR, self.used)).all()
            deciding = Deciding(question, self.sampled, self.states, HOUR, confidence, within, self.used)
            return deciding.answer(added)

    def truth(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connection() as on:
            return on.execute(sql.replace(" FROM v", " FROM truth AS v")).fetchall()


def _literal(key: str | None) -> str:
    return "NULL" if key is None else f"'{key}'"


def _insert(
    on: duckdb.DuckDBPyConnection, table: str, part: int, rows: Any, hashes: Any = None, exact: bool | None = None
) -> None:
    if not rows:
        return
    customers, regions, values = zip(*rows, strict=True)
    given = {"a": pa.array(customers, pa.string()), "b": pa.array(regions), "c": pa.array(values, pa.float64())}
    on.register("given", pa.table(given if hashes is None else given | {"hash": hashes}))
    extra = ("" if hashes is None else ", hash") + ("" if exact is None else f", {exact}")
    on.execute(f"INSERT INTO {table} SELECT a, b, c, {part}, to_timestamp({part * HOUR}){extra} FROM given")
    on.unregister("given")


def world(seed: int, keys: int = 1200, **more: Any) -> World:
    """Parts 0 and 1 are clean, 2 is stale (half of the keys changed), 3 is missing."""
    chance = random.Random(seed)

    def row(n: int) -> tuple[str | None, str, float]:
        return (None if n == 3 else f"c{n}", "EU" if n % 3 else "US", round(chance.gammavariate(3, 20), 2))

    published = {p: [row(n) for n in range(keys) if chance.random() < 0.75] for p in (0, 1, 2)}
    changed = [row(n) for n in range(keys) if chance.random() < 0.5]
    again = {k: (k, g, x) for k, g, x in published[2] if chance.random() > 0.02} | {k: (k, g, x) for k, g, x in changed}
    fresh = {
        0: published[0],
        1: published[1],
        2: list(again.values()),
        3: [row(n) for n in range(keys) if chance.random() < 0.75],
    }
    return World(fresh, published, salt=str(seed), **more)
