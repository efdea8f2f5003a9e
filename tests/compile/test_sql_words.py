"""Columns and variables that are called like words of SQL mean what any other name means."""

from __future__ import annotations

from typing import Any

import pytest

from partwise.compile import InputTable, QueryView, translate
from tests.compile.duck import Duck, catch_up
from tests.compile.words import WORDS


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


QUERIES = {
    "keys of a window": "SELECT COLUMN, COUNT(*) AS n FROM s [WINDOW 2 minutes] WHERE (COLUMN > -1) GROUP BY COLUMN HAVING COLUMN < 9",
    "sums of a window": "SELECT g, SUM(COLUMN) AS n, MAX(COLUMN + 1) AS m, COUNT(DISTINCT COLUMN) AS d FROM s [WINDOW 2 minutes] GROUP BY g",
    "conditions": "SELECT g, COUNT(*) AS n, SUM(b.COLUMN) AS z, LAST(COLUMN) AS l FROM s PATTERN [a, b+] WHERE a.COLUMN >= 0 "
                  "AND b.COLUMN >= a.COLUMN AND x > 0 AND (COLUMN < 100) AND b.x > 2 GROUP BY g ORDER BY ts, COLUMN",
    "keys of a pattern": "SELECT COLUMN, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE b.x > 3 GROUP BY COLUMN",
    "variables": "SELECT g, COUNT(*) AS n, SUM(VARIABLE.x) AS z FROM s PATTERN [VARIABLE, b+] WHERE VARIABLE.x >= 0 AND b.x > VARIABLE.x GROUP BY g",
}  # fmt: skip


WAYS = [(query, way) for query in QUERIES for way in ((None, "merge") if "window" in query else (None,))]


@pytest.mark.parametrize(("query", "strategy"), WAYS)
def test_every_word_is_a_name_like_others(query: str, strategy: str | None, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [(0, "p", 1, 1), (1, "p", 5, 1), (1, "q", 6, 2), (0, "q", 1, 2), (1, "q", 7, 4)]
    expected = result(renamed(QUERIES[query], "y", "a"), "y", rows, strategy=strategy)
    assert expected
    for word in WORDS:
        text = renamed(QUERIES[query], word, word)
        assert result(text, "y" if query == "variables" else word, rows, strategy=strategy) == expected, word
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("strategy", ["recompute", "merge"])
def test_types_and_units_are_not_keys(strategy: str) -> None:
    query = (
        "SELECT date, CAST(date AS date) IS NULL AS other, COUNT(*) AS n FROM s [WINDOW 2 minutes] GROUP BY date "
        "HAVING DATE '2026-01-01' + INTERVAL 1 day > DATE '2026-01-01' AND date > 1"
    )
    table = InputTable("s", "source", 60, {"ts": "bigint", "date": "string"}, "ts")
    update = (
        translate(QueryView("v", query.replace("> 1", "> 'a'"), 60, strategy=strategy), {"s": table}).views[-1].update
    )  # type: ignore[arg-type]
    assert "CAST(date AS date) IS NULL AS other" in update
    assert "DATE '2026-01-01' + INTERVAL 1 day > DATE '2026-01-01' AND date > 'a'" in update


@pytest.mark.parametrize("kind", ["PATTERN [a+]", "[WINDOW 2 minutes]"])
def test_parentheses_in_strings_are_no_parentheses(kind: str) -> None:
    query = f"SELECT g, (MAX(g) || '(') || (')' || MIN(g)) AS p, ((COUNT(*))) AS n FROM s {kind} GROUP BY g"
    assert result(query, "y", [(0, "p", 1, 1), (1, "p", 5, 1)]) == [("p", "p()p", 2)]
