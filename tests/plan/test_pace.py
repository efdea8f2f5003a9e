"""Long steps are cut by time, and repairs look further ahead each time."""

from __future__ import annotations

import math

from partwise.parts import Parts, Reference
from partwise.plan.pace import FIRST_ROWS, Pace
from partwise.plan.walk import Walk
from partwise.tables import Input, Table

TOTAL = Table("t", "view", 60, "f", (Input("m", Reference.same()), Input("t", Reference.same(-1))))


def test_the_first_lot_is_bounded_by_rows_and_the_next_by_time() -> None:
    pace = Pace(30.0)
    assert (pace.most_parts(1000), pace.most_rows(10**9), pace.over) == (1000, FIRST_ROWS, False)
    pace.took(10, 10.0)
    assert (pace.most_parts(1000), pace.most_rows(10**9), pace.over) == (20, 10**9, False)
    pace.took(20, 20.0)
    assert pace.over
    assert pace.most_parts(1000) == 1


def test_few_heavy_parts_are_waited_for_longer() -> None:
    pace = Pace(30.0)
    pace.took(3, 100.0)
    assert (pace.over, pace.most_parts(1000)) == (False, 1)
    pace.took(1, 20.0)
    assert pace.over


def test_limits_of_the_caller_hold() -> None:
    pace = Pace(30.0)
    assert pace.most_rows(10) == 10
    pace.took(1000, 0.001)
    assert pace.most_parts(50) == 50


def test_a_lot_that_takes_no_time_at_all_is_no_division_by_zero() -> None:
    pace = Pace(30.0)
    pace.took(5, 0.0)
    assert pace.most_parts(7) == 7


def test_a_step_may_have_all_the_time_there_is() -> None:
    pace = Pace(math.inf)
    pace.took(5, 1.0)
    assert (pace.most_parts(7), pace.over) == (7, False)


def test_a_step_computes_something_however_short_its_time_is() -> None:
    assert not Pace(0.0).over


def test_a_step_that_is_to_stop_publishes_what_it_has() -> None:
    pace = Pace(math.inf, lambda: True)
    assert not pace.over
    pace.took(1, 1.0)
    assert pace.over


def test_a_walk_hands_out_parts_ahead_and_takes_them_back() -> None:
    walk = Walk(TOTAL, Parts.single(3), Parts.of((4, 6), (8, 9)))
    assert next(walk) == 3
    assert walk.ahead(10) == [4, 5, 6]  # not beyond the gap
    walk.back(2)
    assert walk.ahead(1) == [5]
    # What was not computed in vain goes on as before: 6 is wanted because 5 changed.
    walk.changed(5)
    assert list(walk) == [6]


def test_a_walk_hands_out_nothing_that_needs_a_failed_part() -> None:
    walk = Walk(TOTAL, Parts.of((1, 4)), Parts())
    assert next(walk) == 1
    walk.failed(1)
    assert walk.ahead(5) == []
    assert list(walk) == []


def test_unchanged_parts_end_the_walk() -> None:
    walk = Walk(TOTAL, Parts.single(3), Parts.of((4, 9)))
    assert next(walk) == 3
    assert walk.ahead(2) == [4, 5]
    walk.changed(3)
    walk.changed(4)
    assert list(walk) == []  # 5 stayed the same, so 6 need not be looked at


def test_what_was_handed_out_is_handed_out_again() -> None:
    walk = Walk(TOTAL, Parts.of((1, 9)), Parts())
    assert [next(walk) for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    walk.again_from(3)
    walk.again_from(5)  # a larger lot that was given up as well takes nothing away from what is left of the smaller one
    assert list(walk) == [3, 4, 5, 6, 7, 8, 9]
