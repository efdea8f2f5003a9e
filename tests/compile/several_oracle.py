"""What a query over several streams means, word for word: loops over the rows of the windows, NULL as in SQL."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import gcd
from typing import Any

Row = dict[str, Any]
#: stream -> part -> rows
History = dict[str, dict[int, list[Row]]]

#: Lengths of parts in seconds.
PARTS = {"a": 60, "b": 60, "c": 30}
#: A dimension: region of some keys.
NODES = {"p": "north", "q": "south"}
MEASURE = {"a": "x", "b": "y", "c": "z"}


@dataclass(frozen=True)
class Windowed:
    """A stream with a window of so many seconds, under the alias of its name."""

    stream: str
    seconds: int

    def sql(self) -> str:
        return f"{self.stream} [WINDOW {self.seconds} seconds]"

    def span(self, view: int, part: int) -> range:
        end = (part + 1) * view // PARTS[self.stream]
        return range(end - self.seconds // PARTS[self.stream], end)

    def rows(self, history: History, view: int, part: int) -> list[Row]:
        """With the part of the view in which each came (`pane`), and the one that looks at it (`now`)."""
        ratio = view // PARTS[self.stream]
        found = history[self.stream]
        return [
            {**row, "part": p, "pane": p // ratio, "now": part}
            for p in self.span(view, part)
            for row in found.get(p, [])
        ]


@dataclass(frozen=True)
class Form:
    """A query: its text, its streams, and the rows of its result from the rows of the windows."""

    sql: str
    streams: tuple[Windowed, ...]
    meaning: Callable[[list[list[Row]]], list[tuple[Any, ...]]]
    view: int = 60
    output: str = "snapshot"
    strategies: tuple[str, ...] = ("recompute",)
    partial: bool = False
    by_panes: bool = False

    def report(self, history: History, part: int) -> Counter[tuple[Any, ...]]:
        sides = [w.rows(history, self.view, part) for w in self.streams]
        if self.by_panes:  # what comes before the first whole pane counts for nothing
            sides = [
                [row for row in rows if row["part"] * PARTS[w.stream] >= self.first_pane(w, history)]
                for w, rows in zip(self.streams, sides, strict=True)
            ]
        rows = self.meaning(sides)
        more = (any(self.lacks(w, history, part) for w in self.streams),) if self.partial else ()
        return Counter((*row, *more) for row in rows)

    def first_pane(self, window: Windowed, history: History) -> int:
        """The second at which the first whole pane of a stream begins."""
        pane, first = gcd(window.seconds, self.view), min(history[window.stream]) * PARTS[window.stream]
        return -(-first // pane) * pane

    def lacks(self, window: Windowed, history: History, part: int) -> bool:
        """Whether its window begins before that."""
        return (part + 1) * self.view - window.seconds < self.first_pane(window, history)

    def whole(self, history: History) -> set[int]:
        """Parts whose windows are complete; pairs are shown from the first part on that all streams have."""
        found: set[int] | None = None
        if self.output == "pairs":
            ratios = [(history[w.stream], self.view // PARTS[w.stream]) for w in self.streams]
            first = max(min(parts) // ratio for parts, ratio in ratios)
            return set(range(first, min((max(parts) + 1) // ratio for parts, ratio in ratios)))
        if self.partial:
            first = max(self.first_pane(w, history) // self.view for w in self.streams)
            ends = [(max(history[w.stream]) + 1) * PARTS[w.stream] for w in self.streams]
            return set(range(first, min(ends) // self.view))
        for window in self.streams:
            parts = history[window.stream]
            low, high = min(parts), max(parts)
            here = {
                j for j in range(high + 2)
                if window.span(self.view, j)[0] >= low and window.span(self.view, j)[-1] <= high
            }  # fmt: skip
            found = here if found is None else found & here
        return found or set()


def equal(one: Any, other: Any) -> bool:
    return one is not None and other is not None and one == other


def over(value: Any, bound: int) -> bool:
    return value is not None and value > bound


@dataclass
class Draw:
    """Random forms and histories."""

    rng: random.Random
    number: int = 0
    forms: list[Callable[[], Form]] = field(default_factory=list)

    def window(self, stream: str, view: int = 60) -> Windowed:
        unit = view if self.rng.random() < 0.5 else max(PARTS[stream], 60)
        return Windowed(stream, unit * self.rng.randint(1, 4))

    def view(self) -> int:
        return self.rng.choice([60, 60, 60, 120])

    def conditions(self, *streams: str) -> tuple[str, Callable[..., bool]]:
        """On each side, or across."""
        kind = self.rng.choice(["", "", "left", "right", "across"])
        one, other = streams[0], streams[-1]
        if kind == "left":
            return f"{one}.{MEASURE[one]} > 1", lambda *rows: over(rows[0][MEASURE[one]], 1)
        if kind == "right":
            return f"{other}.{MEASURE[other]} > 0", lambda *rows: over(rows[-1][MEASURE[other]], 0)
        if kind == "across":
            m, n = MEASURE[one], MEASURE[other]
            return (
                f"{one}.{m} >= {other}.{n}",
                lambda *rows: rows[0][m] is not None and rows[-1][n] is not None and rows[0][m] >= rows[-1][n],
            )
        return "", lambda *rows: True

    # -- histories

    def history(self) -> History:
        found: History = {}
        for stream, length in PARTS.items():
            first = self.rng.choice([0, 0, 1]) * 60 // length
            parts = range(first, 8 * 60 // length)
            found[stream] = {p: [self.row(stream, p) for _ in range(self.rng.choice([0, 1, 1, 2]))] for p in parts}
        return found

    def row(self, stream: str, part: int) -> Row:
        self.number += 1
        measure = self.rng.choice([None, 0, 1, 2, 3, -1])
        key = self.rng.choice(["p", "p", "q", "r", None])
        seconds = part * PARTS[stream] + self.rng.choice([0, 0, PARTS[stream] // 2])  # rows of equal time
        return {"k": key, MEASURE[stream]: measure, "ts": seconds, "tie": self.number}

    def late(self, history: History, streams: Sequence[str] = tuple(PARTS)) -> tuple[History, str, int]:
        """One part with rows added, removed, doubled or emptied."""
        stream = self.rng.choice(streams)
        part = self.rng.choice(sorted(history[stream]))
        rows = list(history[stream][part])
        kind = self.rng.choice(["add", "add", "remove", "double", "empty"])
        if kind == "add" or not rows:
            rows.append(self.row(stream, part))
        elif kind == "remove":
            rows.pop()
        elif kind == "double":
            rows.append({**rows[0]})
        else:
            rows = []
        return {**history, stream: {**history[stream], part: rows}}, stream, part


# -- forms ---------------------------------------------------------------------------------------------


def inner(draw: Draw) -> Form:
    view = draw.view()
    names = draw.rng.choice([["a", "b"], ["a", "c"], ["b", "a"], ["a", "b", "c"]])
    streams = tuple(draw.window(name, view) for name in names)
    where, holds = draw.conditions(*names)
    joins = "".join(f" JOIN {w.sql()} ON {w.stream}.k = {names[0]}.k" for w in streams[1:])
    items = ", ".join(f"{n}.{MEASURE[n]}" for n in names)
    dimension = draw.rng.random() < 0.3
    joins += f" JOIN nodes n ON n.node = {names[0]}.k" if dimension else ""
    items += ", n.region" if dimension else ""
    sql = f"SELECT {names[0]}.k, {items} FROM {streams[0].sql()}{joins}" + (f" WHERE {where}" if where else "")

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        found = []
        for rows in joined(sides):
            if holds(*rows) and (not dimension or rows[0]["k"] in NODES):
                values = [row[MEASURE[n]] for row, n in zip(rows, names, strict=True)]
                found.append((rows[0]["k"], *values, *([NODES[rows[0]["k"]]] if dimension else [])))
        return found

    return Form(sql, streams, meaning, view, strategies=gridded(streams, view))


def gridded(streams: Sequence[Windowed], view: int) -> tuple[str, ...]:
    """Windows that are more than one whole part of the view can be kept as a grid."""
    whole = all(w.seconds % view == 0 and w.seconds > view for w in streams)
    return ("recompute", "grid") if whole else ("recompute",)


def joined(sides: list[list[Row]]) -> Iterator[tuple[Row, ...]]:
    return (rows for rows in product(*sides) if all(equal(row["k"], rows[0]["k"]) for row in rows))


def band(draw: Draw) -> Form:
    """A join without equality."""
    streams = (draw.window("a"), draw.window("b"))
    sql = f"SELECT a.x, b.y FROM {streams[0].sql()} JOIN {streams[1].sql()} ON a.x < b.y"
    return Form(sql, streams, lambda s: [
        (a["x"], b["y"]) for a, b in product(*s) if a["x"] is not None and b["y"] is not None and a["x"] < b["y"]
    ], strategies=gridded(streams, 60))  # fmt: skip


def left(draw: Draw) -> Form:
    view = draw.view()
    streams = (draw.window("a", view), draw.window("c", view))
    where, holds = draw.conditions("a")
    sql = f"SELECT a.k, a.x, c.z FROM {streams[0].sql()} LEFT JOIN {streams[1].sql()} ON c.k = a.k"
    sql += f" WHERE {where}" if where else ""

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        found = []
        for a in sides[0]:
            if holds(a):
                others = [c["z"] for c in sides[1] if equal(c["k"], a["k"])]
                found += [(a["k"], a["x"], z) for z in others or [None]]
        return found

    return Form(sql, streams, meaning, view)


def semi(draw: Draw) -> Form:
    """SEMI, ANTI, EXISTS, NOT EXISTS, IN."""
    view = draw.view()
    streams = (draw.window("a", view), draw.window("b", view))
    first, second = (w.sql() for w in streams)
    kind = draw.rng.choice(["SEMI", "ANTI", "EXISTS", "NOT EXISTS", "IN"])
    bound = draw.rng.choice([None, 1])
    more = f" AND b.y > {bound}" if bound is not None else ""
    if kind in ("SEMI", "ANTI"):
        sql = f"SELECT a.k, a.x FROM {first} LEFT {kind} JOIN {second} ON b.k = a.k{more}"
    elif kind == "IN":
        sql = f"SELECT a.k, a.x FROM {first} WHERE a.k IN (SELECT b.k FROM {second} WHERE TRUE{more})"
    else:
        sql = f"SELECT k, x FROM {first} WHERE {kind} (SELECT 1 FROM {second} WHERE b.k = a.k{more})"
    wanted = kind in ("SEMI", "EXISTS", "IN")

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        there = {b["k"] for b in sides[1] if b["k"] is not None and (bound is None or over(b["y"], bound))}
        return [(a["k"], a["x"]) for a in sides[0] if (a["k"] in there) == wanted]

    return Form(sql, streams, meaning, view)


def sets(draw: Draw) -> Form:
    view = draw.view()
    streams = (draw.window("a", view), draw.window("c", view))
    kind = draw.rng.choice(["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT"])
    where, holds = draw.conditions("a")
    sql = f"SELECT k, x AS v FROM {streams[0].sql()}" + (f" WHERE {where}" if where else "")
    sql += f" {kind} SELECT k, z FROM {streams[1].sql()}"

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        one = Counter((a["k"], a["x"]) for a in sides[0] if holds(a))
        other = Counter((c["k"], c["z"]) for c in sides[1])
        results: dict[str, Counter[Any]] = {
            "UNION ALL": one + other,
            "UNION": Counter({*one, *other}),
            "EXCEPT": Counter(set(one) - set(other)),
            "EXCEPT ALL": one - other,
            "INTERSECT": Counter(set(one) & set(other)),
        }
        return list(results[kind].elements())

    return Form(sql, streams, meaning, view)


def distinct(draw: Draw) -> Form:
    view = draw.view()
    streams = (draw.window("a", view),)
    where, holds = draw.conditions("a")
    sql = f"SELECT DISTINCT k, x % 2 AS odd FROM {streams[0].sql()}" + (f" WHERE {where}" if where else "")
    whole = streams[0].seconds % view == 0 and streams[0].seconds > view
    remainder = lambda x: None if x is None else int(abs(x) % 2) * (1 if x >= 0 else -1)  # noqa: E731
    return Form(
        sql,
        streams,
        lambda s: list({(a["k"], remainder(a["x"])) for a in s[0] if holds(a)}),
        view,
        strategies=("recompute", "last") if whole else ("recompute",),
    )


def grouped(draw: Draw) -> Form:
    """Aggregates over a join."""
    view = draw.view()
    names = draw.rng.choice([["a", "b"], ["a", "c"]])
    streams = tuple(draw.window(name, view) for name in names)
    one, other = (MEASURE[n] for n in names)
    where, holds = draw.conditions(*names)
    items = f"COUNT(*) AS n, SUM({names[0]}.{one}) AS s, MAX({names[1]}.{other}) AS m, COUNT({names[1]}.{other}) AS c"
    sql = f"SELECT {names[0]}.k, {items} FROM {streams[0].sql()} JOIN {streams[1].sql()} ON {names[1]}.k = {names[0]}.k"
    sql += (f" WHERE {where}" if where else "") + f" GROUP BY {names[0]}.k"
    having = draw.rng.random() < 0.3
    sql += " HAVING COUNT(*) > 1" if having else ""

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        groups: dict[Any, list[tuple[Row, ...]]] = {}
        for rows in joined(sides):
            if holds(*rows):
                groups.setdefault(rows[0]["k"], []).append(rows)
        found = []
        for key, members in groups.items():
            firsts = [r[0][one] for r in members if r[0][one] is not None]
            seconds = [r[1][other] for r in members if r[1][other] is not None]
            if not having or len(members) > 1:
                total = sum(firsts) if firsts else None
                found.append((key, len(members), total, max(seconds, default=None), len(seconds)))
        return found

    alone = ("factor",) if ">=" not in where else ()
    celled = ("cells",) if "grid" in gridded(streams, view) else ()
    return Form(sql, streams, meaning, view, strategies=("recompute", *celled, *alone))


def grouped_union(draw: Draw) -> Form:
    view = draw.view()
    streams = (draw.window("a", view), draw.window("b", view))
    inside = f"SELECT k, x AS v FROM {streams[0].sql()} UNION ALL SELECT k, y FROM {streams[1].sql()}"

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        groups: dict[Any, list[Any]] = {}
        for row in sides[0]:
            groups.setdefault(row["k"], []).append(row["x"])
        for row in sides[1]:
            groups.setdefault(row["k"], []).append(row["y"])
        sums = {k: [v for v in values if v is not None] for k, values in groups.items()}
        return [(k, len(groups[k]), sum(values) if values else None) for k, values in sums.items()]

    return Form(f"SELECT k, COUNT(*) AS n, SUM(v) AS s FROM ({inside}) u GROUP BY k", streams, meaning, view)


def pairs(draw: Draw) -> Form:
    """Each row of a join once: in the newest of its parts. Windows are whole parts of the view."""
    form = inner(draw)
    streams = tuple(Windowed(w.stream, -(-w.seconds // form.view) * form.view) for w in form.streams)
    sql = form.sql
    for old, new in zip(form.streams, streams, strict=True):
        sql = sql.replace(old.sql(), new.sql())

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        found = []
        for rows in product(*sides):
            if max(row["pane"] for row in rows) == rows[0]["now"]:
                found += form.meaning([[row] for row in rows])
        return found

    return Form(sql, streams, meaning, form.view, "pairs", ("grid",))


def top(draw: Draw) -> Form:
    """The largest groups of a window, or of a join: ties by the keys, NULL first."""
    view, k = draw.view(), draw.rng.randint(1, 3)
    end = f"GROUP BY a.k ORDER BY n DESC LIMIT {k}"
    if draw.rng.random() < 0.5:
        streams: tuple[Windowed, ...] = (draw.window("a", view),)
        sql = f"SELECT a.k, COUNT(*) AS n, SUM(x) AS s FROM {streams[0].sql()} {end}"
    else:
        streams = (draw.window("a", view), draw.window("b", view))
        sql = (
            f"SELECT a.k, COUNT(*) AS n, SUM(x) AS s FROM {streams[0].sql()} JOIN {streams[1].sql()} ON b.k = a.k {end}"
        )

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        groups: dict[Any, list[Any]] = {}
        for rows in ((row,) for row in sides[0]) if len(sides) == 1 else joined(sides):
            groups.setdefault(rows[0]["k"], []).append(rows[0]["x"])
        ordered = sorted(groups, key=lambda key: (-len(groups[key]), key is not None, key or ""))
        there = {key: [v for v in values if v is not None] for key, values in groups.items()}
        return [(key, len(groups[key]), sum(there[key]) if there[key] else None) for key in ordered[:k]]

    one = len(streams) == 1
    celled = ("cells",) if "grid" in gridded(streams, view) else ()
    return Form(sql, streams, meaning, view, strategies=("recompute", "merge") if one else ("recompute", *celled))


def frequent(draw: Draw) -> Form:
    """By its definition; that it tells the truth is asserted on the way."""
    view, k = draw.view(), draw.rng.randint(1, 3)
    streams = (draw.window("a", view),)
    where, holds = draw.rng.choice([
        ("", lambda x: True), (" WHERE x > 0", lambda x: over(x, 0)), (" WHERE x IS DISTINCT FROM 1", lambda x: x != 1)
    ])  # fmt: skip
    item, group = draw.rng.choice([("k", "k"), ("a.k AS key", "a.k"), ("k", "a.k"), ("a.k AS key", "1")])
    sql = f"SELECT {item}, FREQUENT({k}) FROM {streams[0].sql()}{where} GROUP BY {group}"
    pane = gcd(streams[0].seconds, view) // PARTS["a"]

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        panes: dict[int, Counter[Any]] = {}
        rows = [row for row in sides[0] if holds(row["x"])]
        for row in rows:
            panes.setdefault(row["part"] // pane, Counter())[row["k"]] += 1
        n: Counter[Any] = Counter()
        own: Counter[Any] = Counter()
        bounds = 0
        for counts in panes.values():
            order = sorted(counts, key=lambda key: (-counts[key], key is not None, key or ""))
            bound = counts[order[k]] if len(order) > k else 0
            bounds += bound
            for key in order[:k]:
                n[key] += counts[key]
                own[key] += bound
        most = {key: n[key] + bounds - own[key] for key in n}
        true = Counter(row["k"] for row in rows)
        found = []
        for key in (key for key in n if n[key] > bounds):
            certain = sum(m >= n[key] for m in most.values()) <= k
            assert n[key] <= true[key] <= most[key]
            assert not certain or sum(count > true[key] for count in true.values()) < k
            found.append((key, n[key], most[key], certain))
        return found

    return Form(sql, streams, meaning, view, strategies=("merge",), by_panes=True)


def last_rows(draw: Draw) -> Form:
    """The newest rows of each key, alone or joined."""
    view, count = draw.view(), draw.rng.randint(1, 3)
    streams = (draw.window("a", view), draw.window("b", view))[: draw.rng.randint(1, 2)]
    first = f"a [ROWS {count} PER k WITHIN {streams[0].seconds} seconds]"
    sql = f"SELECT a.k, a.x FROM {first}"
    sql += f" JOIN {streams[1].sql()} ON b.k = a.k" if len(streams) > 1 else ""

    def meaning(sides: list[list[Row]]) -> list[tuple[Any, ...]]:
        ordered = sorted(sides[0], key=lambda row: (row["ts"], row["tie"]), reverse=True)
        seen: Counter[Any] = Counter()
        kept = []
        for row in ordered:
            seen[row["k"]] += 1
            kept += [row] if seen[row["k"]] <= count else []
        rows = ((row,) for row in kept) if len(sides) == 1 else joined([kept, sides[1]])
        return [(found[0]["k"], found[0]["x"]) for found in rows]

    return Form(sql, streams, meaning, view)


FORMS = (
    inner, pairs, pairs, band, left, semi, semi, sets, sets, distinct, grouped, grouped, grouped_union, top, frequent, last_rows,
)  # fmt: skip
