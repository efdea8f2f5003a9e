"""In which order rows are taken, what makes a group, and what may stand in conditions and in SELECT."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from partwise.compile import InputTable, QueryView, translate
from tests.compile.duck import Duck, catch_up
from tests.compile.shown import shown

COLUMNS = {"g": "string", "h": "string", "ts": "bigint", "seq": "bigint", "x": "int", "y": "int"}
TABLE = InputTable("s", "source", 60, COLUMNS, "ts")
RISING = "SELECT g, FIRST(x) AS low, LAST(x) AS high, COUNT(*) AS n FROM s PATTERN [a, b+] WHERE b.x > a.x AND b.x > PREV(b.x) GROUP BY g"


def found(query: str, rows: list[dict[str, Any]], table: InputTable = TABLE) -> list[tuple[Any, ...]]:
    """What the view shows in part 1, of rows in parts 0 and 1."""
    translation = translate(QueryView("v", query, 60), {"s": table})
    duck = Duck(translation, [table])
    duck.insert("s", [{"part": 0, **dict.fromkeys(COLUMNS), **row} for row in rows])
    catch_up(duck, {"s": {0, 1}})
    return sorted((tuple(row.values()) for row in duck.rows("v", 1)), key=repr)


def row(part: int, ts: int, x: int, seq: int = 0, **more: Any) -> dict[str, Any]:
    return {"part": part, "g": "a", "ts": ts, "seq": seq, "x": x, **more}


class TestOrder:
    def test_event_time_is_the_default(self) -> None:
        assert found(RISING, [row(1, 63, 3), row(1, 61, 1), row(1, 62, 2)]) == [("a", 1, 3, 3)]

    def test_order_by_another_column(self) -> None:
        rows = [row(1, 61, 3, seq=9), row(1, 62, 1, seq=7), row(1, 63, 2, seq=8)]
        assert found(RISING, rows) == [("a", 1, 2, 2)]
        assert found(f"{RISING} ORDER BY seq", rows) == [("a", 1, 3, 3)]
        assert found(f"{RISING} ORDER BY -seq ASC", rows) == []

    def test_parts_come_before_the_order_inside_them(self) -> None:
        assert found(f"{RISING} ORDER BY seq", [row(0, 1, 1, seq=9), row(1, 61, 2, seq=1)]) == [("a", 1, 2, 2)]

    def test_rows_of_equal_time_go_by_the_tie_column(self) -> None:
        rows = [row(1, 61, 1, seq=2), row(1, 61, 2, seq=1)]
        assert found(RISING, rows, replace(TABLE, tie="seq")) == []
        assert found(RISING, rows) == [("a", 1, 2, 2)], "without one, by their values"

    @pytest.mark.parametrize(("order", "tie"), [("", "seq"), (" ORDER BY x", "seq"), ("", None), (" ORDER BY x", None)])
    def test_without_a_tie_column_there_is_a_warning(self, order: str, tie: str | None) -> None:
        said = translate(QueryView("v", RISING + order, 60), {"s": replace(TABLE, tie=tie)}).warnings
        by = "x" if order else "ts"
        assert said == () if tie else len(said) == 1 and f"rows of a group with equal {by} are" in said[0]


def test_first_and_last_event_time() -> None:
    query = "SELECT g, FIRST(ts) AS since, LAST(ts) AS until, LAST(ts) - FIRST(ts) AS lasted FROM s PATTERN [a+] WHERE a.x > 0 GROUP BY g"
    assert found(query, [row(0, 3, 0), row(0, 5, 1), row(1, 62, 1), row(1, 68, 1)]) == [("a", 5, 68, 63)]


def test_having_on_first_and_last() -> None:
    rows = [row(0, 1, 1), row(1, 61, 5), row(0, 2, 4, g="b"), row(1, 62, 5, g="b")]
    assert found(f"{RISING} HAVING LAST(x) - FIRST(x) > 2", rows) == [("a", 1, 5, 2)]
    assert found(f"{RISING} HAVING low = 4 OR n > 9", rows) == [("b", 4, 5, 2)]


@pytest.mark.parametrize(
    ("select", "group"),
    [
        ("UPPER(g) AS k, h", "UPPER(g), h"),
        ("UPPER(g) AS k, h", "k, h"),
        ("UPPER(s.g) AS k, h", "1, 2"),
        ("CONCAT(UPPER(g), '') AS k, s.h", "k, s.h"),
    ],
)
def test_groups_by_expressions_names_and_numbers(select: str, group: str) -> None:
    rows = [row(0, 1, 1, h="p"), row(1, 61, 2, g="A", h="p"), row(1, 62, 7, g="A", h="q"), row(1, 63, 1, g="b", h=None)]
    query = f"SELECT {select}, COUNT(*) AS n, SUM(x) AS total FROM s PATTERN [a+] WHERE a.x > 0 GROUP BY {group}"
    assert found(query, rows) == [("A", "p", 2, 3), ("A", "q", 1, 7), ("B", None, 1, 1)]


@pytest.mark.parametrize("key", ["part", "s.part", "part AS p"])
@pytest.mark.parametrize("kind", ["PATTERN [a+]", "[WINDOW 4 minutes]"])
def test_groups_by_what_every_table_has(kind: str, key: str) -> None:
    """Helpers have such a column of their own, here one for each two parts, so they keep the key under another name."""
    selected, group = (f"{key}, ", "1") if " AS " in key else ("", key)
    query = f"SELECT {selected}COUNT(*) AS n, SUM(x) AS total FROM s {kind} GROUP BY {group}"
    duck = Duck(translate(QueryView("v", query, 120, strategy="merge"), {"s": TABLE}), [TABLE])
    rows = [row(0, 1, 1), row(2, 121, 2), row(3, 181, 3), row(3, 182, 4)]
    duck.insert("s", [{**dict.fromkeys(COLUMNS), **r} for r in rows])
    catch_up(duck, {"s": {0, 1, 2, 3}})
    helper = duck.rows(duck.views[0].name, 1)
    assert helper
    assert not {"part", "part_timestamp"} & set(helper[0]), "they would be dropped where results are stored"
    whole = [(2, 1, 2), (3, 2, 7)] if kind.startswith("PATTERN") else [(0, 1, 1), (2, 1, 2), (3, 2, 7)]
    assert sorted(tuple(r.values()) for r in duck.rows("v", 1)) == [r if selected else r[1:] for r in whole]


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("ABS(b.x - a.x) > 2", [1, 4, 3, 9], [None, 2, None, 2]),
        ("b.x BETWEEN a.x AND a.x + 2", [1, 3, 9, 9], [None, 2, None, 2]),
        ("(b.x = 3 OR b.x > a.x + 5)", [1, 3, 9, 1], [None, 2, 2, None]),
        ("b.x IN (2, 4) AND NOT a.x IN (4)", [1, 4, 2, 2], [None, 2, None, 2]),
        ("b.x IS NOT NULL AND a.x IS NULL", [(None, 1), 2, 3], [None, 2, None]),
        ("CASE WHEN a.x > 5 THEN b.x < a.x ELSE b.x > a.x END", [1, 9, 2, 3], [None, 2, 2, 2]),
        ("COALESCE(b.x, 0) + b.y > a.x * a.y", [(1, 1), (1, 1), (None, 2), (1, 1)], [None, 2, 2, None]),
    ],
)
def test_any_expression_of_two_neighbours(condition: str, values: list[Any], expected: list[int | None]) -> None:
    assert shown(f"SELECT g, COUNT(*) AS n FROM s PATTERN [a, b] WHERE {condition} GROUP BY g", values) == expected


def test_prev_may_enclose_a_formula() -> None:
    query = "SELECT g, COUNT(*) AS n FROM s PATTERN [a+] WHERE a.x - a.y > PREV(a.x - a.y) * 2 GROUP BY g"
    assert shown(query, [(2, 1), (4, 1), (7, 2), (30, 1)]) == [1, 2, 1, 2]


def test_filter_and_expressions_over_aggregates() -> None:
    query = """
        SELECT g, COUNT(*) FILTER (WHERE x > 1) AS big, SUM(b.x) FILTER (WHERE b.y > 0) AS chosen, COUNT_IF(y > 0) AS up,
               ROUND(SUM(x) / COUNT(*), 1) AS mean, MAX(x) - MIN(x) AS spread
        FROM s PATTERN [a, b+] WHERE a.x > 0 AND b.x > 0 GROUP BY g HAVING COUNT(*) FILTER (WHERE x > 1) >= 1
    """
    assert shown(query, [(1, 1), (1, 0), (4, 1), (9, -1)]) == [None, None, (1, 4, 2, 2.0, 3), (2, 4, 2, 3.8, 8)]


@pytest.mark.parametrize("column", ["x", "b.x"])
def test_a_bare_column_in_the_filter_of_a_variable_is_of_the_same_row(column: str) -> None:
    query = f"SELECT g, SUM(b.y) FILTER (WHERE {column} > 1) AS s FROM s PATTERN [a, b+] WHERE a.x > 4 AND b.x < 5 GROUP BY g"
    rows = [row(1, 61, 9, y=100), row(1, 62, 1, y=10), row(1, 63, 3, y=7), row(1, 64, 2, y=5)]
    assert found(query, rows) == [("a", 12)]
