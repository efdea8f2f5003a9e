"""Adds up totals in DuckDB, by group: of what is published, of what it is compared with, and of the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from partwise.compile.program import Sampled
from partwise.compile.sample.generate import EXACT
from partwise.estimate.formula import used
from partwise.fresh.adding.bounds import Sizes
from partwise.fresh.adding.compared import Compared, in_parts, quoted
from partwise.fresh.adding.extremes import Extremes
from partwise.fresh.adding.pairs import JoinedCompared
from partwise.fresh.adding.quantiles import Quantiles
from partwise.fresh.asked.question import FreshQuestion
from partwise.fresh.asked.results import ExtremeOf, QuantileOf, Result
from partwise.parts import Parts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Sums that should cancel out are 0 up to this share of what was added.
_ROUNDING = 1e-12

Group = tuple[Any, ...]


@dataclass
class Side:
    """Sums over exact keys and over sampled ones. `differing` by number of the result."""

    base: tuple[float, ...] | None = None
    exact: tuple[float, ...] | None = None
    sampled: tuple[float, ...] | None = None
    products: Mapping[tuple[int, int], float] = field(default_factory=dict)
    differing: tuple[int, ...] = ()


@dataclass
class Sums:
    """Of one group: of differences (`correction`), and of fresh rows alone (`sample`)."""

    published: tuple[float, ...] | None = None
    correction: Side = field(default_factory=Side)
    sample: Side = field(default_factory=Side)


@dataclass(frozen=True)
class Added:
    """`sizes` by dirty part. `keys`: how many keys of the dirty parts are sampled, exact, differing. `by_part`: groups
    that follow from the part, of dirty ones. `written`: by number of a result that is no formula, what DuckDB says of
    published rows and of known ones, by group."""

    groups: Mapping[Group, Sums]
    sizes: Mapping[int, Sizes]
    keys: tuple[int, int, int]
    by_part: Mapping[int, Group] = field(default_factory=dict)
    written: Mapping[int, tuple[Mapping[Group, Any], Mapping[Group, Any]]] = field(default_factory=dict)
    quantiles: Mapping[int, Quantiles] = field(default_factory=dict)
    extremes: Mapping[int, Extremes] = field(default_factory=dict)


class Adding:
    def __init__(self, compared: Compared | JoinedCompared) -> None:
        self.on, self.question, self.compared = compared.on, compared.question, compared

    def all(self) -> Added:
        sizes = self.compared.make()
        found: dict[Group, Sums] = {}
        for group, sums in self._totals(self.compared.published):
            found.setdefault(group, Sums()).published = sums
        for group, sums in self._totals("SELECT * FROM __base"):
            found.setdefault(group, Sums()).correction.base = sums
        for group, sums in self._totals("SELECT * FROM __clean"):
            found.setdefault(group, Sums()).sample.base = sums
        self._by_key()
        self._sides(found)
        quantiles = {
            n: Quantiles(self.compared, n, result)
            for n, (_, result) in enumerate(self.question.results)
            if isinstance(result, QuantileOf)
        }
        extremes = {
            n: Extremes(self.compared, n, result)
            for n, (_, result) in enumerate(self.question.results)
            if isinstance(result, ExtremeOf)
        }
        written = {n: self._written(self.question.written[n]) for n in (*quantiles, *extremes)}
        return Added(found, sizes, self._counts(), self.compared.groups_of_parts(), written, quantiles, extremes)

    def _by(self, *more: str) -> str:
        found = [*(f"__g{n}" for n in range(len(self.question.groups))), *more]
        return f" GROUP BY {', '.join(found)}" if found else ""

    def _values(self) -> list[str]:
        return [f"({total.value}) * __w AS __t{n}" for n, total in enumerate(self.question.totals)]

    def _totals(self, rows: str) -> list[tuple[Group, tuple[float, ...]]]:
        groups = [f"__g{n}" for n in range(len(self.question.groups))]
        sums = [f"COALESCE(SUM(__t{n}), 0e0)" for n in range(len(self.question.totals))]
        shown = ", ".join([*groups, *sums, "COUNT(*)"])
        found = self.on.execute(f"SELECT {shown} FROM ({self.compared.chosen(rows, self._values())}){self._by()}")
        size = len(groups)
        return [(tuple(row[:size]), tuple(map(float, row[size:-1]))) for row in found.fetchall()]

    def _written(self, text: str) -> tuple[dict[Group, Any], dict[Group, Any]]:
        found: list[dict[Group, Any]] = []
        groups = [text for _, text in self.question.groups]
        by = f" GROUP BY {', '.join(groups)}" if groups else ""
        for rows in (self.compared.published, "SELECT * FROM __known"):
            shown = ", ".join([*groups, text])
            of = f"FROM ({rows}) AS {quoted(self.question.alias)} WHERE {self.question.where}{by}"
            found.append({tuple(row[:-1]): row[-1] for row in self.on.execute(f"SELECT {shown} {of}").fetchall()})
        return found[0], found[1]

    def _by_key(self) -> None:
        """By key over all parts first, then squared: a key has the same hash everywhere."""
        keys = [f"{k} AS __k{n}" for n, k in enumerate(self.compared.key)]
        each = self.compared.chosen("SELECT * FROM __rows", [*self._values(), *keys, EXACT, "__sign"])
        groups = [f"__g{n}" for n in range(len(self.question.groups))]
        by_key = ", ".join([*groups, *(f"__k{n}" for n in range(len(keys))), EXACT])
        sums = "".join(
            f", CASE WHEN ABS(SUM(__sign * __t{n})) <= {_ROUNDING} * SUM(ABS(__t{n})) THEN 0e0 ELSE SUM(__sign * __t{n}) END AS __d{n}"
            f", COALESCE(SUM(__t{n}) FILTER (__sign = 1), 0e0) AS __f{n}"
            for n in range(len(self.question.totals))
        )
        self.on.execute(f"CREATE TEMP TABLE __keyed AS SELECT {by_key}{sums} FROM ({each}) GROUP BY {by_key}")

    def _sides(self, found: dict[Group, Sums]) -> None:
        for group, side in self._summed("__d"):
            sums = found.setdefault(group, Sums())
            sums.correction = _with_base(side, sums.correction)
        for group, side in self._summed("__f"):
            sums = found.setdefault(group, Sums())
            sums.sample = _with_base(side, sums.sample)

    def _summed(self, of: str) -> list[tuple[Group, Side]]:
        count, groups = len(self.question.totals), [f"__g{n}" for n in range(len(self.question.groups))]
        pairs = [(a, b) for a in range(count) for b in range(a, count)]
        needed = [sorted(self._needed(result)) for result in self._results()]
        items = [f"COALESCE(SUM({of}{n}) FILTER ({EXACT}), 0e0)" for n in range(count)]
        items += [f"COALESCE(SUM({of}{n}) FILTER (NOT {EXACT}), 0e0)" for n in range(count)]
        items += [f"COALESCE(SUM({of}{a} * {of}{b}) FILTER (NOT {EXACT}), 0e0)" for a, b in pairs]
        items += [
            f"COUNT(*) FILTER (NOT {EXACT} AND ({' OR '.join(f'{of}{n} <> 0' for n in some) or 'FALSE'}))"
            for some in needed
        ]
        made, size = [], len(groups)
        for row in self.on.execute(f"SELECT {', '.join([*groups, *items])} FROM __keyed{self._by()}").fetchall():
            values = row[size:]
            products = dict(zip(pairs, values[2 * count : 2 * count + len(pairs)], strict=True))
            side = Side(
                None,
                tuple(values[:count]),
                tuple(values[count : 2 * count]),
                {**products, **{(b, a): v for (a, b), v in products.items()}},
                tuple(int(v) for v in values[2 * count + len(pairs) :]),
            )
            made.append((tuple(row[:size]), side))
        return made

    def _counts(self) -> tuple[int, int, int]:
        keys = ", ".join(self.compared.key)
        sampled, exact = (
            self._count(f"SELECT DISTINCT {keys} FROM __rows WHERE __sign = 1 AND {is_} {EXACT}") for is_ in ("NOT", "")
        )
        own = ", ".join(f"__k{n}" for n in range(len(self.compared.key)))
        moving = sorted(set().union(*map(self._needed, self._results())))
        changed = " OR ".join(f"__d{n} <> 0" for n in moving) or "TRUE"
        return sampled, exact, self._count(f"SELECT DISTINCT {own} FROM __keyed WHERE {changed}")

    def _results(self) -> list[Result]:
        return [result for _, result in self.question.results]

    @staticmethod
    def _needed(result: Result) -> frozenset[int]:
        return frozenset() if isinstance(result, QuantileOf | ExtremeOf) else used(result)

    def _count(self, rows: str) -> int:
        found = self.on.execute(f"SELECT COUNT(*) FROM ({rows})").fetchone()
        return int(found[0]) if found else 0


def _with_base(side: Side, before: Side) -> Side:
    side.base = before.base
    return side


def chosen_parts(connection: DuckDBPyConnection, question: FreshQuestion, parts: Parts, length: int) -> Parts:
    """Those that the conditions on time leave."""
    if not question.parts or not parts:
        return parts
    spans = " UNION ALL ".join(f"SELECT UNNEST(range({lo}, {hi + 1})) AS part" for lo, hi in parts.ranges)
    rows = f"SELECT part, to_timestamp(part * {length}) AS part_timestamp FROM ({spans})"
    where = " AND ".join(f"({c})" for c in question.parts)
    found = connection.execute(f"SELECT part FROM ({rows}) AS {quoted(question.alias)} WHERE {where} ORDER BY part")
    return Parts.single(*(int(row[0]) for row in found.fetchall()))


def names_of(sampled: Sampled, view: str) -> Sequence[str]:
    return [n for n in (view, sampled.sample, sampled.was, sampled.sizes) if n is not None]


__all__ = ["Added", "Adding", "Group", "Side", "Sums", "chosen_parts", "in_parts", "names_of", "quoted"]
