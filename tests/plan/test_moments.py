"""Parts that were computed at different times, and may be repaired from one version of their inputs."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from partwise.plan.moments import common_moments

SPANS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted), max_size=6)


@given(SPANS)
def test_every_part_stands_at_one_of_the_fewest_moments(spans: list[list[int]]) -> None:
    since, until = dict(enumerate(lo for lo, _ in spans)), dict(enumerate(hi for _, hi in spans))
    found = common_moments(since, until.__getitem__)
    assert sorted(j for parts in found.values() for j in parts) == sorted(since)
    assert all(since[j] <= moment <= until[j] for moment, parts in found.items() for j in parts)
    fewest = next(
        n
        for n in range(len(spans) + 1)
        for some in combinations(range(10), n)
        if all(set(some) & set(range(lo, hi + 1)) for lo, hi in spans)
    )
    assert len(found) == fewest
