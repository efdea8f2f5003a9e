"""How much one key can add to a sum, by how the expression is written: never less than any of its rows can give."""

from __future__ import annotations

import random

import duckdb
import pytest
from sqlglot import parse_one

from partwise.fresh.adding.bounds import Sizes, largest
from partwise.fresh.asked.results import Total

SIZES = Sizes(3.0, {"x": 10.0, "y": 4.0}, frozenset("x"))
EXPRESSIONS = {
    "x": 10.0,
    "y": 8.0,  # may be negative: from -4 to 4
    "CASE WHEN g = 'a' THEN x END": 10.0,
    "CASE WHEN g = 'a' THEN x WHEN g = 'b' THEN 2 ELSE 0 END": 16.0,
    "CASE WHEN g = 'a' THEN x ELSE x END": 10.0,
    "CASE g WHEN 'a' THEN x ELSE NULL END": 10.0,
    "IF(g = 'a', x, 0)": 10.0,
    "COALESCE(x, 1)": 13.0,
    "CAST(x AS DOUBLE)": 10.0,
    "x * -2": 40.0,
    "2 * x": 20.0,
    "x / (-4)": 5.0,
    "-(x - 1)": 26.0,
    "ABS(y)": 4.0,
}
NONE = ["x * y", "CASE WHEN g = 'a' THEN z ELSE x END", "CAST(x AS BIGINT)", "x / 0", "1 / x", "ROUND(x)"]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_bounds(text: str) -> None:
    found = largest(Total("", parse_one(text, read="duckdb")), SIZES)
    assert found == pytest.approx(EXPRESSIONS[text], rel=1e-6)


@pytest.mark.parametrize("text", NONE)
def test_what_has_none(text: str) -> None:
    assert largest(Total("", parse_one(text, read="duckdb")), SIZES) is None


def test_no_key_can_do_more() -> None:
    """Keys of up to three rows within the sizes, before and after."""
    chance = random.Random(1)

    def key() -> list[tuple[str, float | None, float]]:
        rows = chance.randint(0, 3)
        xs, ys = ([chance.random() for _ in range(3)] for _ in range(2))
        return [
            (
                chance.choice("abc"),
                None if chance.random() < 0.1 else 10 * xs[n] / sum(xs),
                chance.choice((-4, 4)) * ys[n] / sum(ys),
            )
            for n in range(rows)
        ]

    on = duckdb.connect(":memory:")
    on.execute("CREATE TABLE keys (key INT, sign INT, g VARCHAR, x DOUBLE, y DOUBLE)")
    rows = [(n, sign, *row) for n in range(400) for sign in (1, -1) for row in key()]
    on.executemany("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", rows)
    for text, most in EXPRESSIONS.items():
        found = on.execute(
            f"SELECT MAX(ABS(d)) FROM (SELECT SUM(sign * ({text})) AS d FROM keys GROUP BY key)"
        ).fetchone()
        assert found is not None
        assert found[0] <= most * (1 + 1e-9), text
