"""What an aggregate over a window means, word for word: all rows of the window, one by one."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Aggregate:
    """`text` as in SQL, `meaning` over the rows of a group (sorted by time and tie)."""

    text: str
    meaning: Callable[[list[Row]], Any]
    exact: bool  # can be subtracted


#: A dimension: the region of some groups.
NODES = {"p": "north", "q": "north"}
#: GROUP BY: name -> text, value in a row. `region` needs a join.
KEYS: dict[str, tuple[str, Callable[[Row], Any]]] = {
    "g": ("g", lambda row: row["g"]),
    "h": ("h", lambda row: row["h"]),
    "known": ("COALESCE(g, 'none')", lambda row: "none" if row["g"] is None else row["g"]),
    "odd": ("h % 2 = 1 OR x > 2", lambda row: _or(row["h"] % 2 == 1, None if row["x"] is None else row["x"] > 2)),
    "region": ("n.region", lambda row: NODES.get(row["g"])),
}


def _or(*sides: bool | None) -> bool | None:
    return True if True in sides else None if None in sides else False


@dataclass(frozen=True)
class WindowQuery:
    aggregates: tuple[Aggregate, ...]
    grouped: str  # names of KEYS with commas between
    where: tuple[str, Callable[[Row], bool]]
    having: tuple[str, Callable[[list[Row]], bool]]
    window: int  # parts of the source
    slide: int
    strategy: str | None
    partial: bool
    join: str = ""  # with the dimension NODES

    @property
    def keys(self) -> list[str]:
        return self.grouped.split(", ") if self.grouped else []

    def sql(self) -> str:
        items = [KEYS[key][0] if KEYS[key][0] == key else f"{KEYS[key][0]} AS {key}" for key in self.keys]
        items += [f"{a.text} AS r{k}" for k, a in enumerate(self.aggregates)]
        slide = f" SLIDE {self.slide} minutes" if self.slide > 1 else ""
        text = f"SELECT {', '.join(items)} FROM s [WINDOW {self.window} minutes{slide}]"
        text += f" {self.join} nodes n ON n.node = s.g" if self.join else ""
        text += f" WHERE {self.where[0]}" if self.where[0] else ""
        text += f" GROUP BY {', '.join(KEYS[key][0] for key in self.keys)}" if self.grouped else ""
        return text + (f" HAVING {self.having[0]}" if self.having[0] else "")

    def span(self, part: int) -> range:
        """The source's parts in the window of this part of the view."""
        end = (part + 1) * self.slide
        return range(end - self.window, end)

    def report(self, history: dict[int, list[Row]], part: int) -> list[Row]:
        rows = [r for p in self.span(part) for r in history.get(p, []) if self.where[1](r)]
        rows = [r for r in rows if self.join != "JOIN" or r["g"] in NODES]
        groups: dict[tuple[Any, ...], list[Row]] = {} if self.grouped else {(): []}
        keys = self.keys
        for row in sorted(rows, key=lambda r: (r["ts"], r["tie"])):
            groups.setdefault(tuple(KEYS[key][1](row) for key in keys), []).append(row)
        shown = []
        for key, members in groups.items():
            if self.having[1](members):
                values = {f"r{k}": a.meaning(members) for k, a in enumerate(self.aggregates)}
                shown.append({**dict(zip(keys, key, strict=True)), **values})
        if self.partial:
            whole = all(p in history for p in self.span(part))
            shown = [{**row, "partial": not whole} for row in shown]
        return shown


def there(rows: list[Row], column: str) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def _sum(column: str) -> Callable[[list[Row]], Any]:
    return lambda rows: sum(there(rows, column)) if there(rows, column) else None


def _avg(column: str) -> Callable[[list[Row]], Any]:
    return lambda rows: float(sum(there(rows, column))) / len(there(rows, column)) if there(rows, column) else None


def _decimal_avg(rows: list[Row]) -> Any:
    """AVG of decimal(8,2) is decimal(12,6)."""
    values = there(rows, "d")
    return (sum(values) / len(values)).quantize(Decimal("0.000001"), ROUND_HALF_UP) if values else None


def _best(function: Callable[..., Any], column: str) -> Callable[[list[Row]], Any]:
    return lambda rows: function(there(rows, column), default=None)


