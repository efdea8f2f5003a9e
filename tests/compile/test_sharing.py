"""A run that has gone on to a later variable, but could as well have stayed: kept once, with a flag."""

from __future__ import annotations

import re

from tests.compile.shown import shown, translated

ABOVE = "SELECT g, COUNT(*) AS n, SUM(x) AS total, FIRST(x) AS low FROM s PATTERN [c+, d+] WHERE c.x > 1 AND d.x {} GROUP BY g"


def columns(query: str) -> list[str]:
    return re.findall(r"s\.(\w+)", translated(query).views[0].update.split("FROM")[0])


def test_what_is_also_a_run_of_an_earlier_variable_is_one_flag() -> None:
    """Whatever is above 2 is above 1: a run in d is a run in c with the same start."""
    assert columns(ABOVE.format("> 2")) == ["n_c", "total_c", "low_c", "reached_d"]
    assert shown(ABOVE.format("> 2"), [2, 3, 2, 9, 5, 1, 3, 3]) == [
        None, (2, 5, 2), None, (4, 16, 2), (5, 21, 2), None, None, (2, 6, 3),
    ]  # fmt: skip


def test_several_variables_share_with_one() -> None:
    query = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM s PATTERN [a+, b, c+] WHERE a.x > 0 AND b.x > 2 AND c.x > 4 AND c.x > PREV(c.x) GROUP BY g"
    assert columns(query) == ["n_a", "s_a", "reached_b", "reached_c", "last_x"]
    assert shown(query, [1, 3, 5, 6, 6, 2, 3, 9]) == [None, None, (3, 9), (4, 15), (5, 21), None, None, (8, 35)]


def test_not_where_a_row_would_not_have_stayed() -> None:
    """Below 5 does not mean above 1: c may have ended, or begun again, while the run in d goes on."""
    assert columns(ABOVE.format("< 5")) == ["n_c", "total_c", "low_c", "n_d", "total_d", "low_d"]
    assert shown(ABOVE.format("< 5"), [3, 2, 0, 4, 9]) == [None, (2, 5, 3), (3, 5, 3), (4, 9, 3), None]


def test_not_where_the_earlier_variable_takes_one_row() -> None:
    query = "SELECT g, COUNT(*) AS n FROM s PATTERN [c, d+] WHERE c.x > 1 AND d.x > 2 GROUP BY g"
    assert not any(name.startswith("reached") for name in columns(query))
    assert shown(query, [3, 3, 3, 2, 3]) == [None, 2, 3, None, 2]


def test_not_with_aggregates_of_one_variable() -> None:
    """The same rows, assigned in two ways: c has taken them all, d leaves it fewer."""
    query = "SELECT g, COUNT(c.*) AS c, COUNT(d.*) AS d, COUNT(*) AS n FROM s PATTERN [c+, d+] WHERE c.x > 1 AND d.x > 2 GROUP BY g"
    assert not any(name.startswith("reached") for name in columns(query))
    assert shown(query, [2, 3, 3, 2, 3]) == [None, (1, 1, 2), (2, 1, 3), None, (4, 1, 5)]
