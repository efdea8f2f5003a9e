"""Shortcuts that look right and are not: each with the smallest history that shows it."""

from __future__ import annotations

import random
import re

import pytest

from partwise.compile.parse import parse
from partwise.compile.pattern.automaton import build
from partwise.compile.pattern.narrow import analyse, simulation
from partwise.sql.parse import TranslationError
from tests.compile.pattern_oracle import random_pattern
from tests.compile.shown import TABLE, shown, translated


def test_keeping_the_highest_state_only_loses_runs() -> None:
    """At the third row b must follow the older run of a, not the run of b."""
    query = "SELECT g, COUNT(*) AS n FROM s PATTERN [a+, b] WHERE a.x >= 1 GROUP BY g"
    assert shown(query, [8, 1, 1]) == [None, 2, 3]


def test_one_counter_is_not_enough_because_one_row_conditions_are_equal() -> None:
    query = "SELECT g, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE a.x > 0 AND b.x > 0 AND b.x > a.x GROUP BY g"
    assert shown(query, [3, 2, 5, 4]) == [None, None, 2, 3]


def test_a_pattern_without_plus_reports_its_own_length() -> None:
    query = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM s PATTERN [a, b] WHERE a.x > 0 AND b.x > 0 GROUP BY g"
    assert shown(query, [1, 2, 4]) == [None, (2, 3), (2, 6)]


def test_stay_first_is_wrong_with_aggregates_of_one_variable() -> None:
    """Three rows that fit both variables: a takes two, b one."""
    query = "SELECT g, COUNT(a.*) AS a, COUNT(b.*) AS b, SUM(b.x) AS s FROM s PATTERN [a+, b+] WHERE a.x > 0 AND b.x > 0 GROUP BY g"
    assert shown(query, [1, 2, 4]) == [None, (1, 1, 2), (2, 1, 4)]


def test_stay_wins_with_aggregates_of_the_whole_run() -> None:
    assert shown("SELECT g, COUNT(*) AS n FROM s PATTERN [a+] WHERE a.x > 0 GROUP BY g", [7, 8, 0, 9]) == [
        1,
        2,
        None,
        1,
    ]


def test_states_are_not_dropped_under_restricted_aggregates() -> None:
    """b simulates a, but a may hold the greedier assignment of the same rows: it must stay."""
    text = "SELECT g, {} FROM s PATTERN [a+, b+] WHERE a.x > 0 AND b.x > 0 GROUP BY g"
    assert last_line(text.format("COUNT(*) AS n")).count("IS NOT NULL") == 1
    assert last_line(text.format("COUNT(b.*) AS n")).count("IS NOT NULL") == 2


@pytest.mark.parametrize(
    "query, folded",
    [
        ("SELECT g, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE a.x > 0 AND b.x > 0 GROUP BY g", False),
        ("SELECT g, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE a.x > 0 AND b.x > 1 GROUP BY g", True),
        ("SELECT g, COUNT(*) AS n FROM s PATTERN [a, b] WHERE a.x > 0 AND b.x > 0 GROUP BY g", True),
        ("SELECT g, COUNT(*) AS n FROM s PATTERN [a+, b] WHERE a.x > 0 AND b.x > 0 GROUP BY g", True),
        ("SELECT g, SUM(b.x) AS n FROM s PATTERN [a, b+] WHERE a.x > 0 AND b.x > 0 GROUP BY g", True),
        ("SELECT g, COUNT(*) AS n FROM s PATTERN [a+] WHERE a.x > 0 AND a.x > PREV(a.x) GROUP BY g", True),
        ("SELECT COUNT(*) AS n FROM s PATTERN [a+] WHERE a.x > 0", True),
    ],
)
def test_rows_are_not_folded_only_if_the_run_is_all_rows_since_the_last_failure(query: str, folded: bool) -> None:
    assert ("aggregate(" in translated(query).views[0].update) == folded


def last_line(query: str) -> str:
    return str(translated(query).views[0].fast_update).splitlines()[-1]


def test_a_lower_state_never_simulates_a_higher_one() -> None:
    rng = random.Random(5)
    pairs = []
    for _ in range(60):
        query = parse(random_pattern(rng).sql())
        assert query.pattern is not None
        try:
            machine = build(query.pattern, query.where, ["s"], TABLE.columns)
        except TranslationError:
            continue  # a condition that never holds
        pairs += simulation(machine)
        layout = analyse(machine, restricted=False)
        assert sorted(state for register in layout.registers for state in register) == list(range(machine.size))
    assert pairs
    assert all(high > low for high, low in pairs)