def _spread(function: Callable[[list[Any]], Any], column: str, least: int) -> Callable[[list[Row]], Any]:
    return lambda rows: float(function(there(rows, column))) if len(there(rows, column)) >= least else None


def _by(function: Callable[..., Any], value: str, key: str) -> Callable[[list[Row]], Any]:
    def meaning(rows: list[Row]) -> Any:
        known = [r for r in rows if r[key] is not None]
        return function(known, key=lambda r: (r[key], r["ts"], r["tie"]))[value] if known else None

    return meaning


def _pairs(rows: list[Row], of: tuple[str, str] = ("x", "d")) -> list[tuple[Decimal, Decimal]]:
    return [(Decimal(r[of[0]]), Decimal(r[of[1]])) for r in rows if r[of[0]] is not None and r[of[1]] is not None]


def _covariance(rows: list[Row], sample: bool, of: tuple[str, str] = ("x", "d")) -> Any:
    pairs = _pairs(rows, of)
    if len(pairs) < (2 if sample else 1):
        return None
    mx, my = (sum(p[k] for p in pairs) / len(pairs) for k in (0, 1))
    return float(sum((x - mx) * (y - my) for x, y in pairs) / (len(pairs) - sample))


def _correlation(rows: list[Row], of: tuple[str, str] = ("x", "d")) -> Any:
    pairs = _pairs(rows, of)
    if len(pairs) < 1 or any(len({p[k] for p in pairs}) == 1 for k in (0, 1)):
        return None
    return (
        _covariance(rows, False, of)
        / statistics.pstdev(p[0] for p in pairs).__float__()
        / float(statistics.pstdev(p[1] for p in pairs))
    )


def _percentile(share: float, column: str) -> Callable[[list[Row]], Any]:
    def meaning(rows: list[Row]) -> Any:
        values = sorted(there(rows, column))
        if not values:
            return None
        place = share * (len(values) - 1)
        low = int(place)
        high = min(low + 1, len(values) - 1)
        return float(values[low]) + (place - low) * float(values[high] - values[low])

    return meaning


def _either(row: Row) -> bool | None:
    """x > 1 OR d > 0: NULL is neither."""
    return _or(row["x"] > 1 if row["x"] is not None else None, row["d"] > 0 if row["d"] is not None else None)


def _positive(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["d"] is not None and row["d"] > 0]


