"""Guesses from recorded steps, and the line that people watch."""

from __future__ import annotations

import pytest

from partwise.backfill import StepTime, about, bar, estimate


def test_a_step_costs_something_and_so_does_each_part() -> None:
    history = [StepTime(n, 10 * n, 2.0 + 0.5 * n) for n in (1, 4, 10, 100)]
    found = estimate(history, 1000, at_once=500)
    assert (found.rows, found.seconds) == (10_000, pytest.approx(2 * 2.0 + 1000 * 0.5))


@pytest.mark.parametrize(
    "history, seconds",
    [
        ([], None),
        ([StepTime(1, 5, 3.0)] * 4, 30.0),
        ([StepTime(10, 5, 1.0), StepTime(1, 5, 2.0)], pytest.approx(10 * 1.05)),  # a line downwards says nothing
    ],
)
def test_little_to_go_by(history: list[StepTime], seconds: float | None) -> None:
    assert estimate(history, 10, rows=7).seconds == seconds
    assert estimate(history, 10, rows=7).rows == 7


def test_the_bar_tells_what_is_done_unchanged_and_left() -> None:
    assert bar(0, 0, 40, 0.0, 80) == "[........................] 0 of 40 parts, 40 left, about 80 seconds"
    assert bar(10, 3, 30, 21.0) == "[######..................] 10 of 40 parts, 3 unchanged, 30 left, about 63 seconds"
    assert bar(40, 3, 0, 20.0) == "[########################] 40 of 40 parts, 3 unchanged"
    assert [about(s) for s in (0.2, 100, 7200, 400_000)] == [
        "about 1 second",
        "about 2 minutes",
        "about 2 hours",
        "about 5 days",
    ]
