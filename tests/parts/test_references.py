"""The law of references: p in requires(j) iff j in feeds(p), for every form and for mixed lengths."""

from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.parts import FOREVER, Bound, Parts, Range, Reference

INDEX = st.integers(-3_000, 3_000)
SMALL = st.integers(-50, 50)


@st.composite
def references(draw: st.DrawFn) -> Reference:
    """Both ends of one slope, in order: what definitions allow."""
    times, over = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    common = gcd(times, over)
    times, over = times // common, over // common
    first = draw(SMALL)
    return Reference(Bound(times, first, over), Bound(times, first + draw(st.integers(0, 200)), over))


@st.composite
def same_time(draw: st.DrawFn) -> tuple[Reference, int, int]:
    """The parts of a table that overlap a view's part, and both lengths in seconds."""
    view, other = draw(st.integers(1, 120)), draw(st.integers(1, 120))
    common = gcd(view, other)
    times, over = view // common, other // common
    return Reference(Bound(times, 0, over), Bound(times, times - 1, over)), view, other


@given(references(), INDEX)
def test_requires_and_feeds_are_inverse(reference: Reference, j: int) -> None:
    lo, hi = reference.requires(j)
    for p in range(lo - 3, hi + 4):
        assert (p in reference.requires(j)) == (j in reference.feeds(p))


@given(references(), INDEX)
def test_feeds_is_inverse_seen_from_the_other_side(reference: Reference, p: int) -> None:
    lo, hi = reference.feeds(p)
    for j in range(min(lo, hi) - 3, max(lo, hi) + 4):
        assert (j in reference.feeds(p)) == (p in reference.requires(j))


@given(same_time(), INDEX)
def test_mixed_lengths_read_the_parts_that_overlap_in_time(given_: tuple[Reference, int, int], j: int) -> None:
    reference, view, other = given_
    begin, end = j * view, (j + 1) * view
    lo, hi = reference.requires(j)
    for p in range(lo - 2, hi + 3):
        overlaps = p * other < end and (p + 1) * other > begin
        assert overlaps == (p in reference.requires(j))
        assert overlaps == (j in reference.feeds(p))


@given(references(), st.lists(st.tuples(INDEX, st.integers(0, 40)), max_size=5))
def test_feeds_of_a_set_is_the_union(reference: Reference, runs: list[tuple[int, int]]) -> None:
    parts = Parts.of(*((lo, lo + size) for lo, size in runs))
    expected = {j for p in parts for j in range(reference.feeds(p).lo, reference.feeds(p).hi + 1)}
    assert set(reference.feeds_parts(parts)) == expected


@given(references(), st.lists(st.tuples(SMALL, st.integers(0, 60)), max_size=4))
def test_covered_by_are_the_indexes_whose_parts_all_exist(reference: Reference, runs: list[tuple[int, int]]) -> None:
    existing = Parts.of(*((lo, lo + size) for lo, size in runs))
    covered = reference.covered_by(existing)
    have = set(existing)
    edge = range(min(have, default=0) - 5, max(have, default=0) + 5)
    around = {j for p in edge for j in reference.feeds(p)} | set(covered)
    for j in around:
        lo, hi = reference.requires(j)
        assert (j in covered) == all(p in have for p in range(lo, hi + 1))


@given(references(), INDEX)
def test_parts_without_end_feed_parts_without_end(reference: Reference, lo: int) -> None:
    assert reference.feeds_range(Range(lo, FOREVER)).hi == FOREVER
    assert reference.feeds_range(Range(lo, FOREVER)).lo == reference.feeds_range(Range(lo, lo)).lo
    assert reference.covered_by(Parts.of((lo, FOREVER))).last == FOREVER


@given(st.integers(1, 300), SMALL, st.integers(1, 300), INDEX)
def test_lowest_terms_mean_the_same(times: int, plus: int, over: int, j: int) -> None:
    bound = Bound(times, plus, over)
    assert gcd(bound.times, bound.over) == 1
    assert bound.at(j) == (times * j + plus) // over


@given(references(), st.integers(-300, 300))
def test_always_forward_is_a_matter_of_the_added_numbers(reference: Reference, shift: int) -> None:
    other = Reference(reference.lo, Bound(reference.lo.times, reference.lo.plus + shift, reference.lo.over))
    assert other.always_forward() == (shift >= 0)


def test_always_forward_with_a_long_period() -> None:
    assert not Reference(Bound(1, 15_001, 30_000), Bound(1, 15_000, 30_000)).always_forward()
    assert not Reference(Bound(1), Bound(2)).always_forward()


@pytest.mark.parametrize(
    "reference, j, parts, text",
    [
        (Reference.same(), 7, (7, 7), "[j]"),
        (Reference.same(-1), 7, (6, 6), "[j-1]"),
        (Reference.window(-9, 0), 7, (-2, 7), "[j-9..j]"),
        (Reference(Bound(60), Bound(60, 59)), 2, (120, 179), "[60*j..60*j+59]"),
        (Reference(Bound(1, 0, 60), Bound(1, 0, 60)), 119, (1, 1), "[j/60]"),
        (Reference(Bound(1, 0, 60), Bound(1, 0, 60)), -1, (-1, -1), "[j/60]"),
        (Reference(Bound(3, 0, 2), Bound(3, 2, 2)), 3, (4, 5), "[3*j/2..(3*j+2)/2]"),
    ],
)
def test_forms(reference: Reference, j: int, parts: tuple[int, int], text: str) -> None:
    assert reference.requires(j) == Range(*parts)
    assert reference.text() == text


@pytest.mark.parametrize("times, over", [(0, 1), (-1, 1), (1, 0), (1, -2)])
def test_a_bound_must_grow(times: int, over: int) -> None:
    with pytest.raises(ValueError, match="grow"):
        Bound(times, 0, over)