ALL = (
    Aggregate("COUNT(*)", len, True),
    Aggregate("COUNT(x)", lambda rows: len(there(rows, "x")), True),
    Aggregate("COUNT_IF(x > 1)", lambda rows: sum(v > 1 for v in there(rows, "x")), True),
    Aggregate("COUNT(*) FILTER (WHERE d < 1)", lambda rows: sum(v < 1 for v in there(rows, "d")), True),
    Aggregate("SUM(x)", _sum("x"), True),
    Aggregate("SUM(d)", _sum("d"), True),
    Aggregate("SUM(b)", _sum("b"), True),
    Aggregate("SUM(f)", _sum("f"), False),
    Aggregate("SUM(x) FILTER (WHERE d > 0)", lambda rows: _sum("x")([r for r in rows if r["d"] is not None and r["d"] > 0]), True),
    Aggregate("SUM(x + 1)", lambda rows: sum(v + 1 for v in there(rows, "x")) if there(rows, "x") else None, True),
    Aggregate("AVG(x)", _avg("x"), True),
    Aggregate("AVG(d)", _decimal_avg, True),
    Aggregate("AVG(b)", _avg("b"), True),
    Aggregate("AVG(f)", _avg("f"), False),
    Aggregate("MIN(x)", _best(min, "x"), False),
    Aggregate("MAX(d)", _best(max, "d"), False),
    Aggregate("MAX(g)", _best(max, "g"), False),
    Aggregate("BOOL_AND(x > 0)", lambda rows: all(v > 0 for v in there(rows, "x")) if there(rows, "x") else None, False),
    Aggregate("BOOL_OR(x > 2)", lambda rows: any(v > 2 for v in there(rows, "x")) if there(rows, "x") else None, False),
    Aggregate("FIRST(x)", lambda rows: rows[0]["x"] if rows else None, False),
    Aggregate("LAST(d)", lambda rows: rows[-1]["d"] if rows else None, False),
    Aggregate("LAST(x) IGNORE NULLS", lambda rows: (there(rows, "x") or [None])[-1], False),
    Aggregate("FIRST(x IGNORE NULLS)", lambda rows: (there(rows, "x") or [None])[0], False),
    Aggregate("COUNT_IF(g LIKE ANY ('p%', 'q'))", lambda rows: sum(v in "pq" for v in there(rows, "g")), True),
    Aggregate("MAX(g) LIKE ANY ('q%')", lambda rows: max(there(rows, "g")) == "q" if there(rows, "g") else None, False),
    Aggregate("ARG_MAX(x, d)", _by(max, "x", "d"), False),
    Aggregate("MIN_BY(d, x)", _by(min, "d", "x"), False),
    Aggregate("VAR_POP(x)", _spread(statistics.pvariance, "x", 1), True),
    Aggregate("VARIANCE(d)", _spread(statistics.variance, "d", 2), True),
    Aggregate("STDDEV(x)", _spread(statistics.stdev, "x", 2), True),
    Aggregate("STDDEV_POP(d)", _spread(statistics.pstdev, "d", 1), True),
    Aggregate("STDDEV_SAMP(f)", _spread(statistics.stdev, "f", 2), False),
    Aggregate("VAR_POP(f + 1000000)", _spread(statistics.pvariance, "f", 1), False),
    Aggregate("VARIANCE(b)", _spread(statistics.variance, "b", 2), False),
    Aggregate("COVAR_SAMP(x, d)", lambda rows: _covariance(rows, True), True),
    Aggregate("COVAR_POP(x, d)", lambda rows: _covariance(rows, False), True),
    Aggregate("CORR(x, d)", _correlation, True),
    Aggregate("COVAR_SAMP(d, f)", lambda rows: _covariance(rows, True, ("d", "f")), False),
    Aggregate("CORR(f, x)", lambda rows: _correlation(rows, ("f", "x")), False),
    Aggregate("SUM(d * x - 1)", lambda rows: sum(p[0] * p[1] - 1 for p in _pairs(rows)) if _pairs(rows) else None, True),
    Aggregate("SUM(x * 1.25)", lambda rows: sum(there(rows, "x")) * Decimal("1.25") if there(rows, "x") else None, True),
    Aggregate("AVG(d * 2)", lambda rows: _decimal_avg([{**r, "d": r["d"] * 2} for r in rows if r["d"] is not None]), True),
    Aggregate("AVG(COALESCE(d, 1))", lambda rows: _decimal_avg([{**r, "d": Decimal(1) if r["d"] is None else r["d"]} for r in rows]), True),
    Aggregate("COUNT(DISTINCT x)", lambda rows: len(set(there(rows, "x"))), False),
    Aggregate("COUNT(DISTINCT x, g)", lambda rows: len({(r["x"], r["g"]) for r in rows if None not in (r["x"], r["g"])}), False),
    Aggregate("COUNT(DISTINCT x) FILTER (WHERE d > 0)", lambda rows: len({r["x"] for r in rows if r["x"] is not None and r["d"] is not None and r["d"] > 0}), False),
    Aggregate("MEDIAN(x)", _percentile(0.5, "x"), False),
    Aggregate("PERCENTILE(d, 0.25)", _percentile(0.25, "d"), False),
    Aggregate("SUM(x) / COUNT(*)", lambda rows: sum(there(rows, "x")) / len(rows) if there(rows, "x") else None, True),
    Aggregate("COALESCE(MAX(x), 0) - MIN(x)", lambda rows: max(there(rows, "x")) - min(there(rows, "x")) if there(rows, "x") else None, False),
)  # fmt: skip

