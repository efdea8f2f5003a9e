"""What can be asked of a sample, and what is refused."""

from __future__ import annotations

import pytest

from partwise.fresh.asked.question import ask, views_of
from partwise.fresh.asked.refused import Refused

KEY = [("customer", "string")]


@pytest.mark.parametrize(
    "sql, what",
    [
        ("SELECT 2 * MAX(x) FROM v", "'MAX(x)'"),
        ("SELECT MEDIAN(x) + 1 FROM v", "'MEDIAN(x)'"),
        ("SELECT MAX(x, 3) FROM v", "'MAX(x, 3)'"),
        ("SELECT QUANTILE_CONT(x, [0.5, 0.9]) FROM v", "'QUANTILE_CONT(x, [0.5, 0.9])'"),
        ("SELECT PERCENTILE(x, 90) FROM v", "'PERCENTILE(x, 90)'"),
        ("SELECT MODE(x) FROM v", "'MODE(x)'"),
        ("SELECT v.* FROM v", "v.*"),
        ("SELECT *, x FROM v", "* beside other columns"),
        ("SELECT x FROM v LIMIT 3", "LIMIT"),
        ("SELECT DISTINCT x FROM v", "DISTINCT"),
        ("SELECT g FROM v GROUP BY g", "a list of groups"),
        ("SELECT SUM(x) FROM v LIMIT 3", "LIMIT"),
        ("SELECT g, SUM(x) FROM v GROUP BY g HAVING SUM(x) > 3", "HAVING"),
        ("SELECT DISTINCT SUM(x) FROM v", "DISTINCT"),
        ("SELECT COUNT(DISTINCT x) FROM v", "'COUNT(DISTINCT x)'"),
        ("SELECT SUM(x) OVER () FROM v", "a window function"),
        ("SELECT SUM(x) FROM a JOIN b USING (k)", "a join"),
        ("SELECT SUM(x) FROM a, b", "a join"),
        ("SELECT SUM(x) FROM (SELECT 1 AS x)", "a sub-query"),
        ("SELECT SUM(x) FROM v WHERE x > (SELECT 3)", "a sub-query"),
        ("WITH w AS (SELECT 1 AS x) SELECT SUM(x) FROM w", "WITH"),
        ("SELECT g, SUM(x) AS s FROM v GROUP BY g ORDER BY s", "ORDER BY an estimate"),
        ("SELECT SUM(x) FROM v WHERE random() < 0.5", "'RANDOM()'"),
        ("SELECT SUM(x) FROM v UNION SELECT 1", "anything but one SELECT"),
        ("DELETE FROM v", "anything but one SELECT"),
        ("SELECT g, SUM(x) FROM v GROUP BY ROLLUP (g)", ""),
        ("SELECT COUNT(x, y) FROM v", "'COUNT(x, y)'"),
        ("SELECT 1", "a query without one view in FROM"),
    ],
)
def test_refused(sql: str, what: str) -> None:
    with pytest.raises(Refused) as why:
        ask(sql, KEY)
    assert why.value.code == "not-answerable"
    assert why.value.message.startswith(f"{what} cannot" if what else "")
    assert why.value.hint


def test_what_cannot_be_read() -> None:
    with pytest.raises(Refused) as why:
        ask("SELECT SUM(x", KEY)
    assert why.value.code == "sql"


def test_totals_are_added_up_once() -> None:
    found = ask("SELECT SUM(x) AS a, AVG(x) AS b, SUM(x) / COUNT(*) AS c FROM v", KEY)
    assert [total.row is None for total in found.totals] == [False, True, True]
    assert found.coupled == ((0, 1), (0, 2))


def test_conditions_on_time_choose_parts() -> None:
    found = ask("SELECT SUM(x) AS a FROM v WHERE part_timestamp >= '2026-10-03' AND x > 1 AND (part < 9)", KEY)
    assert found.parts == ("part_timestamp >= '2026-10-03'", "part < 9")


@pytest.mark.parametrize(
    "where, keys",
    [
        ("customer = 'a'", ("a",)),
        ("'a' = customer AND x > 1", ("a",)),
        ("v.customer IN ('a', 'b')", ("a", "b")),
        ("customer = 'a' OR x > 1", None),
        ("customer <> 'a'", None),
        ("customer IN ('a', other)", None),
        ("NOT customer = 'a'", None),
        ("lower(customer) = 'a'", None),
        ("customer = other", None),
        ("customer NOT IN ('a')", None),
    ],
)
def test_keys_that_a_condition_leaves(where: str, keys: tuple[str, ...] | None) -> None:
    assert ask(f"SELECT SUM(x) AS a FROM v WHERE {where}", KEY).keys == keys


@pytest.mark.parametrize(
    "kind, value, text",
    [
        ("bigint", "-5", "-5"),
        ("bigint", "'5'", None),
        ("date", "'2026-10-03'", "2026-10-03"),
        ("date", "DATE '2026-10-03'", "2026-10-03"),
        ("date", "'today'", None),
        ("boolean", "TRUE", "true"),
        ("decimal(10,2)", "1.5", "1.50"),
        ("decimal(10,2)", "-0.0", "0.00"),
        ("decimal(10,2)", "1.501", None),
        ("decimal(20,8)", "1.5", None),
        ("string", "5", None),
    ],
)
def test_keys_of_other_types_are_texts_as_they_are_hashed(kind: str, value: str, text: str | None) -> None:
    found = ask(f"SELECT SUM(x) AS a FROM v WHERE k = {value}", [("k", kind)]).keys
    assert found == (None if text is None else (text,))


def test_keys_of_several_columns() -> None:
    key = [("customer", "string"), ("shop", "int")]
    found = ask("SELECT SUM(x) AS a FROM v WHERE shop IN (1, 2) AND customer = 'a'", key)
    assert (found.keys, found.pinned) == (None, (("customer", ("a",)), ("shop", ("1", "2"))))
    assert ask("SELECT SUM(x) AS a FROM v WHERE shop = 1", key).pinned == (("shop", ("1",)),)
    assert ask("SELECT SUM(x) AS a FROM v WHERE x = 1", key).pinned == ()


def test_a_column_of_the_view_comes_before_a_name_of_select() -> None:
    with pytest.raises(Refused):
        ask("SELECT upper(region) AS region, SUM(x) AS s FROM v GROUP BY region", KEY)
    found = ask("SELECT upper(region) AS r, SUM(x) AS s FROM v GROUP BY r", KEY)
    assert found.groups == (("r", "UPPER(region)"),)


def test_groups_by_name_number_and_alias_are_the_same() -> None:
    for group in ("region", "1", "r"):
        found = ask(f"SELECT region AS r, SUM(x) AS s FROM v GROUP BY {group} ORDER BY 1 DESC", KEY)
        assert found.groups == (("r", "region"),)
        assert found.order == ((0, True, False),)
    assert views_of("SELECT SUM(x) FROM Revenue r") == ["Revenue"]
