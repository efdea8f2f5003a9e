"""Which steps share a job: those of the same arrival, the most urgent first, as many as fit."""

from __future__ import annotations

from partwise.choose.together import MOST_READ, Room, grouped
from partwise.parts import Range
from partwise.plan.model import Step
from partwise.settings import Batch


def step(table: str, lo: int, hi: int) -> Step:
    return Step(table, Range(lo, hi), "missing", "arrived")


STEPS = [step("a", 5, 5), step("hour", 5, 5), step("b", 4, 6), step("itself", 5, 5), step("c", 7, 9), step("d", 5, 5)]


def names(views: int, steps: list[Step] = STEPS) -> list[list[str]]:
    length = {"hour": 3600}
    found = grouped(steps, lambda t: length.get(t, 60), lambda t: t != "itself", Batch(views=views))
    return [[step.table for step in group] for group in found]


def test_steps_over_the_same_parts_are_together() -> None:
    assert names(20) == [["a", "b", "d"], ["hour"], ["itself"], ["c"]]
    assert names(20, STEPS[::-1]) == [["d", "b", "a"], ["c"], ["itself"], ["hour"]]


def test_a_job_has_at_most_so_many_tables() -> None:
    assert names(2) == [["a", "b"], ["hour"], ["itself"], ["c"], ["d"]]
    assert names(1) == [["a"], ["hour"], ["b"], ["itself"], ["c"], ["d"]]


def test_a_job_stays_small() -> None:
    room = Room(Batch(rows=100))
    assert room.takes(60, 10)
    assert not room.takes(60, 10)
    assert room.takes(40, MOST_READ - 10)
    assert not room.takes(0, 1)
