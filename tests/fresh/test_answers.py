"""Answers against the truth, computed from all fresh rows."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from partwise.fresh.answer import FreshAnswer, FreshCell
from partwise.fresh.asked.refused import Refused
from tests.fresh.tables import Rows, World, world


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
    assert found.unseen is not None
    assert found.unseen.keys == math.ceil(math.log(0.001) / math.log(0.8))
    assert found.unseen.rows == 2 * found.unseen.keys  # one in each of two dirty parts


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
    assert cell.published is None  # as SUM of no rows


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


QUANTILES = {"half": ("MEDIAN(x)", 0.5), "high": ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)", 0.9)}


def test_quantiles_cover_the_truth() -> None:
    """By inverting counts, over clean, stale and missing parts together."""
    sql = f"SELECT {', '.join(f'{text} AS {name}' for name, (text, _) in QUANTILES.items())} FROM v"
    covered = answered = 0
    for seed in range(12):
        made = world(seed, keys=900)
        (right,), found = made.truth(sql), made.answer(sql)
        for name, truth in zip(QUANTILES, right, strict=True):
            cell = the(found, name)
            if cell.method is not None:
                assert cell.low <= cell.estimate <= cell.high
                assert cell.estimate == pytest.approx(truth, rel=0.2)
                answered += 1
                covered += cell.low <= truth <= cell.high
    assert answered >= 20
    assert covered >= 0.85 * answered


def test_quantiles_by_group_with_conditions() -> None:
    made = world(20, keys=1500)
    sql = "SELECT region, MEDIAN(2 * x) FILTER (WHERE x > 10) AS a FROM v WHERE x < 200 GROUP BY region ORDER BY 1"
    found, right = made.answer(sql, confidence=0.999), made.truth(sql)
    for row, (_, truth) in zip(found.rows, right, strict=True):
        assert row.cells["a"].method == "correction from stand-in"
        assert row.cells["a"].low <= truth <= row.cells["a"].high


def test_few_keys_say_nothing_of_a_quantile() -> None:
    made = world(7)
    made.fresh = {p: list(rows) for p, rows in made.published.items()}
    made.fresh[2][5] = ("c5", "EU", 77.0)
    cell = the(made.answer("SELECT MEDIAN(x) AS a FROM v"), "a")
    assert cell.refused is not None
    assert cell.refused.code == "few-keys"
    assert cell.estimate is None


def test_largest_and_smallest_are_bounds() -> None:
    sql = "SELECT MAX(x) AS top, MIN(x) AS least FROM v"
    made = world(21)
    ((top, least),) = made.truth(sql)
    found = made.answer(sql)
    for name, truth, rising in (("top", top, True), ("least", least, False)):
        cell = the(found, name)
        assert cell.method == "bound"
        assert cell.bound is not None
        assert cell.bound.value <= truth if rising else cell.bound.value >= truth
        assert cell.bound.rows_beyond == 2 * math.ceil(math.log(0.05) / math.log(0.8))
        assert (cell.estimate, cell.low, cell.high) == (None, None, None)


def test_where_no_other_key_can_hold_more_the_largest_is_exact() -> None:
    made = world(22, keep=50)
    made.fresh[2].append(("giant", "EU", 1e7))
    cell = the(made.answer("SELECT MAX(x) AS a FROM v"), "a")
    assert cell.method == "exact"
    assert cell.estimate == 1e7


def test_the_largest_falls_when_it_was_retracted() -> None:
    made = world(23, keep=50)
    made.published[2].append(("gone", "EU", 1e7))
    cell = the(made.answer("SELECT MAX(x) AS a FROM v"), "a")
    assert cell.published == 1e7
    assert (cell.estimate if cell.bound is None else cell.bound.value) < 1e4


def test_a_mean_of_parts_stands_in() -> None:
    sql = "SELECT SUM(x) AS a, COUNT(*) AS n FROM v"
    one, three = (world(24, keep=100, stand_ins=n).answer(sql, confidence=0.999) for n in (1, 3))
    ((total, count),) = world(24).truth(sql)
    for name, truth in (("a", total), ("n", count)):
        cell = the(three, name)
        assert cell.method == "correction from stand-in"
        assert cell.low <= truth <= cell.high
    # Values of a part that are drawn again each time are nearer to the mean of three than to one of them.
    width = [the(found, "a").high - the(found, "a").low for found in (one, three)]
    assert width[1] < width[0]


def test_fewer_keys_than_were_kept_widen_the_interval() -> None:
    sql = "SELECT SUM(x) AS a FROM v"
    whole, some = world(25, keep=100).answer(sql), world(25, keep=100, used=0.1).answer(sql, confidence=0.999)
    ((truth,),) = world(25).truth(sql)
    assert some.ratio == 0.1
    assert 0.35 * whole.keys[0] < some.keys[0] < 0.65 * whole.keys[0]
    assert the(some, "a").low <= truth <= the(some, "a").high


def test_the_whole_sample_is_the_exact_answer() -> None:
    """A ratio of 100 % gives the exact answer for everything that can be asked."""
    made = world(26, keys=300, ratio=1.0)
    more = RESULTS | {"half": "MEDIAN(x)", "high": "QUANTILE_CONT(x, 0.9)", "top": "MAX(x)", "least": "MIN(x)"}
    sql = f"SELECT {', '.join(f'{text} AS {name}' for name, text in more.items())} FROM v"
    found, (right,) = made.answer(sql), made.truth(sql)
    for name, truth in zip(more, right, strict=True):
        cell = the(found, name)
        assert cell.method == "exact"
        assert cell.estimate == pytest.approx(truth, rel=1e-9)
        assert cell.high - cell.low <= 1e-6 * abs(truth)


def test_the_sample_alone_where_nothing_is_like_before() -> None:
    """Every sign has turned: differences are twice the values, so comparing would only add noise."""
    made = world(27, keys=2000, ratio=0.3)
    made.published = {2: [(k, g, -x) for k, g, x in made.fresh[2]]}
    made.fresh = {2: made.fresh[2]}
    sql = "SELECT SUM(x) AS a FROM v"
    ((truth,),) = made.truth(sql)
    cell = the(made.answer(sql, confidence=0.999), "a")
    assert cell.method == "sample"
    assert cell.low <= truth <= cell.high


def test_groups_that_follow_from_the_part_have_the_state_of_their_parts() -> None:
    made = world(28, keep=100)
    sql = "SELECT part // 2 AS half, SUM(x) AS s FROM v GROUP BY 1 ORDER BY 1"
    found, right = made.answer(sql, confidence=0.999), made.truth(sql)
    assert [row.cells["s"].method for row in found.rows] == ["exact", "correction from stand-in"]
    for row, (_, truth) in zip(found.rows, right, strict=True):
        assert row.cells["s"].low - 1e-6 <= truth <= row.cells["s"].high + 1e-6


def test_rows_with_three_counts() -> None:
    made = world(30, keys=1500, keep=50)
    found = made.answer("SELECT customer, x FROM v WHERE x > 30 ORDER BY customer", confidence=0.999)
    assert found.selected is not None
    assert found.selected.columns == ("customer", "x")
    exact = {(p, k) for p in (2, 3) for k in made.sizes(p)[0]}

    def shown(rows: Rows) -> list[tuple[int, str | None, float]]:
        return [(p, k, x) for p, some in rows.items() for k, _, x in some if x > 30]

    fresh = {(k, x) for p, k, x in shown(made.fresh) if p < 2 or (p, k) in exact or made.is_sampled(k)}
    kept = {(k, x) for p, k, x in shown(made.published) if p == 2 and (p, k) not in exact and not made.is_sampled(k)}
    assert {row for row, ok in found.selected.rows if ok} == fresh
    assert {row for row, ok in found.selected.rows if not ok} == kept
    assert [row[0] for row, _ in found.selected.rows] == sorted(
        (row[0] for row, _ in found.selected.rows), key=lambda k: (k is None, k)
    )
    before = {k: x for p, k, x in shown(made.published) if p == 2}
    after = {k: x for p, k, x in shown(made.fresh) if p == 2}
    truth = {
        "updated": sum(k in after and after[k] != x for k, x in before.items()),
        "added": sum(k not in before for k in after) + sum(p == 3 for p, _, _ in shown(made.fresh)),
        "gone": sum(k not in after for k in before),
    }
    for name, right in truth.items():
        cell = the(found, name)
        assert cell.method is not None or cell.refused is not None
        if cell.method is not None:
            assert cell.low <= right <= cell.high, name
    assert the(found, "updated").method == the(found, "added").method == "sample"


def test_rows_that_nothing_tells_apart_are_refused() -> None:
    with pytest.raises(Refused) as why:
        world(31, keys=100, unique=False).answer("SELECT * FROM v")
    assert why.value.code == "double-key"


def test_all_columns_of_rows() -> None:
    made = world(32, keys=300, ratio=1.0)
    found = made.answer("SELECT * FROM v")
    assert found.selected is not None
    assert found.selected.columns == ("part", "part_timestamp", "customer", "region", "x")
    assert all(ok for _, ok in found.selected.rows)
    assert sorted(map(str, (row for row, _ in found.selected.rows))) == sorted(
        map(str, made.truth("SELECT part, part_timestamp, customer, region, x FROM v"))
    )
    assert {c.method for c in found.rows[0].cells.values()} == {"exact"}


def test_null_groups_come_last_unless_first_is_asked_for() -> None:
    made = world(7, keys=300, keep=20)
    for rows in (*made.published.values(), *made.fresh.values()):
        rows[:] = [(k, None if x < 40 else g, x) for k, g, x in rows]  # type: ignore[misc]
    for order, wanted in (
        ("", ["EU", "US", None]),
        (" DESC", ["US", "EU", None]),
        (" NULLS FIRST", [None, "EU", "US"]),
    ):
        sql = f"SELECT region, COUNT(*) AS n FROM v GROUP BY region ORDER BY region{order}"
        assert [row.group["region"] for row in made.answer(sql).rows] == wanted == [r[0] for r in made.truth(sql)]


def test_a_sum_of_nothing_is_null_as_in_sql() -> None:
    made = world(8, keys=300, keep=400)
    sql = "SELECT SUM(x) FILTER (WHERE x < 0) AS s, AVG(x) FILTER (WHERE x < 0) AS a, SUM(x) - SUM(x) FILTER (WHERE x < 0) AS d FROM v"
    assert made.truth(sql) == [(None, None, None)]
    for name in ("s", "a", "d"):
        cell = the(made.answer(sql), name)
        assert (cell.method, cell.estimate, cell.published) == ("exact", None, None)
