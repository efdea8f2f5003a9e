"""Random queries that carry something: the queries of many parts, with more joins by keys and more shapes of keys."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.many_parts.queries import Writer, rows
from tests.relation.duck import Rows

_ON = [
    "{a}.k = {b}.k",
    "{a}.k <=> {b}.k",
    "{a}.k = {b}.v",
    "{a}.k = {b}.k AND {a}.v = {b}.v",
    "{a}.k = {b}.k AND {b}.v > 0",
]


@dataclass
class Keyed(Writer):
    def whole(self) -> str:
        """Shallow ones mostly: they carry more, and are read quicker."""
        if self.rng.random() < 0.6:
            return self.query(1)
        return super().whole()

    def select(self, depth: int) -> str:
        chance = self.rng.random()
        if chance < 0.4:
            return super().select(depth)
        if chance < 0.7:
            return self.joined(depth)
        if chance < 0.8:
            return self.ranked(depth)
        return self.rolled(depth)

    def joined(self, depth: int) -> str:
        """Two relations joined by keys, below a group or not."""
        a, b = "p", "q"
        kind = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
        on = self.rng.choice(_ON).format(a=a, b=b)
        text = f"{self.relation(depth, a)} {kind} {self.relation(depth, b)} ON {on}"
        hidden = "SEMI" in kind or "ANTI" in kind
        ks = ["p.k"] if hidden else ["p.k", "q.k", "COALESCE(p.k, q.k)", "COALESCE(q.k, p.k)", "COALESCE(p.k, q.k, -1)"]
        k, v = self.rng.choice(ks), self.rng.choice(["p.v"] if hidden else ["p.v", "q.v"])
        where = self.rng.choice(
            ["", "", " WHERE p.k = p.v", " WHERE p.v > 0"] + ([] if hidden else [" WHERE q.k <=> p.v"])
        )
        shape = self.rng.choice(["plain", "plain", "group", "group two", "distinct", "window"])
        if shape == "group":
            return f"SELECT {k} AS k, {self.aggregate(v)} AS v FROM {text}{where} GROUP BY {k}"
        if shape == "group two":
            return f"SELECT {k} AS k, {v} AS v FROM {text}{where} GROUP BY {k}, {v}"
        if shape == "window":
            return f"SELECT {k} AS k, SUM({v}) OVER (PARTITION BY {k}) AS v FROM {text}{where}"
        return f"SELECT {'DISTINCT ' if shape == 'distinct' else ''}{k} AS k, {v} AS v FROM {text}{where}"

    def ranked(self, depth: int) -> str:
        one = self.rng.choice(["PARTITION BY a.k", "PARTITION BY a.k, a.v", "PARTITION BY a.v", ""])
        other = self.rng.choice(["PARTITION BY a.k", "PARTITION BY a.v"])
        inner = f"SELECT a.k AS k, COUNT(*) OVER ({one}) + COUNT(*) OVER ({other}) AS v, RANK() OVER ({other} ORDER BY a.k, a.v) AS r"
        where = self.rng.choice([" WHERE t.r = 1", ""])
        return f"SELECT t.k AS k, t.v AS v FROM ({inner} FROM {self.relation(depth, 'a')}) AS t{where}"

    def rolled(self, depth: int) -> str:
        """Aggregates over aggregates, over sets and with HAVING."""
        first, second = self.relation(depth, "a"), self.relation(depth, "b")
        return self.rng.choice(
            [
                f"SELECT a.k AS k, a.v AS v FROM {first} {self.rng.choice(['UNION ALL', 'EXCEPT', 'EXCEPT ALL', 'UNION'])} SELECT b.k AS k, b.v AS v FROM {second}",
                f"SELECT t.k AS k, MAX(t.n) AS v FROM (SELECT a.k, a.v, COUNT(*) AS n FROM {first} GROUP BY a.k, a.v) AS t GROUP BY t.k",
                f"SELECT a.k AS k, COUNT(*) AS v FROM {first} GROUP BY ROLLUP (a.k)",
                f"SELECT a.k AS k, SUM(a.v) AS v FROM {first} WHERE a.v IN (SELECT b.k FROM {second}) GROUP BY a.k HAVING COUNT(*) > 1",
                f"SELECT COALESCE(a.k, 0) AS k, b.v AS v FROM {first}, {second} WHERE a.k = b.k AND b.v > 0",
            ]
        )


def query(seed: int) -> tuple[str, Rows]:
    rng = random.Random(f"relation {seed}")
    if seed % 8 == 0:
        return _linear(Keyed(rng)), rows(rng)
    while True:
        text = Keyed(rng).whole()
        if "[" in text and len(text) < 1500:
            return text, rows(rng)


def with_keys(data: Rows) -> Rows:
    """k is the key of a part."""
    found: Rows = {}
    for name, listed in data.items():
        by_key = {(row[0], row[2:]): row for row in listed}
        found[name] = list(by_key.values())
    return found


def changed(data: Rows, read: set[str], rng: random.Random) -> Rows:
    """Late rows, corrections and retractions, in one or two of the tables that are read."""
    new = {name: list(listed) for name, listed in data.items()}
    for name in rng.sample(sorted(read), min(len(read), rng.choice([1, 1, 2]))):
        listed = new[name]
        for _ in range(rng.choice([1, 1, 2])):
            if listed and rng.random() < 0.5:
                listed.pop(rng.randrange(len(listed)))
            if rng.random() < 0.7:
                row = (rng.choice([0, 1, 2, 3, 4, None]), rng.choice([-1, 0, 1, 2, 7, None]))
                listed.append(row if name == "d" else (*row, rng.choice([-1, 0, 0, 0, 1])))
    return new


def _linear(writer: Keyed) -> str:
    """Changes of these are merged: joins, filters and unions, with or without one GROUP BY that shows its partials."""
    rng, on = writer.rng, writer.rng.choice(["p.k = q.k", "p.k <=> q.k AND p.v > 0", "p.v = q.k"])
    tables = [f"{rng.choice('mn')}[{rng.choice(['j', 'j-1..j', 'j-1'])}]", rng.choice(["m[j]", "d", "n[j-1..j]"])]
    text = f"SELECT p.k AS k, q.v AS v FROM {tables[0]} p JOIN {tables[1]} q ON {on}"
    if rng.random() < 0.4:
        text += f" UNION ALL SELECT r.k, r.v FROM {tables[0]} r WHERE r.v > 0"
    if rng.random() < 0.5:
        return text
    return f"SELECT t.k AS k, COUNT(*) AS n, SUM(t.v) AS s, COUNT(t.v) AS c FROM ({text}) AS t GROUP BY t.k"
