"""Quantiles by inverting counts: which values may the p-th of all rows be, given how many rows lie below each?

    C(x) = rows up to x that are compared with + exact differences + sampled differences / ratio

The quantile is the first x with C(x) >= p * N. The interval holds all x for which C(x) - p * N is 0 within its error:
per key d(x) = (fresh rows up to x) - (compared rows up to x) - p * (rows more than before), as for any total. Nothing
is resampled, so the same question has the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from partwise.compile.sample.generate import EXACT
from partwise.estimate.interval import FEWEST, MARGIN, NoEstimate, student
from partwise.fresh.adding.compared import Compared
from partwise.fresh.adding.pairs import JoinedCompared
from partwise.fresh.asked.results import QuantileOf

_NIL = 1e-9


@dataclass(frozen=True)
class QuantileAt:
    value: float
    low: float
    high: float
    differing: int


class Quantiles:
    """Of one result: counts at every value, by group."""

    def __init__(self, compared: Compared | JoinedCompared, at: int, of: QuantileOf) -> None:
        self.on, self.ratio, self.share, self.table = compared.on, compared.ratio, of.share, f"__quantile{at}"
        self.groups = [f"__g{n}" for n in range(len(compared.question.groups))]
        value = f"CAST({of.value} AS DOUBLE)"
        value = f"CASE WHEN {of.only} THEN {value} END" if of.only else value
        keys = [f"{k} AS __k{n}" for n, k in enumerate(compared.key)]
        base = compared.chosen("SELECT * FROM __base", [f"{value} AS v", "__w AS c"])
        signed = compared.chosen("SELECT * FROM __rows", [f"{value} AS v", "__sign * __w AS s", EXACT, *keys])
        key = ", ".join([*self.groups, *(f"__k{n}" for n in range(len(keys)))])
        by, p = "".join(f"{g}, " for g in self.groups), f"{of.share!r}"
        partition = f"PARTITION BY {', '.join(self.groups)} " if self.groups else ""
        self.on.execute(
            f"CREATE TEMP TABLE {self.table} AS WITH signed AS (SELECT * FROM ({signed}) WHERE v IS NOT NULL), "
            f"each AS (SELECT {key}, v, SUM(s) AS s FROM signed WHERE NOT {EXACT} GROUP BY {key}, v), "
            f"steps AS (SELECT *, SUM(s) OVER (PARTITION BY {key} ORDER BY v) - {p} * n AS d, d - s AS was FROM "
            f"(SELECT *, SUM(s) OVER (PARTITION BY {key}) AS n FROM each)), "
            f"before AS (SELECT {key}, -{p} * SUM(s) AS d FROM each GROUP BY {key}), "
            f"events AS (SELECT {by}v, c, 0e0 AS q, 0 AS f FROM ({base}) WHERE v IS NOT NULL "
            f"UNION ALL SELECT {by}v, s, 0e0, 0 FROM signed WHERE {EXACT} "
            f"UNION ALL SELECT {by}v, s / {self.ratio!r}, d * d - was * was, "
            f"CAST(ABS(d) > {_NIL} AS INT) - CAST(ABS(was) > {_NIL} AS INT) FROM steps "
            f"UNION ALL SELECT {by}CAST('-inf' AS DOUBLE), 0e0, d * d, CAST(ABS(d) > {_NIL} AS INT) FROM before) "
            f"SELECT {by}v, SUM(c) OVER w AS c, SUM(q) OVER w AS q, SUM(f) OVER w AS f, "
            f"{p} * SUM(c) OVER ({partition}) AS wanted FROM "
            f"(SELECT {by}v, SUM(c) AS c, SUM(q) AS q, SUM(f) AS f FROM events GROUP BY {by}v) "
            f"WINDOW w AS ({partition}ORDER BY v) ORDER BY {by}v"  # a group is found without a scan
        )

    def at(self, group: tuple[Any, ...], rows: float, confidence: float) -> QuantileAt | NoEstimate:
        """`rows`: how many one unknown key can have in all dirty parts together."""
        where = " AND ".join(["v > CAST('-inf' AS DOUBLE)", *(f"{g} IS NOT DISTINCT FROM ?" for g in self.groups)])
        found = self.on.execute(
            f"SELECT v, q, f FROM {self.table} WHERE {where} AND c >= wanted - {_NIL} ORDER BY v LIMIT 1", list(group)
        ).fetchone()
        if found is None:
            return NoEstimate("undefined")
        value, squares, differing = float(found[0]), float(found[1]), int(found[2])
        if not math.isfinite(rows):
            return NoEstimate("no-bound", differing)
        if differing < FEWEST:
            return NoEstimate("few-keys", differing, rows)
        if squares < MARGIN * rows * rows:
            return NoEstimate("large-key", differing, rows)
        z = student(confidence, differing - 1) * math.sqrt((1 - self.ratio) / self.ratio**2)
        # One row to either side, between which PERCENTILE_CONT interpolates.
        ends = self.on.execute(
            f"SELECT MIN(v) FILTER (c + {z!r} * SQRT(GREATEST(q, 0e0)) >= wanted - 1), "
            f"MIN(v) FILTER (c - {z!r} * SQRT(GREATEST(q, 0e0)) >= wanted + 1) FROM {self.table} WHERE {where}",
            list(group),
        ).fetchone()
        if ends is None or ends[0] is None or ends[1] is None:
            return NoEstimate("undefined", differing)
        return QuantileAt(value, min(value, float(ends[0])), max(value, float(ends[1])), differing)
