"""Two sampled views joined on their key, as one: the same tables that one view has.

A key has the same hash in both views, so its rows are in both samples or in none, and 1 / ratio scales their joined
rows as it scales those of one view. A joined row is exact where each of its rows is: of a clean part, or of a key that
is exact in that part.

    fresh rows of one side x fresh rows of the other  -  compared rows x compared rows

Pairs of clean parts cancel out and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partwise.compile.program import Sampled
from partwise.compile.sample.generate import EXACT
from partwise.fresh.adding.bounds import Sizes
from partwise.fresh.adding.compared import Compared, quoted
from partwise.fresh.asked.joined import JoinedQuestion, column_of
from partwise.fresh.states import PartStates
from partwise.parts import Parts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class _Held:
    """What one key holds at most of rows, or of a column: in rows that are known, and in those that are not."""

    known: float
    rest: float


class JoinedCompared:
    """`states` are those of both views together. `key` are the columns of the joined rows that hold the key."""

    def __init__(
        self,
        connection: DuckDBPyConnection,
        asked: JoinedQuestion,
        sampled: tuple[Sampled, Sampled],
        states: tuple[PartStates, PartStates],
        length: int,
        ratio: float,
    ) -> None:
        self.on, self.asked, self.question, self.ratio = connection, asked, asked.question, ratio
        self.states = both_states(*states)
        self.sides = tuple(
            Compared(connection, asked.sides[n], sampled[n], states[n], length, ratio, f"__{n}_", asked.measured_of(n))
            for n in (0, 1)
        )
        self.key = [quoted(column_of(0, c)) for c, _ in sampled[0].key]

    def make(self) -> dict[int, Sizes]:
        sizes = [side.make() for side in self.sides]
        self._views()
        return self._sizes(sizes)

    @property
    def published(self) -> str:
        one, other = (f"SELECT *, TRUE AS {EXACT}, FALSE AS __dirty FROM ({side.published})" for side in self.sides)
        return self._pairs(one, other)

    def chosen(self, rows: str, items: list[str]) -> str:
        groups = [f"{text} AS __g{n}" for n, (_, text) in enumerate(self.question.groups)]
        shown = ", ".join([*groups, *items]) or "1"
        return f"SELECT {shown} FROM ({rows}) AS {quoted(self.question.alias)} WHERE {self.question.where}"

    def groups_of_parts(self) -> dict[int, tuple[Any, ...]]:
        """By dirty part the values of those groups that follow from the part alone: where both sides have the same part."""
        return {**self.sides[0].groups_of_parts(), **self.sides[1].groups_of_parts()}

    # -- rows

    def _pairs(self, one: str, other: str, where: str = "") -> str:
        """Each row of one side with each of the other that has its key, and its part if the query says so."""
        columns = [f"{a}.{quoted(c)} AS {quoted(column_of(n, c))}" for n, a in enumerate("ab") for c in self._names(n)]
        same = [f"a.{k} = b.{m}" for k, m in zip(*(side.key for side in self.sides), strict=True)]
        if self.asked.same_part:
            columns += ["a.part AS part", "a.part_timestamp AS part_timestamp"]
            same.append("a.part = b.part")
        shown = ", ".join([*columns, "a.__w * b.__w AS __w", f"a.{EXACT} AND b.{EXACT} AS {EXACT}"])
        return f"SELECT {shown} FROM ({one}) a JOIN ({other}) b ON {' AND '.join(same)}{where}"

    def _names(self, n: int) -> list[str]:
        return [*self.sides[n].own, "part", "part_timestamp"]

    def _side(self, side: Compared, sign: int) -> str:
        """Fresh rows, or those that they are compared with: of clean parts, and of exact and sampled keys."""
        own = side.own_columns("v")
        return (
            f"SELECT {own}, v.__w, TRUE AS {EXACT}, FALSE AS __dirty FROM {side.at}clean v "
            f"UNION ALL SELECT {own}, v.__w, v.{EXACT}, TRUE FROM {side.at}rows v WHERE v.__sign = {sign}"
        )

    def _views(self) -> None:
        first, second = self.sides
        changed = " WHERE a.__dirty OR b.__dirty"
        fresh, compared = (self._pairs(self._side(first, s), self._side(second, s), changed) for s in (1, -1))
        self.on.execute(
            f"CREATE TEMP TABLE __rows AS SELECT 1 AS __sign, * FROM ({fresh}) UNION ALL SELECT -1, * FROM ({compared})"
        )
        for name in ("clean", "base", "known"):
            one, other = (f"SELECT *, TRUE AS {EXACT} FROM {side.at}{name}" for side in self.sides)
            self.on.execute(f"CREATE TEMP VIEW __{name} AS {self._pairs(one, other)}")

    # -- how much a key that is not exact can hold

    def _sizes(self, sizes: list[dict[int, Sizes]]) -> dict[int, Sizes]:
        """By part where both sides have the same part; else one bound for all of them, at the first."""
        if self.asked.same_part:
            return {p: self._together(sizes, Parts.single(p), f"part = {p}") for p in self.states.dirty}
        found = {p: Sizes(0.0, {}) for p in self.states.dirty}
        found[self.states.dirty.first] = self._together(sizes, self.states.dirty, "TRUE")
        return found

    def _together(self, sizes: list[dict[int, Sizes]], parts: Parts, where: str) -> Sizes:
        """A joined row is not exact if one of its rows is not: what a key holds there, times what it has on the other side.
        In one part the rows of a key are known, or they are not; in several parts some are and some are not."""
        crossed = _either if self.asked.same_part else _crossed
        rows: list[_Held] = []
        held: list[dict[str, _Held]] = []
        positive: set[str] = set()
        for side, of in zip(self.sides, sizes, strict=True):
            mine = [size for p, size in of.items() if p in parts]
            names = [c.lower() for c in side.sized]
            known = self._known(side, names, where)
            rows.append(_Held(known[0][0], sum(size.rows for size in mine)))
            held.append(
                {
                    c: _Held(most, _sum(size.columns.get(c, 0.0) for size in mine))
                    for c, (most, _) in zip(names, known[1:], strict=True)
                }
            )
            n = len(rows) - 1
            positive |= {
                column_of(n, c)
                for c, (_, least) in zip(names, known[1:], strict=True)
                if least >= 0 and all(size.rows == 0 or c in size.positive for size in mine)
            }
        columns = {
            column_of(n, c): crossed(most, rows[1 - n]) for n, side in enumerate(held) for c, most in side.items()
        }
        products = {
            frozenset([column_of(0, c), column_of(1, d)]): crossed(x, y)
            for c, x in held[0].items()
            for d, y in held[1].items()
        }
        return Sizes(crossed(*rows), columns, frozenset(positive), products)

    def _known(self, side: Compared, columns: list[str], where: str) -> list[tuple[float, float]]:
        """Rows and columns: what one key holds at most in rows that are known for all keys, and the smallest value."""
        by = ", ".join(side.key)
        sums = "".join(
            f", SUM(ABS(CAST({quoted(c)} AS DOUBLE)) * __w) AS s{n}, MIN(CAST({quoted(c)} AS DOUBLE)) AS m{n}"
            for n, c in enumerate(columns)
        )
        shown = "".join(f", COALESCE(MAX(s{n}), 0e0), COALESCE(MIN(m{n}), 0e0)" for n in range(len(columns)))
        text = " UNION ALL ".join(
            f"SELECT SUM(__w) AS n{sums} FROM ({self._side(side, sign)}) WHERE {EXACT} AND {where} GROUP BY {by}"
            for sign in (1, -1)
        )
        row = self.on.execute(f"SELECT COALESCE(MAX(n), 0e0){shown} FROM ({text})").fetchone()
        assert row is not None
        found = [(float(row[0]), 0.0)]
        return found + [(float(row[1 + 2 * n]), float(row[2 + 2 * n])) for n in range(len(columns))]


def both_states(one: PartStates, other: PartStates) -> PartStates:
    """A part is as it is in the view that is further behind."""
    missing = one.missing | other.missing
    stale = (one.stale | other.stale) - missing
    stand_ins = {
        p: found[0]
        for p in missing
        if all(found := [states.stand_ins.get(p, ()) for states in (one, other) if p in states.missing])
    }
    clean = (one.clean | other.clean) - missing - stale
    return PartStates(clean, stale, missing, one.beyond | other.beyond, stand_ins)


def _crossed(one: _Held, other: _Held) -> float:
    return _times(one.rest, other.known + other.rest) + _times(one.known, other.rest)


def _either(one: _Held, other: _Held) -> float:
    return max(_times(one.rest, other.rest), _times(one.rest, other.known), _times(one.known, other.rest))


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _sum(values: Iterable[float]) -> float:
    return math.fsum(values)
