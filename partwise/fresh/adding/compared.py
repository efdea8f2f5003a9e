"""Temporary tables in DuckDB: which rows are known, which are compared with which, and who is exact.

    __base    published rows of clean parts, and what dirty parts are compared with
    __rows    signed rows of sampled and exact keys in dirty parts: fresh ones, minus those they are compared with
    __known   rows that will be there after a refresh for sure: of clean parts, and fresh ones of sampled and exact keys

A stand-in is read as if it were the missing part: it gets that part's time, so that conditions on time choose parts and
not stand-ins. Each of several stand-ins counts by its share: `__w`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from partwise.compile.program import Sampled
from partwise.compile.sample.generate import EXACT, HASH
from partwise.compile.sample.hashing import threshold
from partwise.fresh.adding.bounds import Sizes, column_bound, columns_in
from partwise.fresh.asked.question import FreshQuestion
from partwise.fresh.states import PartStates
from partwise.parts import Parts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Compared:
    """`ratio`: of the keys that are used, at most that of the sample, because samples are nested. `at` is how the names of
    its tables begin, `measured` are columns that are added up, if not those of the question."""

    def __init__(
        self,
        connection: DuckDBPyConnection,
        question: FreshQuestion,
        sampled: Sampled,
        states: PartStates,
        length: int,
        ratio: float | None = None,
        at: str = "__",
        measured: Collection[str] | None = None,
    ) -> None:
        self.at = at
        self.measured = frozenset(
            (name for row in question.measured for name in columns_in(row)) if measured is None else measured
        )
        self.on, self.question, self.sampled, self.states, self.length = connection, question, sampled, states, length
        self.ratio = sampled.ratio if ratio is None else ratio
        self.limit = threshold(self.ratio)
        columns = [str(row[0]) for row in connection.execute(f"DESCRIBE {quoted(question.view)}").fetchall()]
        self.own = [c for c in columns if c.lower() not in ("part", "part_timestamp")]
        self.key = [quoted(c) for c, _ in sampled.key]
        self.on.execute(f"CREATE TEMP TABLE {self.at}dirty (part BIGINT, stamp TIMESTAMPTZ)")
        self.on.execute(
            f"CREATE TEMP TABLE {self.at}sources (part BIGINT, source BIGINT, stamp TIMESTAMPTZ, __w DOUBLE)"
        )
        for p in states.dirty:
            stamp = p * length
            self.on.execute(f"INSERT INTO {self.at}dirty VALUES (?, to_timestamp(?))", [p, stamp])
            sources = (p,) if p in states.stale else states.stand_ins.get(p, ())
            for source in sources:
                self.on.execute(
                    f"INSERT INTO {self.at}sources VALUES (?, ?, to_timestamp(?), ?)",
                    [p, source, stamp, 1 / len(sources)],
                )

    def make(self) -> dict[int, Sizes]:
        """Makes the tables. Returns sizes of each dirty part."""
        self._exact_keys()
        self._old()
        sizes = {p: self._sizes(p) for p in self.states.dirty}
        self._without_clipped(sizes)
        self._views()
        return sizes

    @property
    def published(self) -> str:
        there = in_parts(self.states.clean | self.states.stale)
        return f"SELECT {self.own_columns('v')}, 1e0 AS __w FROM {quoted(self.question.view)} v WHERE {there}"

    def chosen(self, rows: str, items: list[str]) -> str:
        """Groups and these items of each row that the condition lets pass."""
        groups = [f"{text} AS __g{n}" for n, (_, text) in enumerate(self.question.groups)]
        shown = ", ".join([*groups, *items]) or "1"
        return f"SELECT {shown} FROM ({rows}) AS {quoted(self.question.alias)} WHERE {self.question.where}"

    def groups_of_parts(self) -> dict[int, tuple[Any, ...]]:
        """By dirty part the values of those groups that follow from the part alone."""
        if not self.question.by_part:
            return {}
        texts = ", ".join(self.question.groups[n][1] for n in self.question.by_part)
        rows = f"SELECT part, stamp AS part_timestamp, part AS __part FROM {self.at}dirty"
        found = self.on.execute(f"SELECT __part, {texts} FROM ({rows}) AS {quoted(self.question.alias)}")
        return {int(row[0]): tuple(row[1:]) for row in found.fetchall()}

    # -- who is exact, and what is compared with what

    def own_columns(self, of: str) -> str:
        return ", ".join([*(f"{of}.{quoted(c)}" for c in self.own), f"{of}.part", f"{of}.part_timestamp"])

    def _listed(self, column: str) -> str:
        texts = ", ".join("'" + e.replace("'", "''") + "'" for e in self.sampled.exact)
        return f"COALESCE(CAST({column} AS VARCHAR) IN ({texts}), FALSE)" if texts else "FALSE"

    def _exact_keys(self) -> None:
        keys = ", ".join(f"z.key_{n}" for n in range(len(self.key)))
        if self.sampled.keep:
            text = (
                f"SELECT z.part, {keys} FROM {quoted(self.sampled.sizes or '')} z "
                f"WHERE place <= {self.sampled.keep} AND part IN (SELECT part FROM {self.at}dirty)"
            )
        else:
            nothing = ", ".join(f"NULL AS key_{n}" for n in range(len(self.key)))
            text = f"SELECT CAST(NULL AS BIGINT) AS part, {nothing} WHERE FALSE"
        self.on.execute(f"CREATE TEMP TABLE {self.at}exact AS {text}")

    def _same_key(self, left: str, right: str) -> str:
        """Where `right` has its keys by number."""
        return " AND ".join(f"{left}.{k} IS NOT DISTINCT FROM {right}.key_{n}" for n, k in enumerate(self.key))

    def _old(self) -> None:
        """Published rows of dirty parts and stand-ins, with the part that they are for, and who is exact."""
        own = ", ".join(f"v.{quoted(c)}" for c in self.own)
        exact = f"{self._listed('v.' + self.key[0])} OR x.part IS NOT NULL"
        for name, table, more in (
            (f"{self.at}old", self.question.view, ""),
            (f"{self.at}old_sampled", self.sampled.was, f" WHERE v.{HASH} <= {self.limit}"),
        ):
            self.on.execute(
                f"CREATE TEMP TABLE {name} AS SELECT {own}, d.part, d.stamp AS part_timestamp, d.source AS __source, "
                f"d.__w, ({exact}) AS {EXACT} FROM {quoted(table)} v JOIN {self.at}sources d ON v.part = d.source "
                f"LEFT JOIN {self.at}exact x ON x.part = d.part AND {self._same_key('v', 'x')}{more}"
            )

    def _sizes(self, part: int) -> Sizes:
        """Of the keys that are not exact. Without sizes only the rows of a unique key are known."""
        columns = self.sized
        if self.sampled.sizes is None:
            return Sizes(1.0 if self.sampled.unique else float("inf"), {})
        shown = ", ".join(["rows", *(f"{quoted('size_' + c)}, {quoted('least_' + c)}" for c in columns)])
        rest = self.sampled.keep + 1
        row = self.on.execute(
            f"SELECT {shown} FROM {quoted(self.sampled.sizes)} WHERE part = {part} AND place = {rest}"
        ).fetchone()
        if row is None or row[0] is None:  # there are no other keys
            return Sizes(0.0, {c.lower(): 0.0 for c in columns}, frozenset(c.lower() for c in columns))
        rows = min(float(row[0]), 1.0) if self.sampled.unique else float(row[0])
        pairs = {c: (row[1 + 2 * n], row[2 + 2 * n]) for n, c in enumerate(columns)}
        bounds = {
            c.lower(): column_bound(None if s is None else float(s), float(row[0])) for c, (s, _) in pairs.items()
        }
        old = ", ".join(f"MIN(CAST({quoted(c)} AS DOUBLE))" for c in columns)
        least = self.on.execute(f"SELECT {old} FROM {self.at}old WHERE part = {part}").fetchone() if columns else ()
        positive = frozenset(
            c.lower()
            for (c, (_, fresh)), was in zip(pairs.items(), least or (), strict=True)
            if (fresh is None or fresh >= 0) and (was is None or was >= 0)
        )
        return Sizes(rows, bounds, positive)

    @property
    def sized(self) -> list[str]:
        """Columns of the view that the question adds up and that have sizes."""
        own = {c.lower() for c in self.own}
        return [c for c in self.sampled.sized if c.lower() in self.measured & own]

    def _without_clipped(self, sizes: Mapping[int, Sizes]) -> None:
        """No key that is not exact can hold more than its part's sizes say: who did so when it was published, or does so
        in a stand-in, is compared with nothing. That is known without the sample, so it favours nobody."""
        keys = ", ".join(f"{k} AS key_{n}" for n, k in enumerate(self.key))
        text = f"SELECT CAST(NULL AS BIGINT) AS part, CAST(NULL AS BIGINT) AS __source, {keys} FROM {self.at}old WHERE FALSE"
        for part, size in sizes.items():
            over = [f"COUNT(*) > {size.rows!r}"] if size.rows != float("inf") else []
            over += [
                f"SUM(ABS(CAST({quoted(c)} AS DOUBLE))) > {most!r}"
                for c, most in size.columns.items()
                if most != float("inf")
            ]
            if over:
                by = ", ".join(self.key)
                text += (
                    f" UNION ALL SELECT part, __source, {keys} FROM {self.at}old WHERE part = {part} AND NOT {EXACT} "
                    f"GROUP BY part, __source, {by} HAVING {' OR '.join(over)}"
                )
        self.on.execute(f"CREATE TEMP TABLE {self.at}clipped AS {text}")
        for name, old in ((f"{self.at}kept", f"{self.at}old"), (f"{self.at}kept_sampled", f"{self.at}old_sampled")):
            self.on.execute(
                f"CREATE TEMP VIEW {name} AS SELECT v.* FROM {old} v ANTI JOIN {self.at}clipped c ON NOT v.{EXACT} "
                f"AND v.part = c.part AND v.__source = c.__source AND {self._same_key('v', 'c')}"
            )

    def _views(self) -> None:
        view, sample, own = quoted(self.question.view), quoted(self.sampled.sample), self.own_columns("v")
        clean = f"SELECT {own}, 1e0 AS __w FROM {view} v WHERE {in_parts(self.states.clean)}"
        fresh = f"FROM {sample} v WHERE v.part IN (SELECT part FROM {self.at}dirty) AND (v.{EXACT} OR v.{HASH} <= {self.limit})"
        self.on.execute(f"CREATE TEMP VIEW {self.at}clean AS {clean}")
        self.on.execute(f"CREATE TEMP VIEW {self.at}base AS {clean} UNION ALL SELECT {own}, v.__w FROM {self.at}kept v")
        self.on.execute(f"CREATE TEMP VIEW {self.at}known AS {clean} UNION ALL SELECT {own}, 1e0 {fresh}")
        signed = f"{own}, v.{EXACT}"
        self.on.execute(
            f"CREATE TEMP TABLE {self.at}rows AS SELECT 1 AS __sign, 1e0 AS __w, {signed} {fresh} "
            f"UNION ALL SELECT -1, v.__w, {signed} FROM {self.at}kept v WHERE {EXACT} "
            f"UNION ALL SELECT -1, v.__w, {signed} FROM {self.at}kept_sampled v WHERE NOT {EXACT}"
        )


def in_parts(parts: Parts) -> str:
    return "(" + (" OR ".join(f"part BETWEEN {lo} AND {hi}" for lo, hi in parts.ranges) or "FALSE") + ")"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
