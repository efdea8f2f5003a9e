"""OR binds weaker than the ANDs that generated SQL puts beside it, however it is written."""

from __future__ import annotations

import pytest

from partwise.sql.text import conjunct, operand
from tests.compile.shown import shown


@pytest.mark.parametrize(
    "either", ["(COUNT(*) > 9)OR(COUNT(*) < 3)", "COUNT(*)>9\nor\tCOUNT(*)<3", "(COUNT(*)>9)/**/OR--\n(COUNT(*)<3)"]
)
def test_having_of_a_pattern(either: str) -> None:
    query = f"SELECT COUNT(*) AS ct FROM s PATTERN [a, b+] WHERE a.x > 1 AND b.x > 1 HAVING {either}"
    assert shown(query, [2, 2, 2, 0]) == [None, 2, None, None], "a run of one row matches nothing"


def test_conditions_and_counts_of_a_pattern() -> None:
    query = (
        "SELECT COUNT(*) AS ct, COUNT(x > 1 OR y > 1) AS told FROM s PATTERN [a, b+] "
        "WHERE ((b.x > 1)OR(b.y > 1)) AND (b.x < 9)OR(b.y < 0)"
    )
    values = [(2, 2), (2, 0), (0, 2), (None, 0)]
    assert shown(query.replace("AND (b.x < 9)OR(b.y < 0)", "AND (b.x < 9)"), values) == [None, (2, 2), (3, 3), None]
    assert shown("SELECT COUNT(x > 1 OR y > 1) AS told FROM s PATTERN [a, b+]", [(2, None), (None, 0), (0, 0)]) == [
        None,
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("text", "between_ands"),
    [
        ("a > 1", "a > 1"),
        ("(a)OR(b)", "((a)OR(b))"),
        ("a\nor\nb", "(a\nor\nb)"),
        ("(a OR b)", "(a OR b)"),
        ("f(a OR b) AND c", "f(a OR b) AND c"),
        ("a = ' or '", "a = ' or '"),
        ("`or` > 1", "`or` > 1"),
    ],
)  # fmt: skip
def test_between_ands(text: str, between_ands: str) -> None:
    assert conjunct(text) == between_ands


@pytest.mark.parametrize("text", ["x", "s.x", "`a b`.c", "1", "'or'", "f(a + b)", "f()", "CAST(a AS INT)"])
def test_operands(text: str) -> None:
    assert operand(text) == text


@pytest.mark.parametrize(
    "text",
    ["a + b", "f(a) + 1", "a OR b", "NOT (a)", "CASE WHEN a THEN b END", "(a) + (b)", "-a", "a IS NULL", "f(a).b"],
)
def test_what_is_no_operand(text: str) -> None:
    assert operand(text) == f"({text})"
