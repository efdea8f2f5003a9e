"""Small views, each as YAML and as plain Python that says what its parts hold. Nothing of the product is used.

Sources `m` and `n`: one part a minute, columns t (second within the part, as a time), g (may be NULL), x (whole
number, may be NULL), u (orders rows). Dimension `d`: g, name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Get = Callable[[str, int, int], list[Row]]
Needs = Callable[[int], list[tuple[str, int, int]]]
KEYS = ("keys",)

SOURCES = """
source: m
part: 1 minute
time: {column: t, tie: u}
columns: {t: timestamp, u: bigint, g: string, x: bigint}
files: landing/m/*.csv
---
source: n
part: 1 minute
time: {column: t, tie: u}
columns: {t: timestamp, u: bigint, g: string, x: bigint}
files: landing/n/*.csv
---
dimension: d
columns: {g: string, name: string}
files: landing/d.csv
"""


@dataclass(frozen=True)
class Model:
    """One view. `rows(j, get, first)`: what part j holds; `needs(j)`: other parts that must exist before."""

    name: str
    yaml: str
    needs: Needs
    rows: Callable[[int, Get, bool], list[Row]]
    itself: bool = False  # reads its part j-1
    rolling: bool = False  # holds its newest part alone
    repairs: tuple[str, ...] = ()  # what a late row in `m` can be repaired by


def groups(rows: list[Row], key: str = "g") -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def add(values: list[Any]) -> Any:
    there = [v for v in values if v is not None]
    return sum(there) if there else None


def top(values: list[Any]) -> Any:
    return max((v for v in values if v is not None), default=None)


def xs(rows: list[Row]) -> list[Any]:
    return [row["x"] for row in rows]


def total(k: int) -> list[Model]:
    """A running total, and a reader of it."""

    def rows(j: int, get: Get, first: bool) -> list[Row]:
        new = {g: (add(xs(r)) or 0) * k for g, r in groups(get("m", j, j)).items()}
        old = {} if first else {r["g"]: r["x"] for r in get("total", j - 1, j - 1)}
        return [{"g": g, "x": old.get(g, 0) + new.get(g, 0)} for g in {*old, *new}]

    text = f"""
view: total
part: 1 minute
initialize: SELECT g, COALESCE(SUM(x), 0) * {k} AS x FROM m[i] GROUP BY g
update: |
  SELECT COALESCE(n.g, p.g) AS g, COALESCE(p.x, 0) + COALESCE(n.x, 0) AS x
  FROM total[j-1] p
  FULL JOIN (SELECT g, COALESCE(SUM(x), 0) * {k} AS x FROM m[j] GROUP BY g) n ON n.g <=> p.g
"""

    def large(j: int, get: Get, first: bool) -> list[Row]:
        return [{"g": r["g"]} for r in get("total", j, j) if r["x"] > 6]

    reader = "\nview: large\npart: 1 minute\nupdate: SELECT g FROM total[j] WHERE x > 6\n"
    return [
        Model("total", text, lambda j: [("m", j, j)], rows, itself=True, repairs=KEYS),
        Model("large", reader, lambda j: [("total", j, j)], large, repairs=KEYS),
    ]


def window(k: int) -> list[Model]:
    """A window by references."""

    def rows(j: int, get: Get, first: bool) -> list[Row]:
        members = groups(get("m", j - 1, j)).items()
        return [{"g": g, "top": top(xs(r)), "n": len(r) + k} for g, r in members]

    text = f"""
view: recent
part: 1 minute
update: SELECT g, MAX(x) AS top, COUNT(*) + {k} AS n FROM m[j-1..j] GROUP BY g
"""
    return [Model("recent", text, lambda j: [("m", j - 1, j)], rows, repairs=KEYS)]


def diamond(k: int) -> list[Model]:
    def left(j: int, get: Get, first: bool) -> list[Row]:
        return [{"g": g, "s": add(xs(r))} for g, r in groups(get("m", j, j)).items()]

    def right(j: int, get: Get, first: bool) -> list[Row]:
        return [{"g": g, "b": (top(xs(r)) or 0) > k} for g, r in groups(get("m", j, j)).items()]

    def both(j: int, get: Get, first: bool) -> list[Row]:
        flags = {r["g"]: r["b"] for r in get("flags", j, j)}
        return [{"g": r["g"], "s": r["s"], "b": flags[r["g"]]} for r in get("sums", j, j)]

    def view(name: str, sql: str) -> str:
        return f"\nview: {name}\npart: 1 minute\nupdate: |\n  {sql}\n"

    own = lambda j: [("m", j, j)]  # noqa: E731
    return [
        Model("sums", view("sums", "SELECT g, SUM(x) AS s FROM m[j] GROUP BY g"), own, left, repairs=KEYS),
        Model(
            "flags",
            view("flags", f"SELECT g, COALESCE(MAX(x), 0) > {k} AS b FROM m[j] GROUP BY g"),
            own,
            right,
            repairs=KEYS,
        ),
        Model(
            "both",
            view("both", "SELECT s.g, s.s, f.b FROM sums[j] s JOIN flags[j] f ON f.g <=> s.g"),
            lambda j: [("sums", j, j), ("flags", j, j)],
            both,
            repairs=KEYS,
        ),
    ]


def lengths(k: int) -> list[Model]:
    """Three minutes make one part, and each minute reads the coarse part that it lies in."""

    def coarse(j: int, get: Get, first: bool) -> list[Row]:
        rows = get("m", 3 * j, 3 * j + 2)
        return [{"s": (add(xs(rows)) or 0) * k, "n": len(rows)}]

    def fine(j: int, get: Get, first: bool) -> list[Row]:
        (whole,) = get("threes", j // 3, j // 3)
        return [{"g": r["g"], "share": r["x"] is not None and 2 * r["x"] * k > whole["s"]} for r in get("m", j, j)]

    texts = [
        f"\nview: threes\npart: 3 minutes\nupdate: "
        f"SELECT COALESCE(SUM(x), 0) * {k} AS s, COUNT(*) AS n FROM m[3*j..3*j+2]\n",
        f"\nview: shares\npart: 1 minute\nupdate: |\n  SELECT m.g, COALESCE(2 * m.x * {k} > w.s, false) AS share\n"
        "  FROM m[j] CROSS JOIN threes[j/3] w\n",
    ]
    return [
        Model("threes", texts[0], lambda j: [("m", 3 * j, 3 * j + 2)], coarse),
        Model("shares", texts[1], lambda j: [("m", j, j), ("threes", j // 3, j // 3)], fine),
    ]


def band(k: int) -> list[Model]:
    """Two streams, joined where their values lie close together."""

    def rows(j: int, get: Get, first: bool) -> list[Row]:
        return [
            {"g": a["g"], "x": a["x"], "y": b["x"]}
            for a in get("m", j, j)
            for b in get("n", j - 1, j)
            if None not in (a["g"], a["x"], b["x"]) and a["g"] == b["g"] and abs(a["x"] - b["x"]) <= k
        ]

    text = f"""
view: near
part: 1 minute
update: |
  SELECT a.g, a.x, b.x AS y FROM m[j] a JOIN n[j-1..j] b ON a.g = b.g AND abs(a.x - b.x) <= {k}
"""
    return [Model("near", text, lambda j: [("m", j, j), ("n", j - 1, j)], rows, repairs=KEYS)]


def dimension(k: int) -> list[Model]:
    def rows(j: int, get: Get, first: bool) -> list[Row]:
        names = {r["g"]: r["name"] for r in get("d", 0, 0)}
        known = [{**r, "name": names[r["g"]]} for r in get("m", j, j) if r["g"] in names]
        return [{"name": name, "n": len(r) * k} for name, r in groups(known, "name").items()]

    text = f"""
view: named
part: 1 minute
update: SELECT d.name, COUNT(*) * {k} AS n FROM m[j] JOIN d ON d.g = m.g GROUP BY d.name
"""
    return [Model("named", text, lambda j: [("m", j, j), ("d", 0, 0)], rows)]


def newest(k: int) -> list[Model]:
    """Several rows of a group in one part: the last k of them."""

    def rows(j: int, get: Get, first: bool) -> list[Row]:
        members = groups(get("m", j, j)).items()
        return [{"g": g, "x": r["x"]} for g, rs in members for r in sorted(rs, key=lambda r: -r["u"])[:k]]

    text = f"""
view: newest
part: 1 minute
update: |
  SELECT g, x FROM (SELECT g, x, row_number() OVER (PARTITION BY g ORDER BY u DESC) AS place FROM m[j])
  WHERE place <= {k}
"""
    return [Model("newest", text, lambda j: [("m", j, j)], rows, repairs=KEYS)]


def sliding(k: int) -> list[Model]:
    """Translated: a window that Partwise keeps by helpers, by the ways that k says, or as it has settled itself. Beside it
    a wider one, which mostly reads the same panes."""

    def rows(j: int, get: Get, first: bool) -> list[Row]:
        members = groups(get("m", j - 2, j)).items()
        return [{"g": g, "s": add(xs(r)), "n": len(r)} for g, r in members if len(r) > k]

    def wider(j: int, get: Get, first: bool) -> list[Row]:
        members = groups(get("m", j - 3, j)).items()
        return [{"g": g, "n": len(r), "s": add(xs(r))} for g, r in members]

    strategy = ("subtract", "merge", "auto")[k % 3]
    text = f"""
view: sliding
part: 1 minute
strategy: {strategy}
query: SELECT g, SUM(x) AS s, COUNT(*) AS n FROM m [WINDOW 3 minutes] GROUP BY g HAVING COUNT(*) > {k}
"""
    beside = f"""
view: wider
part: 1 minute
share: {str(k % 4 != 3).lower()}
strategy: {strategy}
query: SELECT q.g, COUNT(*) AS n, SUM(q.x) AS s FROM m [WINDOW 4 minutes] q GROUP BY q.g
"""
    return [
        Model("sliding", text, lambda j: [("m", j - 2, j)], rows, repairs=KEYS),
        Model("wider", beside, lambda j: [("m", j - 3, j)], wider, repairs=KEYS),
    ]


def pattern(k: int) -> list[Model]:
    """Translated: runs that rise. Brute force over all runs that end at the newest row of a group."""

    def rises(run: list[Row]) -> bool:
        values = xs(run)
        above = len(run) >= 2 and values[0] is not None and values[0] > -k
        return above and all(a is not None and b is not None and b > a for a, b in itertools.pairwise(values))

    def rows(j: int, get: Get, first: bool) -> list[Row]:
        shown = []
        history = {p: groups(get("m", p, p)) for p in range(get("start", 0, 0)[0]["p"], j + 1)}
        for g in history[j]:
            run: list[Row] = []
            for p in range(j, min(history) - 1, -1):
                if g not in history[p]:
                    break
                run = sorted(history[p][g], key=lambda r: (r["t"], r["u"])) + run
            for start in range(len(run)):
                if rises(run[start:]):
                    shown.append({"g": g, "n": len(run) - start, "s": add(xs(run[start + 1 :]))})
                    break
        return shown

    text = f"""
view: rising
part: 1 minute
query: |
  SELECT g, COUNT(*) AS n, SUM(b.x) AS s FROM m PATTERN [a, b+]
  WHERE a.x > {-k} AND b.x > a.x AND b.x > PREV(b.x) GROUP BY g
"""
    return [Model("rising", text, lambda j: [("m", j, j)], rows, itself=True)]


def matched(k: int) -> list[Model]:
    """Three inputs, of which two are kept joined."""

    def rows(j: int, get: Get, first: bool) -> list[Row]:
        found: dict[tuple[str, str], list[Any]] = {}
        for a, b, d in itertools.product(get("m", j, j), get("n", j, j), get("d", 0, 0)):
            if a["g"] is not None and a["g"] == b["g"] == d["g"] and b["x"] is not None and b["x"] >= 0:
                found.setdefault((a["g"], d["name"]), []).append(a["x"])
        return [
            {
                "g": g,
                "name": name,
                "s": add(values),
                "c": len([v for v in values if v is not None]),
                "n": len(values) + k,
            }
            for (g, name), values in found.items()
        ]

    text = f"""
view: matched
part: 1 minute
state: {{join: [b, d]}}
update: |
  SELECT a.g, name, SUM(a.x) AS s, COUNT(a.x) AS c, COUNT(*) + {k} AS n
  FROM m[j] a JOIN n[j] b ON a.g = b.g JOIN d ON d.g = b.g WHERE b.x >= 0 GROUP BY a.g, name
"""
    return [Model("matched", text, lambda j: [("m", j, j), ("n", j, j), ("d", 0, 0)], rows, repairs=KEYS)]


def counted(k: int) -> list[Model]:
    """Groups of which everything is shown that merging needs, by a name that rows themselves do not have."""

    def rows(j: int, get: Get, first: bool) -> list[Row]:
        names = {r["g"]: r["name"] for r in get("d", 0, 0)}
        known = [{**r, "name": names[r["g"]]} for r in get("m", j - 1, j) if r["g"] in names and r["u"] % (k + 1)]
        return [
            {"name": name, "n": len(r), "s": add(xs(r)), "c": sum(x is not None for x in xs(r)), "top": top(xs(r))}
            for name, r in groups(known, "name").items()
        ]

    text = f"""
view: counted
part: 1 minute
update: |
  SELECT d.name, COUNT(*) AS n, SUM(m.x) AS s, COUNT(m.x) AS c, MAX(m.x) AS top
  FROM m[j-1..j] m JOIN d ON d.g = m.g WHERE m.u % {k + 1} <> 0 GROUP BY d.name
"""
    return [Model("counted", text, lambda j: [("m", j - 1, j), ("d", 0, 0)], rows, repairs=("merge",))]


def rolling(k: int) -> list[Model]:
    """What two windows give now: their join, and groups of one of them."""

    def near(j: int, get: Get, first: bool) -> list[Row]:
        others = get("n", j - 1, j)
        return [
            {"g": a["g"], "x": None if a["x"] is None else a["x"] * k, "y": b["x"]}
            for a in get("m", j - 2, j)
            for b in others
            if a["g"] is not None and a["g"] == b["g"]
        ]

    def most(j: int, get: Get, first: bool) -> list[Row]:
        return [{"g": g, "n": len(r), "x": top(xs(r))} for g, r in groups(get("m", j - 2, j)).items()]

    both = f"""
view: near
part: 1 minute
output: rolling
query: |
  SELECT m.g, m.x * {k} AS x, n.x AS y FROM m [WINDOW 3 minutes] JOIN n [WINDOW 2 minutes] ON n.g = m.g
"""
    one = """
view: most
part: 1 minute
output: rolling
query: SELECT g, COUNT(*) AS n, MAX(x) AS x FROM m [WINDOW 3 minutes] GROUP BY g
"""
    return [
        Model("near", both, lambda j: [("m", j - 2, j), ("n", j - 1, j)], near, rolling=True),
        Model("most", one, lambda j: [("m", j - 2, j)], most, rolling=True),
    ]


TEMPLATES = [total, window, diamond, lengths, band, dimension, newest, sliding, pattern, matched, counted, rolling]
