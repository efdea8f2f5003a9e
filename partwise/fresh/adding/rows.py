"""SELECT of rows: what is published, with fresh rows of sampled and exact keys in its place, and three counts.

Rows of a stale part are told apart by the key of the view: `updated` are in the answer before and after, with other
values, `added` only after, `gone` only before. The condition looks at each side's own row. Of a part that is not built
all rows are added. Counts are estimated from the sampled keys as any total is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partwise.compile.sample.generate import EXACT
from partwise.estimate.formula import TotalAt
from partwise.estimate.interval import NoEstimate, Totals, estimate
from partwise.fresh.adding.bounds import Sizes
from partwise.fresh.adding.compared import Compared, in_parts, quoted
from partwise.fresh.answer import FreshAnswer, FreshCell, FreshRow, Method, SelectedRows
from partwise.fresh.asked.question import RowsAsked
from partwise.fresh.asked.refused import Refused
from partwise.fresh.deciding import Deciding
from partwise.parts import Parts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COUNTS = ("updated", "added", "gone")


class ComparedRows:
    def __init__(self, connection: DuckDBPyConnection, deciding: Deciding, asked: RowsAsked) -> None:
        self.on, self.deciding, self.asked = connection, deciding, asked
        sampled, view = deciding.sampled, deciding.question.view
        if not sampled.row_key:
            keys = " and ".join(column for column, _ in sampled.key)
            message = f"{view} may have several rows of one {keys} that nothing tells apart"
            raise Refused(
                "double-key", message, "ask for totals, or give the view a key: GROUP BY, or `key:` of its source"
            )
        self.compared = Compared(
            connection, deciding.question, sampled, deciding.states, deciding.length, deciding.share
        )

    def answer(self) -> FreshAnswer:
        sizes = self.compared.make()
        self._compare()
        cells = {name: self._count(n, name, sizes) for n, name in enumerate(COUNTS)}
        states, deciding = self.deciding.states, self.deciding
        keys = (self._keys("NOT"), self._keys(""), self._keys("NOT", "(u + a + g) > 0"))
        return FreshAnswer(
            deciding.question.view, (FreshRow({}, cells),), states, deciding.confidence, deciding.share, keys,
            selected=self._selected(),
        )  # fmt: skip

    def _sides(self) -> tuple[str, str]:
        """Rows of sampled and exact keys, fresh and published, each with its number of a key of the view and of the sample."""
        own = {c.lower(): c for c in self.compared.own}
        keys = [f"{quoted(own[c.lower()])} AS __r{n}" for n, c in enumerate(self.deciding.sampled.row_key)]
        keys += [f"{k} AS __k{n}" for n, k in enumerate(self.compared.key)]
        items = [f"{text} AS __i{n}" for n, (_, text) in enumerate(_items(self.asked, self.compared.own))]
        stale = in_parts(self.deciding.states.stale)
        chosen = [*keys, *items, "part AS __part", EXACT]
        fresh = self.compared.chosen("SELECT * FROM __rows WHERE __sign = 1", chosen)
        old = (
            f"SELECT * FROM __old WHERE {EXACT} AND {stale} "
            f"UNION ALL SELECT * FROM __old_sampled WHERE NOT {EXACT} AND {stale}"
        )
        return fresh, self.compared.chosen(old, chosen)

    def _compare(self) -> None:
        fresh, old = self._sides()
        row_key = ["__part", *(f"__r{n}" for n in range(len(self.deciding.sampled.row_key)))]
        same = " AND ".join(f"f.{k} IS NOT DISTINCT FROM o.{k}" for k in row_key)
        count = len(_items(self.asked, self.compared.own))
        other = " OR ".join(f"f.__i{n} IS DISTINCT FROM o.__i{n}" for n in range(count)) or "FALSE"
        own = ", ".join(f"COALESCE(f.__k{n}, o.__k{n}) AS __k{n}" for n in range(len(self.compared.key)))
        by = ", ".join([*(f"__k{n}" for n in range(len(self.compared.key))), EXACT])
        self.on.execute(
            f"CREATE TEMP TABLE __changed AS SELECT {by}, SUM(u) AS u, SUM(a) AS a, SUM(g) AS g FROM (SELECT {own}, "
            f"COALESCE(f.{EXACT}, o.{EXACT}) AS {EXACT}, CAST(f.__part IS NOT NULL AND o.__part IS NOT NULL AND ({other}) AS INT) AS u, "
            f"CAST(o.__part IS NULL AS INT) AS a, CAST(f.__part IS NULL AS INT) AS g "
            f"FROM ({fresh}) f FULL JOIN ({old}) o ON {same}) GROUP BY {by}"
        )

    def _count(self, n: int, name: str, sizes: dict[int, Sizes]) -> FreshCell:
        c = "uag"[n]
        row = self.on.execute(
            f"SELECT COALESCE(SUM({c}) FILTER ({EXACT}), 0), COALESCE(SUM({c}) FILTER (NOT {EXACT}), 0), "
            f"COALESCE(SUM({c} * {c}) FILTER (NOT {EXACT}), 0), COUNT(*) FILTER (NOT {EXACT} AND {c} > 0) FROM __changed"
        ).fetchone()
        assert row is not None
        totals = Totals(
            (0.0,), (float(row[0]),), (float(row[1]),), ((float(row[2]),),), (self._bounds(sizes),), int(row[3])
        )
        found = estimate(TotalAt(0), totals, self.deciding.share, self.deciding.confidence)
        if isinstance(found, NoEstimate):
            why = self.deciding.why_not.of(name, {}, found, Parts.single(*sizes))
            return FreshCell(None, differing=found.differing, refused=why)
        method: Method = "exact" if found.exact else "sample"
        return FreshCell(
            None, found.value, max(0.0, found.low), found.high, method, found.differing, found.largest_unknown
        )

    def _bounds(self, sizes: dict[int, Sizes]) -> tuple[float, ...]:
        """By part the most rows that a key has which is not exact, fresh or published."""
        most = []
        by = ", ".join(self.compared.key)
        for part, size in sizes.items():
            text = f"SELECT COALESCE(MAX(n), 0) FROM (SELECT COUNT(*) AS n FROM __old WHERE part = {part} AND NOT {EXACT} GROUP BY {by})"
            row = self.on.execute(text).fetchone()
            most.append(max(size.rows, float(row[0]) if row and part in self.deciding.states.stale else 0.0))
        return tuple(most)

    def _keys(self, is_: str, condition: str = "TRUE") -> int:
        row = self.on.execute(f"SELECT COUNT(*) FROM __changed WHERE {is_} {EXACT} AND {condition}").fetchone()
        return int(row[0]) if row else 0

    def _selected(self) -> SelectedRows:
        """Published rows of keys that nobody has looked at stay as they are, and say so."""
        own = ", ".join([*map(quoted, self.compared.own), "part", "part_timestamp"])
        stale = in_parts(self.deciding.states.stale)
        same = " AND ".join(f"v.{k} IS NOT DISTINCT FROM s.{k}" for k in self.compared.key)
        rows = (
            f"SELECT {own}, TRUE AS __fresh FROM __known UNION ALL SELECT {own}, FALSE FROM __old v WHERE {stale} "
            f"AND NOT {EXACT} AND NOT EXISTS (SELECT 1 FROM {quoted(self.deciding.sampled.was)} s WHERE s.part = v.__source "
            f"AND s.sample_hash <= {self.compared.limit} AND {same})"
        )
        return _select(self.on, self.deciding, self.asked, rows, self.compared.own)


def exact_rows(connection: DuckDBPyConnection, deciding: Deciding, rows: str) -> FreshAnswer:
    question = deciding.question
    assert question.rows is not None
    names = [str(row[0]) for row in connection.execute(f"DESCRIBE {quoted(question.view)}").fetchall()]
    own = [c for c in names if c.lower() not in ("part", "part_timestamp")]
    selected = _select(connection, deciding, question.rows, f"SELECT *, TRUE AS __fresh FROM ({rows})", own)
    return FreshAnswer(question.view, (), deciding.states, deciding.confidence, deciding.share, selected=selected)


def _items(asked: RowsAsked, own: list[str]) -> list[tuple[str, str]]:
    return [(c, quoted(c)) for c in own] if asked.items is None else list(asked.items)


def _select(
    connection: DuckDBPyConnection, deciding: Deciding, asked: RowsAsked, rows: str, own: list[str]
) -> SelectedRows:
    columns = ["part", "part_timestamp"] if asked.items is None else []
    items = [*((c, c) for c in columns), *_items(asked, own)]
    shown = ", ".join(f"{text} AS {quoted(name)}" for name, text in items)
    question = deciding.question
    found = connection.execute(
        f"SELECT {shown}, __fresh FROM ({rows}) AS {quoted(question.alias)} WHERE {question.where} {asked.order}"
    ).fetchall()
    return SelectedRows(tuple(name for name, _ in items), tuple((tuple(row[:-1]), bool(row[-1])) for row in found))
