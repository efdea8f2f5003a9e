"""A key may be part of a larger expression, wherever it is a whole operand of it."""

from __future__ import annotations

import pytest

from partwise.sql.operators import stands_alone
from partwise.sql.text import Piece
from tests.compile.test_refused import problems
from tests.compile.test_sql_words import result


@pytest.mark.parametrize(
    ("key", "whole", "expected"),
    [
        ("a + b", "a + b", True),
        ("a + b", "a + b * c", False),
        ("a + b", "c * a + b", False),
        ("a + b", "c - a + b", False),
        ("a + b", "a + b - c", True),
        ("a + b", "(a + b) * c", True),
        ("a + b", "f(c, a + b)", True),
        ("a + b", "a + b > c AND d", True),
        ("a + b", "c > a + b", True),
        ("a + b", "NOT a + b > c", True),
        ("a + b", "a + b.c", False),
        ("a + b", "a + b[0]", False),
        ("a % 2", "a % 2 = 0", True),
        ("a % 2", "1 + a % 2", True),
        ("a % 2", "-a % 2", False),
        ("a % 2", "1 -a % 2", True),
        ("a % 2", "c BETWEEN 0 AND a % 2", True),
        ("a > 1", "a > 1 AND b", True),
        ("a > 1", "c BETWEEN 0 AND a > 1", False),
        ("a > 1", "a > 1 + b", False),
        ("a BETWEEN 1 AND 2", "a BETWEEN 1 AND 2", True),
        ("a IS NOT NULL", "a IS NOT NULL OR b", True),
        ("a || b", "c || a || b", False),
        ("CASE WHEN a THEN b END", "CASE WHEN a THEN b END + 1", True),
        ("CASE WHEN a THEN b END", "x.CASE WHEN a THEN b END", False),
        ("f(a)", "f(a) * 2", True),
        ("f(a)", "f(a).b", True),
        ("a + b", "CASE WHEN c THEN a + b ELSE d END", True),
        ("a + b", "CAST(a + b AS INT)", True),
    ],
)
def test_a_whole_operand(key: str, whole: str, expected: bool) -> None:
    at = whole.index(key)
    assert stands_alone(Piece(whole), Piece(key), at, at + len(key)) is expected


ROWS = [(0, "p", 1, 1), (1, "p", 5, 2), (1, "q", 6, 3), (0, "q", 1, 2), (1, "q", 7, 4)]


@pytest.mark.parametrize("strategy", ["recompute", "merge", "subtract"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT y % 2 = 0 AS even, COUNT(*) AS n FROM s KIND GROUP BY y % 2", [(False, 2), (True, 3)]),
        ("SELECT COUNT(*) AS n FROM s KIND GROUP BY y % 2 HAVING y % 2 = 0", [(3,)]),
        ("SELECT y % 2 + 1 + COUNT(*) AS n FROM s KIND GROUP BY y % 2 + 1", [(4,), (4,)]),
        ("SELECT g, COUNT(*) AS n FROM s KIND GROUP BY (g)", [("p", 2), ("q", 3)]),
        ("SELECT (g), COUNT(*) AS n FROM s KIND GROUP BY g", [("p", 2), ("q", 3)]),
        ("SELECT (y % 2) * 10 AS k, SUM(x) AS n FROM s KIND GROUP BY (y % 2)", [(0, 13), (10, 7)]),
    ],
)
def test_keys_inside_of_expressions(query: str, expected: list[tuple[object, ...]], strategy: str) -> None:
    assert result(query.replace("KIND", "[WINDOW 2 minutes]"), "y", ROWS, strategy=strategy) == expected


def test_keys_inside_of_expressions_over_a_pattern() -> None:
    query = "SELECT y % 2 = 0 AS even, COUNT(*) AS n FROM s PATTERN [a+] GROUP BY y % 2 HAVING y % 2 + COUNT(*) > 1"
    assert result(query, "y", ROWS) == [(False, 2), (True, 3)]


def test_what_is_no_operand_is_not_grouped() -> None:
    assert [code for code, _ in problems("SELECT x + 1 * 2 AS n FROM s [WINDOW 3 minutes] GROUP BY x + 1")] == [
        "not-grouped"
    ]
