"""Groups cut out of a query: on DuckDB the rest over them gives what the query gives, over random queries and rows."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from partwise.compile.state.grouped import groupings
from tests.state.test_split import KNOWN, Tables, statement


def grouped(rng: random.Random, shown: bool) -> str:
    """SELECT .. GROUP BY over one or two references, with aggregates in expressions."""
    tables = rng.sample(["m[j] a", "n[j] b", "n[j-1] b2", "o[j] c"], rng.choice([1, 1, 2]))
    aliases = [each.split()[1] for each in tables]
    columns = {"a": ("k", "v", "x"), "b": ("k", "w", "y"), "b2": ("k", "w", "y"), "c": ("k", "v", "z")}

    def column() -> str:
        alias = rng.choice(aliases)
        return f"{alias}.{rng.choice(columns[alias])}"

    def value() -> str:
        return rng.choice([column(), f"{column()} + 1", "coalesce(" + column() + ", 2)"])

    def aggregate() -> str:
        plain = rng.choice([f"SUM({value()})", f"count( {value()} )", "COUNT(*)", f"MIN({value()})", f"max({value()})"])
        return rng.choice(
            [plain, plain, f"COALESCE({plain}, 0) -- why not\n", f"{plain} + {rng.choice(['1', 'COUNT(*)'])}"]
        )

    keys = list(dict.fromkeys(column() for _ in range(rng.choice([1, 2]))))
    items = [rng.choice([f"{key} AS r{n}", f"{key} + 1 AS r{n}"]) for n, key in enumerate(keys)]
    items = items + [f"{aggregate()} AS s{n}" for n in range(rng.choice([1, 2]))] if shown else [f"{keys[0]} AS r"]
    joins = [f"{one}.k = {other}.k" for one, other in pairwise(aliases)]
    where = joins + ([f"{column()} >= 0"] if rng.random() < 0.5 else [])
    text = f"SELECT {', '.join(items)}\nFROM {', '.join(tables)}{' WHERE ' + ' AND '.join(where) if where else ''}"
    text += f"\nGROUP BY {', '.join(keys)}"
    return text + (f" HAVING {aggregate()}\n > {rng.choice(['0', '1', keys[0]])}" if rng.random() < 0.5 else "")


def query(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return grouped(rng, shown=True)
    inner = grouped(rng, shown=False)
    return f"SELECT q.v, q.x AS w FROM m[j] q WHERE q.v {rng.choice(['IN', 'NOT IN'])} ({inner}) OR q.k IS NULL"


def test_the_rest_over_the_groups_gives_what_the_query_gives() -> None:
    tables, cut = Tables(), 0
    for seed in range(300):
        rng = random.Random(seed)
        text = query(rng)
        tables.fill(rng)
        for made in groupings(statement(text), KNOWN.get, "kept_table"):
            cut += 1
            assert tables.run(made.rest, made.text) == tables.run(text), f"{seed}: {text}\n{made.text}\n{made.rest}"
            assert None in made.occurrences
    assert cut > 250


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, AVG(v) AS a FROM m[j] GROUP BY k",
        "SELECT k, COUNT(DISTINCT v) AS a FROM m[j] GROUP BY k",
        "SELECT k, SUM(v) FILTER (WHERE x > 0) AS a FROM m[j] GROUP BY k",
        "SELECT k, SUM(SUM(v)) OVER () AS a FROM m[j] GROUP BY k",
        "SELECT k, SUM(v) FROM m[j] GROUP BY k",
        "SELECT k + 1 AS k, SUM(v) AS s FROM m[j] GROUP BY k + 1",
        "SELECT k, SUM(v) AS s FROM m[j] GROUP BY ROLLUP (k)",
        "SELECT k, SUM(v) AS s FROM m[j] GROUP BY k ORDER BY s LIMIT 3",
        "SELECT SUM(v) AS s FROM m[j]",
        "SELECT a.v FROM m[j] a WHERE a.x > (SELECT SUM(b.v) AS s FROM m[j] b WHERE b.k = a.k GROUP BY b.k)",
        "SELECT k, SUM(v) AS s, s + 1 AS t FROM m[j] GROUP BY k",
        "SELECT name_, COUNT(*) AS n FROM d GROUP BY name_",
    ],
)
def test_what_is_not_cut(text: str) -> None:
    assert groupings(statement(text), KNOWN.get, "kept_table") == []
