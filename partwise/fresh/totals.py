"""Adds up totals in DuckDB, by group: of what is published, of what it is compared with, and of the differences.

Tables in the connection: the view, its sample, what is published of the sampled keys, and sizes. A stand-in is read as
if it were the missing part: it gets that part's time, so that conditions on time choose parts and not stand-ins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from partwise.compile.program import Sampled
from partwise.estimate.formula import used
from partwise.fresh.bounds import Sizes, column_bound, columns_in
from partwise.fresh.question import FreshQuestion
from partwise.fresh.states import PartStates
from partwise.parts import Parts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Sums that should cancel out are 0 up to this share of what was added.
_ROUNDING = 1e-12
EXACT = "sample_exact"

Group = tuple[Any, ...]


@dataclass
class Sums:
    """Of one group. `differing` by number of the result."""

    published: tuple[float, ...] | None = None
    base: tuple[float, ...] | None = None
    exact: tuple[float, ...] | None = None
    sampled: tuple[float, ...] | None = None
    products: Mapping[tuple[int, int], float] = field(default_factory=dict)
    differing: tuple[int, ...] = ()


@dataclass(frozen=True)
class Added:
    """`sizes` by dirty part. `keys`: how many keys of the dirty parts are sampled, exact, differing."""

    groups: Mapping[Group, Sums]
    sizes: Mapping[int, Sizes]
    keys: tuple[int, int, int]


class Adding:
    def __init__(
        self, connection: DuckDBPyConnection, question: FreshQuestion, sampled: Sampled, states: PartStates, length: int
    ) -> None:
        self.on, self.question, self.sampled, self.states, self.length = connection, question, sampled, states, length
        self.columns = [str(row[0]) for row in connection.execute(f"DESCRIBE {_name(question.view)}").fetchall()]
        self.own = [c for c in self.columns if c.lower() not in ("part", "part_timestamp")]
        self.key = [_name(c) for c, _ in sampled.key]
        self.on.execute("CREATE TEMP TABLE __dirty (part BIGINT, source BIGINT, stamp TIMESTAMPTZ)")
        for p in states.dirty:
            source = p if p in states.stale else states.stand_ins.get(p)
            self.on.execute("INSERT INTO __dirty VALUES (?, ?, to_timestamp(?))", [p, source, p * length])

    def all(self) -> Added:
        self._exact_keys()
        self._compared()
        sizes = {p: self._sizes(p) for p in self.states.dirty}
        self._without_clipped(sizes)
        view, rows = _name(self.question.view), ", ".join([*map(_name, self.own), "part", "part_timestamp"])
        kept = _in(self.states.clean)
        self.on.execute(
            f"CREATE TEMP VIEW __base AS SELECT {rows} FROM {view} WHERE {kept} UNION ALL SELECT {rows} FROM __kept"
        )
        published = f"SELECT {rows} FROM {view} WHERE {_in(self.states.clean | self.states.stale)}"
        found: dict[Group, Sums] = {}
        for group, sums in self._totals(published):
            found.setdefault(group, Sums()).published = sums
        for group, sums in self._totals("SELECT * FROM __base"):
            found.setdefault(group, Sums()).base = sums
        self._differences(found)
        return Added(found, sizes, self._counts())

    # -- who is exact, and what is compared with what

    def _listed(self, column: str) -> str:
        texts = ", ".join("'" + e.replace("'", "''") + "'" for e in self.sampled.exact)
        return f"COALESCE(CAST({column} AS VARCHAR) IN ({texts}), FALSE)" if texts else "FALSE"

    def _exact_keys(self) -> None:
        keys = ", ".join(f"z.key_{n}" for n in range(len(self.key)))
        if self.sampled.keep:
            text = (
                f"SELECT z.part, {keys} FROM {_name(self.sampled.sizes or '')} z "
                f"WHERE place <= {self.sampled.keep} AND part IN (SELECT part FROM __dirty)"
            )
        else:
            nothing = ", ".join(f"NULL AS key_{n}" for n in range(len(self.key)))
            text = f"SELECT CAST(NULL AS BIGINT) AS part, {nothing} WHERE FALSE"
        self.on.execute(f"CREATE TEMP TABLE __exact AS {text}")

    def _same_key(self, left: str, right: str) -> str:
        """Where `right` has its keys by number."""
        return " AND ".join(f"{left}.{k} IS NOT DISTINCT FROM {right}.key_{n}" for n, k in enumerate(self.key))

    def _compared(self) -> None:
        """__old: published rows of dirty parts and stand-ins, with the part that they are for, and who is exact."""
        own = ", ".join(f"v.{_name(c)}" for c in self.own)
        exact = f"{self._listed('v.' + self.key[0])} OR x.part IS NOT NULL"
        for name, table in (("__old", self.question.view), ("__old_sampled", self.sampled.was)):
            self.on.execute(
                f"CREATE TEMP TABLE {name} AS SELECT {own}, d.part, d.stamp AS part_timestamp, ({exact}) AS {EXACT} "
                f"FROM {_name(table)} v JOIN __dirty d ON v.part = d.source "
                f"LEFT JOIN __exact x ON x.part = d.part AND {self._same_key('v', 'x')}"
            )

    def _sizes(self, part: int) -> Sizes:
        """Of the keys that are not exact. Without sizes only the rows of a unique key are known."""
        columns = self._measured()
        if self.sampled.sizes is None:
            return Sizes(1.0 if self.sampled.unique else float("inf"), {})
        shown = ", ".join(["rows", *(f"{_name('size_' + c)}, {_name('least_' + c)}" for c in columns)])
        rest = self.sampled.keep + 1
        row = self.on.execute(
            f"SELECT {shown} FROM {_name(self.sampled.sizes)} WHERE part = {part} AND place = {rest}"
        ).fetchone()
        if row is None or row[0] is None:  # there are no other keys
            return Sizes(0.0, {c.lower(): 0.0 for c in columns}, frozenset(c.lower() for c in columns))
        rows = min(float(row[0]), 1.0) if self.sampled.unique else float(row[0])
        pairs = {c: (row[1 + 2 * n], row[2 + 2 * n]) for n, c in enumerate(columns)}
        bounds = {
            c.lower(): column_bound(None if s is None else float(s), float(row[0])) for c, (s, _) in pairs.items()
        }
        old = ", ".join(f"MIN(CAST({_name(c)} AS DOUBLE))" for c in columns)
        least = self.on.execute(f"SELECT {old} FROM __old WHERE part = {part}").fetchone() if columns else ()
        positive = frozenset(
            c.lower()
            for (c, (_, fresh)), was in zip(pairs.items(), least or (), strict=True)
            if (fresh is None or fresh >= 0) and (was is None or was >= 0)
        )
        return Sizes(rows, bounds, positive)

    def _measured(self) -> list[str]:
        """Columns of the view that the question adds up and that have sizes."""
        wanted = {name for total in self.question.totals for name in columns_in(total)}
        own = {c.lower() for c in self.own}
        return [c for c in self.sampled.sized if c.lower() in wanted & own]

    def _without_clipped(self, sizes: Mapping[int, Sizes]) -> None:
        """No key that is not exact can hold more than its part's sizes say: who did so when it was published, or does so
        in a stand-in, is compared with nothing. That is known without the sample, so it favours nobody."""
        keys = ", ".join(f"{k} AS key_{n}" for n, k in enumerate(self.key))
        text = f"SELECT CAST(NULL AS BIGINT) AS part, {keys} FROM __old WHERE FALSE"
        for part, size in sizes.items():
            over = [f"COUNT(*) > {size.rows!r}"] if size.rows != float("inf") else []
            over += [
                f"SUM(ABS(CAST({_name(c)} AS DOUBLE))) > {most!r}"
                for c, most in size.columns.items()
                if most != float("inf")
            ]
            if over:
                by = ", ".join(self.key)
                text += (
                    f" UNION ALL SELECT part, {keys} FROM __old WHERE part = {part} AND NOT {EXACT} "
                    f"GROUP BY part, {by} HAVING {' OR '.join(over)}"
                )
        self.on.execute(f"CREATE TEMP TABLE __clipped AS {text}")
        for name, old in (("__kept", "__old"), ("__kept_sampled", "__old_sampled")):
            self.on.execute(
                f"CREATE TEMP VIEW {name} AS SELECT v.* FROM {old} v ANTI JOIN __clipped c "
                f"ON NOT v.{EXACT} AND v.part = c.part AND {self._same_key('v', 'c')}"
            )

    # -- sums

    def _chosen(self, rows: str, more: str = "") -> str:
        """Groups and the values of totals of each row that the condition lets pass."""
        groups = [f"{text} AS __g{n}" for n, (_, text) in enumerate(self.question.groups)]
        totals = [f"{total.value} AS __t{n}" for n, total in enumerate(self.question.totals)]
        items = ", ".join([*groups, *totals, *([more] if more else [])])
        return f"SELECT {items} FROM ({rows}) AS {_name(self.question.alias)} WHERE {self.question.where}"

    def _by(self, *more: str) -> str:
        found = [*(f"__g{n}" for n in range(len(self.question.groups))), *more]
        return f" GROUP BY {', '.join(found)}" if found else ""

    def _totals(self, rows: str) -> list[tuple[Group, tuple[float, ...]]]:
        groups = [f"__g{n}" for n in range(len(self.question.groups))]
        sums = [f"COALESCE(SUM(__t{n}), 0e0)" for n in range(len(self.question.totals))]
        found = self.on.execute(
            f"SELECT {', '.join([*groups, *sums])} FROM ({self._chosen(rows)}){self._by()}"
        ).fetchall()
        size = len(groups)
        return [(tuple(row[:size]), tuple(map(float, row[size:]))) for row in found]

    def _differences(self, found: dict[Group, Sums]) -> None:
        """By key over all parts first, then squared: a key has the same hash everywhere."""
        own = ", ".join([*(f"v.{_name(c)}" for c in self.own), "v.part", "v.part_timestamp", f"v.{EXACT}"])
        rows = (
            f"SELECT 1 AS __sign, {own} FROM {_name(self.sampled.sample)} v JOIN __dirty d ON v.part = d.part "
            f"UNION ALL SELECT -1, {own} FROM __kept v WHERE {EXACT} "
            f"UNION ALL SELECT -1, {own} FROM __kept_sampled v WHERE NOT {EXACT}"
        )
        keys = [f"{k} AS __k{n}" for n, k in enumerate(self.key)]
        each = self._chosen(rows, ", ".join([*keys, EXACT, "__sign"]))
        count, groups = len(self.question.totals), [f"__g{n}" for n in range(len(self.question.groups))]
        by_key = ", ".join([*groups, *(f"__k{n}" for n in range(len(keys))), EXACT])
        sums = ", ".join(
            f"CASE WHEN ABS(SUM(__sign * __t{n})) <= {_ROUNDING} * SUM(ABS(__t{n})) THEN 0e0 ELSE SUM(__sign * __t{n}) END AS __d{n}"
            for n in range(count)
        )
        self.on.execute(f"CREATE TEMP TABLE __keyed AS SELECT {by_key}, {sums} FROM ({each}) GROUP BY {by_key}")
        pairs = [(a, b) for a in range(count) for b in range(a, count)]
        needed = [sorted(used(formula)) for _, formula in self.question.results]
        items = [f"COALESCE(SUM(__d{n}) FILTER ({EXACT}), 0e0)" for n in range(count)]
        items += [f"COALESCE(SUM(__d{n}) FILTER (NOT {EXACT}), 0e0)" for n in range(count)]
        items += [f"COALESCE(SUM(__d{a} * __d{b}) FILTER (NOT {EXACT}), 0e0)" for a, b in pairs]
        items += [
            f"COUNT(*) FILTER (NOT {EXACT} AND ({' OR '.join(f'__d{n} <> 0' for n in some) or 'FALSE'}))"
            for some in needed
        ]
        for row in self.on.execute(f"SELECT {', '.join([*groups, *items])} FROM __keyed{self._by()}").fetchall():
            group, values = tuple(row[: len(groups)]), row[len(groups) :]
            sums_of = found.setdefault(group, Sums())
            sums_of.exact, sums_of.sampled = tuple(values[:count]), tuple(values[count : 2 * count])
            products = dict(zip(pairs, values[2 * count : 2 * count + len(pairs)], strict=True))
            sums_of.products = {**products, **{(b, a): v for (a, b), v in products.items()}}
            sums_of.differing = tuple(int(v) for v in values[2 * count + len(pairs) :])

    def _counts(self) -> tuple[int, int, int]:
        keys = ", ".join(self.key)
        sample = f"{_name(self.sampled.sample)} WHERE part IN (SELECT part FROM __dirty)"
        sampled, exact = (self._count(f"SELECT DISTINCT {keys} FROM {sample} AND {is_} {EXACT}") for is_ in ("NOT", ""))
        own = ", ".join(f"__k{n}" for n in range(len(self.key)))
        changed = " OR ".join(f"__d{n} <> 0" for n in range(len(self.question.totals)))
        return sampled, exact, self._count(f"SELECT DISTINCT {own} FROM __keyed WHERE {changed}")

    def _count(self, rows: str) -> int:
        found = self.on.execute(f"SELECT COUNT(*) FROM ({rows})").fetchone()
        return int(found[0]) if found else 0


def chosen_parts(connection: DuckDBPyConnection, question: FreshQuestion, parts: Parts, length: int) -> Parts:
    """Those that the conditions on time leave."""
    if not question.parts or not parts:
        return parts
    spans = " UNION ALL ".join(f"SELECT UNNEST(range({lo}, {hi + 1})) AS part" for lo, hi in parts.ranges)
    rows = f"SELECT part, to_timestamp(part * {length}) AS part_timestamp FROM ({spans})"
    where = " AND ".join(f"({c})" for c in question.parts)
    found = connection.execute(f"SELECT part FROM ({rows}) AS {_name(question.alias)} WHERE {where} ORDER BY part")
    return Parts.single(*(int(row[0]) for row in found.fetchall()))


def _in(parts: Parts) -> str:
    return "(" + (" OR ".join(f"part BETWEEN {lo} AND {hi}" for lo, hi in parts.ranges) or "FALSE") + ")"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def names_of(sampled: Sampled, view: str) -> Sequence[str]:
    return [n for n in (view, sampled.sample, sampled.was, sampled.sizes) if n is not None]
