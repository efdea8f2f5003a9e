"""Sets of parts kept as ranges, against plain Python sets."""

from hypothesis import given
from hypothesis import strategies as st

from partwise.parts import FOREVER, Parts, Range

RANGES = st.lists(st.tuples(st.integers(-40, 40), st.integers(-45, 45)), max_size=8)


def plain(ranges: list[tuple[int, int]]) -> set[int]:
    return {p for lo, hi in ranges for p in range(lo, hi + 1)}


def well_formed(parts: Parts) -> bool:
    inside = all(r.lo <= r.hi for r in parts.ranges)
    return inside and all(a.hi + 1 < b.lo for a, b in zip(parts.ranges, parts.ranges[1:], strict=False))


@given(RANGES)
def test_of_is_the_union(ranges: list[tuple[int, int]]) -> None:
    parts = Parts.of(*ranges)
    assert well_formed(parts)
    assert list(parts) == sorted(plain(ranges))
    assert parts.count == len(plain(ranges))
    assert bool(parts) == bool(plain(ranges))
    assert all((p in parts) == (p in plain(ranges)) for p in range(-60, 60))
    if parts:
        assert (parts.first, parts.last) == (min(plain(ranges)), max(plain(ranges)))


@given(RANGES, RANGES)
def test_algebra(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    one, two = Parts.of(*a), Parts.of(*b)
    for made, expected in [
        (one | two, plain(a) | plain(b)),
        (one & two, plain(a) & plain(b)),
        (one - two, plain(a) - plain(b)),
    ]:
        assert well_formed(made)
        assert set(made) == expected


@given(RANGES, st.integers(-50, 50), st.integers(-50, 50))
def test_within_and_covers(ranges: list[tuple[int, int]], lo: int, hi: int) -> None:
    parts, wanted = Parts.of(*ranges), set(range(lo, hi + 1))
    assert set(parts.within(lo, hi)) == plain(ranges) & wanted
    assert parts.covers(lo, hi) == (wanted <= plain(ranges))


@given(st.lists(st.integers(-50, 50), max_size=20))
def test_single(parts: list[int]) -> None:
    assert list(Parts.single(*parts)) == sorted(set(parts))


@given(RANGES)
def test_equal_sets_are_equal_and_hash_alike(ranges: list[tuple[int, int]]) -> None:
    again = Parts.single(*plain(ranges))
    assert Parts.of(*ranges) == again
    assert hash(Parts.of(*ranges)) == hash(again)


def test_a_year_of_minutes_is_one_range() -> None:
    year = Parts.of(*((day * 1440, day * 1440 + 1439) for day in range(365)))
    assert year.ranges == (Range(0, 525_599),)
    assert year.count == 525_600


def test_without_end() -> None:
    later = Parts.of((5, FOREVER))
    assert 10**12 in later
    assert 4 not in later
    assert (later - Parts.of((10, FOREVER))).ranges == (Range(5, 9),)
    assert later.covers(7, FOREVER)
