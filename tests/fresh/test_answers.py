"""Answers against the truth, computed from all fresh rows."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from partwise.fresh.answer import FreshAnswer, FreshCell
from tests.fresh.tables import World, world


def cells(found: FreshAnswer, name: str) -> list[FreshCell]:
    return [row.cells[name] for row in found.rows]


def the(found: FreshAnswer, name: str) -> FreshCell:
    (cell,) = cells(found, name)
    return cell


RESULTS = {
    "total": "SUM(x)",
    "rows": "COUNT(*)",
    "mean": "AVG(x)",
    "quotient": "SUM(x) / COUNT(*)",
    "some": "SUM(x) FILTER (WHERE region = 'EU')",
    "scaled": "SUM(2 * x + 1)",
    "spread": "STDDEV(x)",
}
ALL = f"SELECT {', '.join(f'{text} AS {name}' for name, text in RESULTS.items())} FROM v"


def test_intervals_cover_the_truth() -> None:
    """Worlds with a sample each: of all cells that are answered about 95 % cover, and most cells are answered."""
    answered: Counter[str] = Counter()
    covered: Counter[str] = Counter()
    for seed in range(15):
        made = world(seed, keys=900, keep=90)
        (right,), found = made.truth(ALL), made.answer(ALL)
        for name, truth in zip(RESULTS, right, strict=True):
            cell = the(found, name)
            if cell.method is not None:
                answered[name] += 1
                covered[name] += cell.low <= float(truth) <= cell.high
    for name in ("total", "rows", "mean", "quotient", "some", "scaled"):
        assert answered[name] >= 10, answered
    # Cells of one world share their sample, so that a bad one misses several.
    assert covered.total() >= 0.85 * answered.total()


def test_groups_have_their_own_intervals() -> None:
    made = world(1, keep=100)
    sql = "SELECT region, SUM(x) AS s, COUNT(*) AS n FROM v GROUP BY region ORDER BY region DESC"
    found, right = made.answer(sql, confidence=0.999), made.truth(sql)
    assert [row.group["region"] for row in found.rows] == ["US", "EU"] == [r[0] for r in right]
    for row, (_, total, count) in zip(found.rows, right, strict=True):
        for cell, truth in ((row.cells["s"], total), (row.cells["n"], count)):
            assert cell.method == "correction from stand-in"
            assert cell.low <= truth <= cell.high
    assert found.unseen == math.ceil(math.log(0.001) / math.log(0.8))


def test_by_part_clean_parts_are_exact() -> None:
    made = world(2, keep=100)
    sql = "SELECT part, SUM(x) AS s FROM v GROUP BY part ORDER BY part"
    found, right = made.answer(sql, confidence=0.999), made.truth(sql)
    assert [row.cells["s"].method for row in found.rows] == ["exact", "exact", "correction", "correction from stand-in"]
    for row, (_, truth) in zip(found.rows, right, strict=True):
        assert row.cells["s"].low - 1e-6 <= truth <= row.cells["s"].high + 1e-6


def test_a_stand_in_is_chosen_by_the_time_of_the_missing_part() -> None:
    """The stand-in lies before the condition; its rows stand for a part after it."""
    made = world(3, keep=100)
    sql = "SELECT SUM(x) AS s FROM v WHERE part_timestamp >= '1970-01-01 03:00:00+00'"
    ((right,),) = made.truth(sql)
    made_of = made.answer(sql, confidence=0.999)
    cell = the(made_of, "s")
    assert cell.low <= right <= cell.high
    assert cell.published == 0


def test_when_all_keys_are_exact_so_is_the_answer() -> None:
    made = world(4, keys=300, keep=400)
    (right,) = made.truth(ALL)
    found = made.answer(ALL)
    for name, truth in zip(RESULTS, right, strict=True):
        cell = the(found, name)
        assert cell.method == "exact"
        assert cell.estimate == pytest.approx(truth, rel=1e-9)
        assert cell.high - cell.low < 1e-6 * abs(truth)


def test_keys_that_are_listed_are_exact() -> None:
    made = world(5, keys=300, listed=tuple(f"c{n}" for n in range(300) if n != 3), ratio=0.5)
    made.published = {p: [r for r in rows if r[0]] for p, rows in made.published.items()}
    made.fresh = {p: [r for r in rows if r[0]] for p, rows in made.fresh.items()}
    ((right,),) = made.truth("SELECT SUM(x) AS a FROM v")
    cell = the(made.answer("SELECT SUM(x) AS a FROM v"), "a")
    assert cell.method == "exact"
    assert cell.estimate == pytest.approx(right)


def test_a_giant_outside_the_sample_is_refused_or_exact_never_missed() -> None:
    for seed in range(3):
        for keep in (0, 20):
            made = world(seed, keep=keep)
            made.fresh[2].append(("giant", "EU", 1e7))
            cell = the(made.answer("SELECT SUM(x) AS a FROM v"), "a")
            if keep == 0:
                assert cell.method is None
                assert cell.refused is not None
                assert cell.refused.code == "large-key"
                assert cell.estimate is None
            elif cell.method is not None:
                ((right,),) = made.truth("SELECT SUM(x) AS a FROM v")
                assert abs(cell.estimate - right) < 1e5


def test_a_giant_of_a_stand_in_does_not_count() -> None:
    made = world(6, keep=100)
    made.published[2].append(("was", "EU", 1e7))
    sql = "SELECT SUM(x) AS a FROM v"
    ((right,),) = made.truth(sql)
    cell = the(made.answer(sql, confidence=0.999), "a")
    assert cell.low <= right <= cell.high
    assert cell.published > 1e7


def test_few_changes_are_refused_and_no_change_in_the_sample_is_not_no_change() -> None:
    made = world(7)
    made.fresh = {p: list(rows) for p, rows in made.published.items()}
    made.fresh[2][5] = ("c5", "EU", 77.0)
    cell = the(made.answer("SELECT COUNT(*) AS n, SUM(x) AS a FROM v"), "a")
    assert cell.refused is not None
    assert cell.refused.code in ("few-keys", "large-key")
    assert (cell.estimate, cell.low, cell.high) == (None, None, None)


def test_what_has_no_bound_is_refused() -> None:
    made = world(8, sized=False)
    found = made.answer("SELECT SUM(x) AS a, SUM(x * x) AS b, COUNT(*) AS n FROM v")
    assert {r.column: r.code for r in found.refused} == {"a": "no-bound", "b": "no-bound"}
    assert the(found, "n").method == "correction from stand-in"


def test_too_wide_an_interval_is_refused_with_what_it_would_take() -> None:
    made = world(9, keep=100)
    found = made.answer("SELECT SUM(x) AS a FROM v", within=0.0001)
    (why,) = found.refused
    assert why.code == "too-wide"
    assert "would do" in why.hint
    assert the(made.answer("SELECT SUM(x) AS a FROM v", within=0.5), "a").method is not None


def test_negative_values_double_the_bound() -> None:
    made = world(10, keep=100)
    made.fresh[3] = [(k, g, -x) for k, g, x in made.fresh[3]]
    cell = the(made.answer("SELECT SUM(x) AS a FROM v", confidence=0.999), "a")
    if cell.method is not None:
        ((right,),) = made.truth("SELECT SUM(x) AS a FROM v")
        assert cell.low <= right <= cell.high


def test_several_rows_of_a_key_count_together() -> None:
    made = world(11, keep=100, unique=False)
    for rows in (*made.fresh.values(), *made.published.values()):
        rows += [(k, "US", 1.0) for k, _, _ in rows[::2]]
    sql = "SELECT COUNT(*) AS a FROM v"
    cell = the(made.answer(sql, confidence=0.999), "a")
    ((right,),) = made.truth(sql)
    assert cell.method is None or cell.low <= right <= cell.high


def test_without_a_stand_in_the_part_is_sampled() -> None:
    made = world(12, keep=100)
    made.published.pop(2)
    made.published.pop(1)
    made.published.pop(0)
    made.fresh = {3: made.fresh[3]}
    sql = "SELECT SUM(x) AS a FROM v"
    cell = the(made.answer(sql, confidence=0.999), "a")
    ((right,),) = made.truth(sql)
    assert cell.method == "sample"
    assert cell.low <= right <= cell.high


def test_nothing_dirty_is_exact() -> None:
    made = world(13)
    made.fresh = {p: list(rows) for p, rows in made.published.items()}
    assert isinstance(made, World)
    cell = the(made.answer("SELECT SUM(x) AS a FROM v"), "a")
    assert cell.method == "exact"
    assert cell.estimate == cell.published
