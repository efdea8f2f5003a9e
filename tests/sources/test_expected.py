"""What is still to come: the estimate against arrival processes whose truth is known, and against brute force."""

from __future__ import annotations

import random
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.sources.expected import Arrivals, Behind, OnTime, StillToCome

MINUTE, HOUR, DAY = 60, 3600, 86400
#: Of the parts: 30 % get a late delivery after about an hour, 5 % one after about two days. So the truth is known.
PROCESS = ((0.30, HOUR), (0.05, 2 * DAY))


def delays(rng: random.Random) -> list[float]:
    return [rng.uniform(0.5, 1.5) * mean for chance, mean in PROCESS if rng.random() < chance]


def true_deliveries(age: float) -> float:
    """For each part after this age: chance times what is left of the uniform distribution."""
    return sum(chance * min(1.0, max(0.0, (1.5 * mean - age) / mean)) for chance, mean in PROCESS)


def history(days: float, seed: int, length: int = 5 * MINUTE) -> Arrivals:
    """Parts come on time with ten rows, late deliveries bring one; nothing is seen after now."""
    rng = random.Random(seed)
    parts = int(days * DAY / length)
    now = float(parts * length)
    behind = tuple(Behind(delay, 1) for p in range(parts) for delay in delays(rng) if (p + 1) * length + delay <= now)
    on_time = OnTime(10 * parts, parts)
    return Arrivals(length, 0, 0.0, now, behind, on_time, on_time)


def naive(seen: Arrivals, age: float) -> float:
    """Deliveries after this age, divided by all parts, however young."""
    return sum(each.age > age for each in seen.behind) / seen.all.parts


@pytest.mark.parametrize("age", [0, 30 * MINUTE, HOUR, 6 * HOUR, DAY, 2 * DAY])
def test_it_is_unbiased_where_most_parts_are_young(age: int) -> None:
    """Four days of history, deliveries up to three days late: three parts of four are too young for the latest ones."""
    runs = [history(4, seed) for seed in range(40)]
    found = [StillToCome(seen).deliveries(age) for seen in runs]
    error = stdev(found) / len(found) ** 0.5
    assert fmean(found) == pytest.approx(true_deliveries(age), abs=3 * error + 1e-12)
    if age >= 6 * HOUR:  # the share of what was seen is far too low, in every single run
        assert fmean(naive(seen, age) for seen in runs) < 0.7 * true_deliveries(age)


def test_what_nobody_could_see_is_not_claimed_to_be_nothing() -> None:
    seen = history(1, 7)
    assert StillToCome(seen).deliveries(DAY) == 0
    assert StillToCome(seen).known < DAY  # which tells that the nothing above means nothing
    assert StillToCome(history(10, 7)).known > 9 * DAY


def test_parts_that_were_old_when_the_ledger_began_count_from_there_on() -> None:
    """A year of history is loaded at once and watched for four days: late rows of old parts come as to any others."""
    length, begun = HOUR, 365 * DAY
    rng = random.Random(3)
    parts = range((begun + 4 * DAY) // length)
    now = float(begun + 4 * DAY)
    behind = tuple(
        Behind(delay, 1)
        for p in parts
        for delay in (rng.uniform(0, 10 * DAY) for _ in range(5))
        if begun <= (p + 1) * length + delay <= now
    )
    found = StillToCome(Arrivals(length, 0, float(begun), now, behind, OnTime(), OnTime(10 * len(parts), len(parts))))
    for age in (0, DAY, 3 * DAY, 5 * DAY, 9 * DAY):
        assert found.deliveries(age) == pytest.approx(5 * (1 - age / (10 * DAY)), rel=0.25)


@given(
    length=st.integers(1, 7),
    first=st.integers(-5, 5),
    begun=st.integers(-20, 60),
    lasted=st.integers(0, 60),
    age=st.integers(0, 90),
)
def test_parts_watched_at_an_age_are_counted_as_one_by_one(
    length: int, first: int, begun: int, lasted: int, age: int
) -> None:
    seen = Arrivals(length, first, float(begun), float(begun + lasted))
    one_by_one = sum(begun <= (p + 1) * length + age <= begun + lasted for p in range(first, 200))
    assert seen.parts_at(age) == one_by_one


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(1, 9)), max_size=30), st.integers(0, 420))
def test_the_sums_are_those_of_the_definition(late: list[tuple[int, int]], age: int) -> None:
    seen = Arrivals(1, 0, 0.0, 401.0, tuple(Behind(float(a), n) for a, n in late))
    found = StillToCome(seen)
    after = [(1 / seen.parts_at(a), n) for a, n in late if a > age]
    assert found.deliveries(age) == pytest.approx(sum(weight for weight, _ in after))
    assert found.rows(age) == pytest.approx(sum(weight * n for weight, n in after))
    assert found.seen(age) == len(after)


def test_rows_that_are_refused_are_not_expected() -> None:
    seen = history(10, 1)
    bounded = StillToCome(seen, horizon=DAY)
    assert bounded.known == DAY
    assert bounded.deliveries(DAY) == 0
    assert bounded.deliveries(0) == pytest.approx(StillToCome(seen).deliveries(0) - StillToCome(seen).deliveries(DAY))


def test_without_complete_parts_no_share_is_known() -> None:
    assert StillToCome(Arrivals(60, 0, 30.0, 30.0)).share(0) is None