#: OR in every place where another condition joins it.
EITHER = (
    Aggregate("COUNT(DISTINCT x) FILTER (WHERE (x > 1)OR(d > 0))", lambda rows: len({r["x"] for r in rows if _either(r)} - {None}), False),
    Aggregate("COUNT(DISTINCT x > 1 OR d > 0)", lambda rows: len({_either(r) for r in rows} - {None}), False),
    Aggregate("COUNT_IF((x > 1)or(d > 0)) FILTER (WHERE h < 2)", lambda rows: sum(bool(_either(r)) for r in rows if r["h"] < 2), True),
    Aggregate("LAST(x > 1\tOR\nd > 0) FILTER (WHERE (x > 1)/* */OR(d > 0)) IGNORE NULLS", lambda rows: True if any(_either(r) for r in rows) else None, False),
    Aggregate("FIRST(x > 1 OR d > 0) IGNORE NULLS", lambda rows: next((e for r in rows if (e := _either(r)) is not None), None), False),
    Aggregate("ARG_MAX(x, x > 1 OR d > 0)", lambda rows: (max(((e, r["ts"], r["tie"], r["x"]) for r in rows if (e := _either(r)) is not None), key=lambda k: k[:3], default=None) or [None])[-1], False),
)  # fmt: skip

#: FILTER in front of every way to split an aggregate.
FILTERED = (
    Aggregate("MAX(x) FILTER (WHERE d > 0)", lambda rows: _best(max, "x")(_positive(rows)), False),
    Aggregate("AVG(d) FILTER (WHERE d > 0)", lambda rows: _decimal_avg(_positive(rows)), True),
    Aggregate("LAST(x) FILTER (WHERE d > 0)", lambda rows: _positive(rows)[-1]["x"] if _positive(rows) else None, False),
    Aggregate("ARG_MIN(x, d) FILTER (WHERE d > 0 OR x > 1)", lambda rows: _by(min, "x", "d")([r for r in rows if r in _positive(rows) or (r["x"] or 0) > 1]), False),
    Aggregate("STDDEV_POP(x) FILTER (WHERE d > 0)", lambda rows: _spread(statistics.pstdev, "x", 1)(_positive(rows)), True),
    Aggregate("MEDIAN(x) FILTER (WHERE d > 0)", lambda rows: _percentile(0.5, "x")(_positive(rows)), False),
)  # fmt: skip


def random_query(rng: random.Random, aggregates: list[Aggregate]) -> WindowQuery:
    slide = rng.choice([1, 1, 1, 2, 3])
    window = rng.randint(1, 6)
    strategies = [None, "recompute", "merge", "merge"]
    if window > slide and any(a.exact for a in aggregates):
        strategies += ["subtract", "subtract", "subtract"]
    where = rng.choice(
        [
            ("", lambda row: True),
            ("h > 0", lambda row: row["h"] > 0),
            ("(x > 1)OR(d > 0)", lambda row: bool(_either(row))),
        ]
    )
    having = rng.choice(
        [
            ("", lambda rows: True),
            ("", lambda rows: True),
            ("COUNT(*) > 1", lambda rows: len(rows) > 1),
            ("(COUNT(*) > 2)OR(COUNT(*) < 2)", lambda rows: len(rows) != 2),
        ]
    )
    join = rng.choice(["", "", "JOIN", "LEFT JOIN"])
    grouped = rng.choice(["", "g", "g", "g, h", "known", "odd, g", *(["region", "region, h"] if join else [])])
    return WindowQuery(
        tuple(aggregates), grouped, where, having, window, slide, rng.choice(strategies),
        rng.random() < 0.25, join,
    )  # fmt: skip


def random_history(rng: random.Random, first: int, parts: int) -> dict[int, list[Row]]:
    """NULL groups and values, negative values, sums that become zero, parts without rows."""
    history: dict[int, list[Row]] = {}
    for part in range(first, first + parts):
        number = rng.choice([0, 1, 2, 4, 6])
        history[part] = [random_row(rng, part, k) for k in range(number)]
    return history


def random_row(rng: random.Random, part: int, tie: int) -> Row:
    x = None if rng.random() < 0.15 else rng.randint(-2, 3)
    d = None if rng.random() < 0.15 else Decimal(rng.randint(-6, 6)) / 4
    b = None if rng.random() < 0.15 else rng.choice([-(2**53) - 1, 2**53 + 1, 7, -7])
    f = None if rng.random() < 0.15 else rng.randint(-6, 6) / 2
    return {
        "part": part, "g": rng.choice(["p", "q", "r", None]), "h": rng.choice([0, 1, 2]), "ts": part * 60 + rng.randint(0, 3),
        "tie": part * 100 + tie, "x": x, "d": d, "b": b, "f": f,
    }  # fmt: skip
