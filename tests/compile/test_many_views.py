"""Queries over the same rows as one query give what each gives by itself: random ones, on rows with NULLs, in DuckDB."""

from __future__ import annotations

import random
import re
from typing import Any

import duckdb
import pytest

from partwise.compile.many_views import Fusable, fusable, fused
from partwise.compile.many_views.model import NotFusable
from partwise.compile.many_views.read import read

COLUMNS = (("t", "g", "h", "x", "y"),)
CONDITIONS = [
    "x > 1",
    "y < 2 AND x IS NOT NULL",
    "m.h = 'p' OR x = 2",
    "x IN (1, 3)",
    "NOT (y > 1)",
    "x BETWEEN 1 AND 2",
]
AGGREGATES = [
    "SUM(x)", "SUM(m.x) + 1", "COUNT(*)", "COUNT(y)", "AVG(y)", "MIN(x)", "MAX(y) - MIN(y)", "SUM(x) FILTER (WHERE y > 1)",
    "COUNT(*) FILTER (WHERE x > 1)", "COALESCE(MAX(x), 0)", "CASE WHEN COUNT(*) > 2 THEN 'many' ELSE 'few' END",
    "SUM(x) / NULLIF(COUNT(x), 0)",
]  # fmt: skip
KEYS = [(), ("g",), ("g", "h"), ("UPPER(h)",)]


def rows(rng: random.Random) -> list[tuple[Any, ...]]:
    def one() -> tuple[Any, ...]:
        return (
            rng.randrange(9),
            rng.choice(["a", "b", None]),
            rng.choice(["p", "q", None]),
            rng.choice([None, 0, 1, 2, 3]),
            rng.choice([None, 0.5, 1.0, 2.25]),
        )

    return [one() for _ in range(rng.choice((0, 1, 4, 12)))]


def query(rng: random.Random) -> str:
    where = f" WHERE {rng.choice(CONDITIONS)}" if rng.random() < 0.6 else ""
    if rng.random() < 0.25:
        items = rng.choice(["*", "g, m.x + 1 AS z, y", "t, UPPER(h) AS up"])
        return f"SELECT {items} FROM m[j] m{where}"
    keys = rng.choice(KEYS)
    items = [*(f"{key} AS k{n}" for n, key in enumerate(keys))]
    items += [f"{rng.choice(AGGREGATES)} AS v{n}" for n in range(rng.randint(1, 3))]
    having = f" HAVING {rng.choice(AGGREGATES[:1] + AGGREGATES[2:4])} > 1" if rng.random() < 0.4 else ""
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {', '.join(items)} FROM m[j] m{where}{group}{having}"


def ordered(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(found, key=repr)


def test_one_query_gives_what_each_gives() -> None:
    rng, together = random.Random(3), 0
    for _ in range(60):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE m (t INTEGER, g VARCHAR, h VARCHAR, x INTEGER, y DOUBLE)")
        if content := rows(rng):
            connection.executemany("INSERT INTO m VALUES (?, ?, ?, ?, ?)", content)
        texts = [query(rng) for _ in range(8)]
        alike: dict[object, list[tuple[str, Fusable]]] = {}
        for text in texts:
            pieces = fusable(text, COLUMNS)
            assert pieces is not None, text
            alike.setdefault(pieces.keys, []).append((text, pieces))
        for group in alike.values():
            one = fused([pieces for _, pieces in group])
            cursor = connection.execute(re.sub(r"__in1", "m", one.text).replace("`", '"'))
            names, found = [column[0] for column in cursor.description], cursor.fetchall()
            together += len(group) > 1
            for (text, _), flag, columns in zip(group, one.present, one.columns, strict=True):
                own = [dict(zip(names, row, strict=True)) for row in found]
                mine = [tuple(row[c] for c in columns) for row in own if flag is None or row[flag]]
                alone = connection.execute(text.replace("m[j]", "m")).fetchall()
                assert ordered(mine) == ordered(alone), (text, one.text, content)
        connection.close()
    assert together > 60


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(DISTINCT x) AS n FROM m[j]",
        "SELECT FIRST(x) AS x FROM m[j]",
        "SELECT DISTINCT g FROM m[j]",
        "SELECT g FROM m[j] LIMIT 3",
        "SELECT g FROM m[j] ORDER BY g",
        "SELECT g, SUM(x) OVER (PARTITION BY g) AS s FROM m[j]",
        "SELECT g FROM m[j] WHERE x = (SELECT MAX(x) FROM m[j])",
        "SELECT g FROM m[j] UNION ALL SELECT h FROM m[j]",
        "SELECT explode(array(x)) AS z FROM m[j]",
        "SELECT mine(x) AS z FROM m[j]",
        "SELECT x + 1 AS z, z + 1 AS more FROM m[j]",
        "SELECT g, MAX(x) AS x FROM m[j] GROUP BY g HAVING MAX(x) > 3",
        "SELECT UPPER(h) AS up, COUNT(*) AS n FROM m[j] GROUP BY up",
        "SELECT g, COUNT(*) AS n FROM m[j] GROUP BY 1",
        "SELECT g, COUNT(*) AS n FROM m[j] GROUP BY ALL",
        "SELECT g, COUNT(*) AS n FROM m[j] GROUP BY g WITH ROLLUP",
        "SELECT g, COUNT(*) FROM m[j] GROUP BY g",
        "SELECT part, COUNT(*) AS n FROM m[j] GROUP BY part",
        "SELECT y.x AS z FROM m[j] y",
    ],
)
def test_what_runs_by_itself(text: str) -> None:
    with pytest.raises(NotFusable):
        read(text, COLUMNS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(1 / x) AS s FROM m[j] WHERE x <> 0",
        "SELECT SUM(1 / x) FILTER (WHERE x <> 0) AS s FROM m[j]",
        "SELECT g, SUM(CAST(h AS INT)) AS s FROM m[j] WHERE h > '0' GROUP BY g",
        "SELECT x % y AS k, COUNT(*) AS n FROM m[j] GROUP BY x % y",
        "SELECT x FROM m[j] WHERE 1 / x > 2",
    ],
)
def test_what_may_fail_beside_a_condition_runs_by_itself(text: str) -> None:
    assert fusable(text, COLUMNS) is None


def test_tables_that_are_joined_in_the_same_way_are_read_once() -> None:
    text = "SELECT d.name, {} AS v FROM m[j] m JOIN d ON d.g = m.g GROUP BY d.name"
    one, other = (fusable(text.format(each), (*COLUMNS, ("g", "name"))) for each in ("SUM(m.x)", "MAX(m.y)"))
    assert one is not None
    assert other is not None
    assert (
        (one.source, one.keys) == (other.source, other.keys) == ("__in1 AS m JOIN __in2 AS d ON d.g = m.g", ("d.name",))
    )
