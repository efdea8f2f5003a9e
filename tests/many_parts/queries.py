"""Random queries over parts, and random rows. Every relation has the columns k and v, so that anything fits anywhere.

Where a query picks rows, it orders them by all columns: rows that are equal may be exchanged.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

PARTS = range(-9, 16)  # what the tables may have
JS = range(-2, 5)  # what is computed
REFERENCES = ["j", "j", "j", "j-1", "j-2..j", "j-1..j+1", "2*j..2*j+1", "3*j..3*j+1", "j/2", "(j+1)/3", "2*j-3..2*j+2"]

#: Kinds of queries that chance makes too seldom.
HARD = [
    "SELECT b.k AS k, c.v AS v FROM d a RIGHT JOIN d b ON a.k = b.k AND a.v > 2 LEFT JOIN m[j] c ON c.k = b.k",
    "SELECT b.k AS k, c.v AS v FROM d a FULL JOIN d b ON a.k = b.k + 1 LEFT JOIN m[j-1..j] c ON c.k = b.k",
    "WITH w AS (SELECT k, v FROM m[j]) SELECT a.k, b.v FROM w a JOIN w b ON a.k = b.k",
    "WITH w AS (SELECT k, v FROM m[j]) SELECT a.k, b.v FROM w a, (SELECT w.k, w.v FROM w WHERE w.v > 0) b",
]
SPARK_ONLY = [
    "SELECT k, v, COUNT(*) AS n, grouping_id() AS g FROM m[j-1..j] GROUP BY ROLLUP(k, v)",
    "SELECT k, v, COUNT(*) AS n, GROUPING(k) AS g FROM m[j] GROUP BY CUBE(k, v)",
    "SELECT k, COUNT(*) AS n FROM m[j] GROUP BY GROUPING SETS ((k), ())",
    "SELECT COUNT(*) AS n FROM m[j] GROUP BY GROUPING SETS (())",
    "SELECT k, x FROM m[j-1..j] LATERAL VIEW explode(array(v, v + 1)) t AS x",
    "SELECT a.*, b.v AS w FROM m[j] a NATURAL JOIN m[j-1] b",
    "SELECT k, max(struct(v, k)).v AS top, array_sort(collect_list(v)) AS all FROM m[j-2..j] GROUP BY k",
    "SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY v) AS before FROM m[j-1..j] a WHERE a.k <=> a.k",
    "SELECT k, aggregate(array_sort(collect_list(v)), 0L, (a, x) -> a + coalesce(x, 0)) AS s FROM m[j] GROUP BY k",
    "SELECT k, v FROM m[j] INTERSECT ALL SELECT k, v FROM m[j-1]",
    "SELECT a.k, b.x FROM (VALUES (0, 'zero'), (1, 'one')) AS b(k, x) LEFT JOIN m[j] a ON a.k = b.k",
    "SELECT k + (SELECT MIN(v) FROM m[j-1]) AS x, COUNT(*) AS n FROM m[j] GROUP BY k + (SELECT MIN(v) FROM m[j-1])",
    "SELECT k, SUM(v + (SELECT MIN(v) FROM m[j-1])) AS n FROM m[j] GROUP BY k HAVING k IN (SELECT v FROM m[j-1])",
    "SELECT k FROM m[j] WHERE v > (SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM m[j] GROUP BY ROLLUP(k)) t)",
]
#: Spark has an answer for each part and refuses the lifted query, so it must not be lifted.
SPARK_REFUSES = [
    "SELECT k, (SELECT MAX(v) FROM m[j-1]) AS top, COUNT(*) AS n FROM m[j] GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM m[j] GROUP BY k ORDER BY (SELECT MAX(v) FROM m[j-1])",
    "SELECT k FROM m[j] WHERE v IN (SELECT COUNT(*) FROM m[j] GROUP BY ROLLUP(k))",
    "SELECT a.k, b.n FROM m[j] a, LATERAL (SELECT k, COUNT(*) AS n FROM m[j-1] GROUP BY CUBE(k)) b",
    "SELECT k, COUNT(*) AS n FROM m[j] GROUP BY GROUPING SETS ((k), ()) ORDER BY k, n LIMIT 2",
]


def rows(rng: random.Random) -> dict[str, list[tuple[int | None, ...]]]:
    """`table -> (k, v, part)`, dimensions without part: NULLs, duplicates and empty parts."""
    tables: dict[str, list[tuple[int | None, ...]]] = {}
    for name in ("m", "n"):
        filled = [p for p in PARTS if rng.random() < 0.7]
        tables[name] = [(_key(rng), _value(rng), p) for p in filled for _ in range(rng.choice([1, 1, 2, 3]))]
    tables["d"] = [(_key(rng), _value(rng)) for _ in range(4)]
    return tables


def _key(rng: random.Random) -> int | None:
    return rng.choice([0, 1, 1, 2, 2, 3, None])


def _value(rng: random.Random) -> int | None:
    return rng.choice([-2, -1, 0, 1, 2, 3, 5, None])


@dataclass
class Writer:
    """Writes one query."""

    rng: random.Random
    named: list[str] = field(default_factory=list)
    count: int = 0

    def alias(self) -> str:
        """Few names: inner queries shadow the names of outer ones."""
        self.count += 1
        return self.rng.choice("abc") + (str(self.count) if self.rng.random() < 0.7 else "")

    def whole(self) -> str:
        """A query with or without WITH."""
        if self.rng.random() < 0.2:
            first = self.query(1)
            columns = self.rng.choice(["", " (k, v)"])
            self.named.append("w")
            return f"WITH w{columns} AS ({first}) {self.query(2)}"
        return self.query(2)

    def query(self, depth: int) -> str:
        if depth and self.rng.random() < 0.15:
            kind = self.rng.choice(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
            text = f"{self.select(depth - 1)} {kind} {self.select(depth - 1)}"
            return f"{text} ORDER BY 1, 2 LIMIT 2" if self.rng.random() < 0.2 else text
        return self.select(depth)

    def select(self, depth: int) -> str:
        text, aliases = self.sources(depth)
        where = self.where(depth, aliases)
        k, v = f"{self.rng.choice(aliases)}.k", f"{self.rng.choice(aliases)}.v"
        kind = self.rng.choice(
            ["plain", "plain", "group", "group", "whole", "window", "limit", "distinct", "star", "more"]
        )
        if kind == "group":
            having = self.rng.choice(["", "", " HAVING COUNT(*) > 1", f" HAVING MAX({v}) > 0"])
            by = self.rng.choice([k, "1", "ALL"]) if self.rng.random() < 0.8 else f"{k}, {v}"
            return f"SELECT {k} AS k, {self.aggregate(v)} AS v FROM {text}{where} GROUP BY {by}{having}"
        if kind == "whole":
            having = self.rng.choice(["", "", "", " HAVING COUNT(*) > 1"])
            return f"SELECT {self.aggregate(k)} AS k, {self.aggregate(v)} AS v FROM {text}{where}{having}"
        if kind == "window":
            return self.windowed(text, where, k, v)
        if kind == "limit":
            limit = self.rng.choice(["LIMIT 1", "LIMIT 2", "LIMIT 2 OFFSET 1"])
            return f"SELECT * FROM (SELECT {k} AS k, {v} AS v FROM {text}{where} ORDER BY 1, 2 {limit}) AS limited"
        if kind == "star" and len(aliases) == 1:
            return f"SELECT * FROM {text}{where}"
        if kind == "star":
            return f"SELECT {aliases[0]}.* FROM {text}{where}"
        if kind == "more" and depth:
            scalar = f"(SELECT {self.aggregate('x.v')} FROM {self.table()} x WHERE {self.row('x')})"
            return f"SELECT {k} AS k, {scalar} AS v FROM {text}{where}"
        distinct = "DISTINCT " if kind == "distinct" else ""
        value = self.rng.choice([v, f"{v} + 1", f"COALESCE({v}, {k})", f"CASE WHEN {v} > 0 THEN {k} END"])
        return f"SELECT {distinct}{k} AS k, {value} AS v FROM {text}{where}"

    def aggregate(self, value: str) -> str:
        return self.rng.choice(
            [
                f"SUM({value})",
                "COUNT(*)",
                f"COUNT({value})",
                f"MIN({value})",
                f"MAX({value})",
                f"COUNT(DISTINCT {value})",
                f"COUNT(*) FILTER (WHERE {value} > 0)",
                f"SUM({value}) + COUNT(*)",
            ]
        )

    def windowed(self, text: str, where: str, k: str, v: str) -> str:
        over = self.rng.choice([f"PARTITION BY {k} ORDER BY {v}", f"ORDER BY {k}, {v}", f"PARTITION BY {k}", ""])
        call = self.rng.choice([f"SUM({v})", "COUNT(*)", f"MAX({v})"])
        if "ORDER" in over and self.rng.random() < 0.5:
            call = self.rng.choice(["RANK()", "DENSE_RANK()", f"MIN({v})"])
        if self.rng.random() < 0.3:
            return f"SELECT {k} AS k, {call} OVER win AS v FROM {text}{where} WINDOW win AS ({over})"
        return f"SELECT {k} AS k, {call} OVER ({over}) AS v FROM {text}{where}"

    # -- FROM

    def sources(self, depth: int) -> tuple[str, list[str]]:
        """At most three relations; semi and anti joined ones cannot be named afterwards."""
        first = self.alias()
        text, aliases = self.relation(depth, first), [first]
        for _ in range(self.rng.choice([0, 0, 0, 1, 1, 2])):
            alias = self.alias()
            if alias in aliases:
                continue
            kind = self.rng.choice(
                [
                    "JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL JOIN",
                    "CROSS JOIN",
                    ",",
                    "LEFT SEMI JOIN",
                    "LEFT ANTI JOIN",
                    "USING",
                    "LATERAL",
                ]
            )
            if kind == "LATERAL":
                inner = f"SELECT x.k, x.v FROM {self.table()} x WHERE x.k = {aliases[-1]}.k"
                text += f" {self.rng.choice(['CROSS JOIN', ','])} LATERAL ({inner}) {alias}"
                aliases.append(alias)
            elif kind == "USING" and len(aliases) == 1:
                side = self.rng.choice(["", "LEFT ", "RIGHT ", "FULL "])
                text += f" {side}JOIN {self.relation(depth, alias)} USING (k)"
                aliases.append(alias)
            elif kind in ("CROSS JOIN", ","):
                text += f"{' ' if kind != ',' else ''}{kind} {self.relation(depth, alias)}"
                aliases.append(alias)
            elif kind != "USING":
                on = f"{aliases[-1]}.k = {alias}.k" + self.rng.choice(
                    ["", f" AND {alias}.v > 0", f" AND {aliases[0]}.v < 3"]
                )
                text += f" {kind} {self.relation(depth, alias)} ON {on}"
                if "SEMI" not in kind and "ANTI" not in kind:
                    aliases.append(alias)
        return text, aliases

    def relation(self, depth: int, alias: str) -> str:
        if depth and self.rng.random() < 0.25:
            columns = self.rng.choice(["", "(k, v)"])
            return f"({self.query(depth - 1)}) AS {alias}{columns}"
        if self.named and self.rng.random() < 0.4:
            return f"{self.rng.choice(self.named)} AS {alias}"
        return f"{self.table()} {alias}"

    def table(self) -> str:
        if self.rng.random() < 0.25:
            return "d"
        return f"{self.rng.choice('mmn')}[{self.rng.choice(REFERENCES)}]"

    # -- WHERE

    def row(self, alias: str) -> str:
        return self.rng.choice(
            [
                f"{alias}.v > {self.rng.randint(-2, 3)}",
                f"{alias}.k IS NOT NULL",
                f"{alias}.v <= 2",
                f"{alias}.k IN (0, 1)",
            ]
        )

    def where(self, depth: int, aliases: list[str]) -> str:
        if self.rng.random() < 0.4:
            return ""
        alias = self.rng.choice(aliases)
        conditions = [self.row(alias)]
        if depth and self.rng.random() < 0.7:
            conditions.append(self.subquery(alias))
        return f" WHERE {self.rng.choice([' AND ', ' OR ']).join(conditions)}"

    def subquery(self, alias: str) -> str:
        table, inner = self.table(), self.rng.choice("xyab")
        inner = inner if inner != alias else "z"
        kind = self.rng.choice(["IN", "NOT IN", "EXISTS", "NOT EXISTS", "scalar", "nested"])
        condition = self.rng.choice(
            [f"{inner}.k = {alias}.k", self.row(inner), f"{inner}.k = {alias}.k AND {self.row(inner)}"]
        )
        if kind in ("IN", "NOT IN"):
            return f"{alias}.k {kind} (SELECT {inner}.k FROM {table} {inner} WHERE {self.row(inner)})"
        if kind == "scalar":
            return f"{alias}.v >= (SELECT {self.rng.choice(['MIN', 'MAX', 'COUNT'])}({inner}.v) FROM {table} {inner} WHERE {condition})"
        if kind == "nested":
            deep = f"{inner}.v IN (SELECT q.v FROM {self.table()} q WHERE {self.row('q')})"
            return f"EXISTS (SELECT 1 FROM {table} {inner} WHERE {inner}.k = {alias}.k AND {deep})"
        return f"{kind} (SELECT 1 FROM {table} {inner} WHERE {condition})"


def query(seed: int) -> tuple[str, dict[str, list[tuple[int | None, ...]]]]:
    rng = random.Random(seed)
    if seed < len(HARD):
        return HARD[seed], rows(rng)
    while True:
        text = Writer(rng).whole()
        if "[" in text:
            return text, rows(rng)
