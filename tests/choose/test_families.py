"""Windows over the same panes are chosen together: the cheapest sum of all, found exactly."""

from __future__ import annotations

from itertools import product

import pytest

from partwise.choose.families import PANES, saved, together
from partwise.choose.window import SCATTERED, TABLE, WRITTEN, by_counts, costs_of
from partwise.compile.model import Strategy, WindowShape


def shape(panes: int, rolls: bool = True) -> WindowShape:
    return WindowShape("m", 1, panes, 1, rolls)


def made(rows: int, groups: int) -> float:
    return TABLE + (1 + SCATTERED * min(1.0, groups / rows)) * rows + WRITTEN * groups


def cost(chosen: tuple[Strategy, ...], shapes: list[WindowShape], rows: int, groups: int) -> float:
    """Written down by itself: each way at its price, panes of a kind once."""
    total = 0.0
    for strategy, each in zip(chosen, shapes, strict=True):
        total += costs_of(each, rows, groups)[strategy] - (made(rows, groups) if strategy in PANES else 0)
    return total + made(rows, groups) * len(set(chosen) & set(PANES))


@pytest.mark.parametrize("rows", [20_000, 200_000, 1_000_000, 10_000_000])
@pytest.mark.parametrize("groups", [100, 1_000, 20_000])
@pytest.mark.parametrize("windows", [(2,), (5, 10), (3, 30, 120), (2, 5, 20, 60), (5, 10, 15, 30, 60)])
def test_it_is_the_best_of_all_choices(rows: int, groups: int, windows: tuple[int, ...]) -> None:
    shapes = [shape(panes, rolls=at % 2 == 0) for at, panes in enumerate(windows)]
    every = product(*(list(costs_of(each, rows, groups)) for each in shapes))
    best = min(cost(chosen, shapes, rows, groups) for chosen in every)
    found = together(shapes, rows, groups)
    assert cost(found, shapes, rows, groups) == pytest.approx(best)


def test_alone_it_is_what_counts_say() -> None:
    for panes, rows in product((2, 5, 20, 100), (1_000, 100_000, 10_000_000)):
        assert together([shape(panes)], rows, 500) == (by_counts(shape(panes), rows, 500).strategy,)


def test_many_pay_for_panes_that_none_would_pay_for() -> None:
    shapes = [shape(panes) for panes in (6, 8, 10, 12, 14, 16, 18, 20)]
    assert {by_counts(each, 200_000, 1_000).strategy for each in shapes[:3]} == {"recompute"}
    assert set(together(shapes, 200_000, 1_000)) == {"merge"}


def test_panes_that_are_there_cost_nothing() -> None:
    assert together([shape(6)], 200_000, 1_000) == ("recompute",)
    assert together([shape(6)], 200_000, 1_000, paid=["merge"]) == ("merge",)


def test_what_ten_windows_save() -> None:
    """As it was simulated: 200,000 rows, 1,000 groups."""
    assert saved([shape(panes) for panes in (5, 10, 15, 20, 30)], 200_000, 1_000) < 0.5
    assert saved([shape(panes) for panes in range(5, 55, 5)], 200_000, 1_000) < 0.35
    assert saved([shape(5)], 20_000, 1_000) == 1