def test_the_previous_row_is_kept_once_per_group() -> None:
    """Every open run ends at the group's newest row, whatever state it is in."""
    query = "SELECT g, COUNT(*) AS n FROM s PATTERN [a+, b, c+] WHERE a.x > 0 AND b.x > a.x AND c.x < b.x AND c.y > PREV(c.y) GROUP BY g"
    fields = re.findall(r"s\.(\w+)", translated(query).views[0].update.split("FROM")[0])
    assert [name for name in fields if name.startswith("last_")] == ["last_x", "last_y"]


def test_a_failed_row_may_start_a_new_run() -> None:
    """[a, b] with b.x > a.x over 5, 3, 4: the paper's single state drops it."""
    assert shown("SELECT g, COUNT(*) AS n FROM s PATTERN [a, b] WHERE b.x > a.x GROUP BY g", [5, 3, 4]) == [
        None,
        None,
        2,
    ]


@pytest.mark.parametrize(("gaps", "expected"), [("break", [None, 2, None, None, 2]), ("carry", [None, 2, 2, 3, 4])])
def test_gaps(gaps: str, expected: list[int | None]) -> None:
    query = "SELECT g, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE a.x > 0 AND b.x > 0 GROUP BY g"
    assert shown(query, [1, 1, None, 1, 1], gaps=gaps) == expected


def test_null_never_matches() -> None:
    query = "SELECT g, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE NOT a.x > 5 AND NOT b.x > 5 GROUP BY g"
    assert shown(query, [1, (None, 1), 1, 1]) == [None, None, None, 2]


@pytest.mark.parametrize("name", ["s", "rows", "n", "p", "h", "r", "here", "state", "ct", "ts", "last_x"])
def test_a_key_may_have_any_name(name: str) -> None:
    """Also that of a column or an alias that the generated SQL uses itself."""
    query = (
        f"SELECT g AS {name}, COUNT(*) AS total, SUM(x) AS sum_x FROM s PATTERN [a, b+] WHERE b.x > a.x GROUP BY {name}"
    )
    if name == "ts":  # a column of the table: the alias needs the expression
        query = query.replace("GROUP BY ts", "GROUP BY g")
    for gaps in ("break", "carry"):
        found = shown(query, [1, 2, 0], gaps=gaps)
        assert found[1] in ((2, 3), ("a", 2, 3))


def test_a_key_called_like_another_column_is_always_folded() -> None:
    """Joined with the helper, the row would have two columns called x."""
    helper = translated("SELECT g AS x, SUM(x) AS s FROM s PATTERN [a, b+] WHERE b.x > a.x GROUP BY g").views[0]
    assert (helper.fast_update, helper.unique_update, helper.unique_by) == (None, None, ())
    helper = translated("SELECT x, SUM(x) AS s FROM s PATTERN [a, b+] WHERE b.x >= a.x GROUP BY x").views[0]
    assert helper.fast_update
    assert helper.unique_by == ("x",)


def test_strings_are_left_as_they_are() -> None:
    """Blanks, line breaks, quotes and words like AND inside a string are part of it."""
    where = "a.g = 'two  blanks AND (one\nbreak' AND b.g <> 'it\\'s -- no comment'"
    made = translated(f"SELECT g, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE {where} GROUP BY g")
    for text in (made.views[0].update, str(made.views[0].fast_update)):
        assert "'two  blanks AND (one\\nbreak'" in text
        assert "'it\\'s -- no comment'" in text
    window = translated(
        "SELECT CONCAT(g, ' \n ', 'a  b') AS k, COUNT(*) AS n FROM s [WINDOW 2 minutes] GROUP BY k", strategy="merge"
    )
    assert "CONCAT(g, ' \\n ', 'a  b')" in window.views[0].update


def test_names_that_need_quotes_and_fields_of_structs() -> None:
    made = translated(
        "SELECT g, SUM(b.x) AS `a sum` FROM s PATTERN [a, b+] WHERE `a`.x > 1 AND B.X > 2 AND b.y IN (1, 2) GROUP BY g"
    )
    assert "`a sum`" in made.views[1].update
    assert "new.y IN (1, 2)" in made.views[0].update
