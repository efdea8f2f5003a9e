"""Columns and variables that are called like words of SQL mean what any other name means."""

from __future__ import annotations

from typing import Any

import pytest

from partwise.translation import InputTable, QueryView, translate
from tests.translation.duck import Duck, catch_up


def renamed(query: str, column: str, variable: str) -> str:
    return query.replace("COLUMN", column).replace("VARIABLE", variable)


def result(query: str, column: str, rows: list[tuple[int, str | None, int, int]], **settings: Any) -> list[Any]:
    """What the view shows in the last part. Rows are (part, g, x, the column in question)."""
    table = InputTable("s", "source", 60, {"g": "string", "ts": "bigint", "x": "int", column: "int"}, "ts")
    duck = Duck(translate(QueryView("v", query, 60, **settings), {"s": table}), [table])
    duck.insert(
        "s", [{"part": p, "g": g, "ts": p * 60 + at, "x": x, column: y} for at, (p, g, x, y) in enumerate(rows)]
    )
    last = max(row[0] for row in rows)
    catch_up(duck, {"s": set(range(last + 1))})
    shown = [tuple(row.values()) for row in duck.rows("v", last)]
    duck.close()
    return sorted(shown, key=repr)


ROWS = [(0, "p", 1, 1), (1, "p", 5, 0), (2, "p", 4, 0), (2, "q", 9, 9)]
NAMES = [("y", "a"), ("end", "a"), ("case", "a"), ("y", "end"), ("y", "case"), ("end", "end"), ("between", "a")]


@pytest.mark.parametrize(("column", "variable"), NAMES)
def test_each_condition_stays_with_its_variable(column: str, variable: str) -> None:
    """Both on one edge would let every later row of b pass."""
    query = renamed(
        "SELECT g, COUNT(*) AS n FROM s PATTERN [VARIABLE, b+] WHERE VARIABLE.COLUMN > 0 AND b.x > 3 GROUP BY g",
        column, variable,
    )  # fmt: skip
    assert result(query, column, ROWS) == [("p", 3)]
    assert result(query, column, [*ROWS[:2], (2, "p", 1, 0)]) == []


@pytest.mark.parametrize("column", ["y", "end"])
def test_case_has_its_own_end(column: str) -> None:
    query = renamed(
        "SELECT g, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE CASE WHEN a.COLUMN > 0 AND a.x > 0 THEN a.COLUMN ELSE 0 END > 0 "
        "AND b.x > 3 AND COLUMN < 9 AND CASE WHEN COLUMN > 7 THEN COLUMN ELSE COLUMN END < 9 GROUP BY g",
        column, "",
    )  # fmt: skip
    assert result(query, column, ROWS) == [("p", 3)]
