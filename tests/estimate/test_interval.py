"""Estimates by the number, and every reason not to answer."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from partwise.estimate.formula import (
    Number,
    Operation,
    SquareRoot,
    SumAt,
    TotalAt,
    average,
    evaluate,
    is_null,
    used,
    variance,
)
from partwise.estimate.interval import Interval, NoEstimate, Totals, estimate, ratio_for, student


def totals(
    base: float = 1000.0,
    exact: float = 50.0,
    sampled: float = 40.0,
    squares: float = 100.0,
    largest: float | None = 2.0,
    differing: int = 40,
) -> Totals:
    return Totals((base,), (exact,), (sampled,), ((squares,),), (None if largest is None else (largest,),), differing)


def test_a_sum_to_the_number() -> None:
    found = estimate(TotalAt(0), totals(), 0.1)
    assert isinstance(found, Interval)
    assert found.value == 1000 + 50 + 40 / 0.1
    half = student(0.95, 39) * math.sqrt(0.9 / 0.01 * 100)
    assert found.high - found.value == pytest.approx(half)
    assert found.value - found.low == pytest.approx(half)
    assert found.largest_unknown == 2.0
    assert not found.exact


def test_a_whole_sample_is_exact() -> None:
    found = estimate(TotalAt(0), totals(differing=3, largest=None), 1.0)
    assert isinstance(found, Interval)
    assert found.exact
    assert found.value == 1090
    assert found.high - found.low < 1e-8


def test_where_no_key_is_unknown_the_value_is_exact() -> None:
    found = estimate(TotalAt(0), totals(sampled=0, squares=0, largest=0.0, differing=0), 0.1)
    assert isinstance(found, Interval)
    assert found.exact
    assert found.value == 1050


@pytest.mark.parametrize(
    "given, why",
    [
        (totals(differing=29), "few-keys"),
        (totals(differing=0, sampled=0, squares=0), "few-keys"),  # width 0 does not mean that nothing changed
        (totals(squares=11.9, largest=2.0), "large-key"),
        (totals(largest=None), "no-bound"),
        (totals(largest=math.inf), "large-key"),
    ],
)
def test_what_is_refused(given: Totals, why: str) -> None:
    found = estimate(TotalAt(0), given, 0.1)
    assert isinstance(found, NoEstimate)
    assert found.why == why


def test_the_rule_is_three_times_the_square() -> None:
    assert isinstance(estimate(TotalAt(0), totals(squares=12.0, largest=2.0), 0.1), Interval)


def test_a_division_by_zero_is_undefined() -> None:
    given = Totals((0.0, 0.0), (0.0, 0.0), (0.0, 0.0), ((0.0, 0.0), (0.0, 0.0)), ((1.0,), (1.0,)), 0)
    found = estimate(average(0, 1), given, 0.1)
    assert isinstance(found, NoEstimate)
    assert found.why == "undefined"


def test_gradients_equal_differences() -> None:
    formulas = [
        average(0, 2),
        variance(0, 1, 2, sample=True),
        SquareRoot(variance(0, 1, 2, sample=False)),
        Operation("+", Operation("*", TotalAt(0), Number(3.0)), Operation("-", Number(1.0), TotalAt(1))),
    ]
    at, step = [30.0, 200.0, 10.0], 1e-5
    for formula in formulas:
        found = evaluate(formula, at)
        assert found is not None
        for n in range(3):
            up, down = ([x + (s if i == n else 0) for i, x in enumerate(at)] for s in (step, -step))
            high, low = evaluate(formula, up), evaluate(formula, down)
            assert high is not None
            assert low is not None
            assert found.gradient[n] == pytest.approx((high.value - low.value) / (2 * step), abs=1e-6)


def test_variance_is_that_of_statistics() -> None:
    import statistics

    rows = [3.0, 5.0, 8.0, 1.0]
    sums = [sum(rows), sum(x * x for x in rows), 4.0]
    some, all_ = evaluate(variance(0, 1, 2, True), sums), evaluate(variance(0, 1, 2, False), sums)
    assert some is not None
    assert some.value == pytest.approx(statistics.variance(rows))
    assert all_ is not None
    assert all_.value == pytest.approx(statistics.pvariance(rows))
    assert used(variance(0, 1, 2, True)) == {0, 1, 2}


def test_a_flat_spread_is_not_answered() -> None:
    """The root of 0 moves by any factor: no interval can be given."""
    given = Totals((10.0, 10.0, 10.0), (0.0,) * 3, (0.0,) * 3, ((0.0,) * 3,) * 3, ((1.0,), (1.0,), (1.0,)), 50)
    assert isinstance(estimate(SquareRoot(variance(0, 1, 2, False)), given, 0.1), NoEstimate)


def test_the_ratio_that_it_would_take() -> None:
    assert ratio_for(10.0, 10.0, 0.1) == pytest.approx(0.1)
    needed = ratio_for(10.0, 5.0, 0.1)
    assert math.sqrt((1 - needed) / needed) == pytest.approx(math.sqrt(0.9 / 0.1) / 2)


def test_the_worked_example_of_the_docs() -> None:
    given = Totals((1_000_000.0,), (50_000.0,), (4_000.0,), ((800_000.0,),), ((516.0,),), 40)
    found = estimate(TotalAt(0), given, 0.1)
    assert isinstance(found, Interval)
    page = (Path(__file__).parents[2] / "docs/fresh_answers.md").read_text()
    for number in (found.value, found.low, found.high, found.high - found.value):
        assert f"{number:,.0f}" in page
    assert isinstance(estimate(TotalAt(0), replace(given, largest=((517.0,),)), 0.1), NoEstimate)


def test_a_sum_of_nothing_is_null_as_in_sql() -> None:
    assert not is_null(SumAt(0, 1), (0.0, 1.0))
    assert is_null(SumAt(0, 1), (0.0, 0.0))
    assert is_null(Operation("-", SumAt(0, 1), TotalAt(2)), (0.0, 0.0, 5.0))
    assert is_null(average(0, 1), (0.0, 0.0))
    assert is_null(variance(0, 1, 2, True), (4.0, 16.0, 1.0))
    assert not is_null(TotalAt(0), (0.0,))
