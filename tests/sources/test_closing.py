"""When parts close, against the words of the rule, part by part."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partwise.parts import FOREVER, Parts
from partwise.sources.closing import MICROS, MOST_EMPTY, by_delay, by_marker, complete_before

some_parts = st.sets(st.integers(-20, 20), max_size=8).map(lambda found: Parts.single(*found))


@given(
    watermark=st.integers(-30 * 60 * MICROS, 30 * 60 * MICROS),
    delay=st.integers(0, 300),
    existing=some_parts,
    opened=some_parts,
)
def test_delay_closes_exactly_what_event_time_has_passed(
    watermark: int, delay: int, existing: Parts, opened: Parts
) -> None:
    opened -= existing
    found = by_delay(watermark, delay, 60, existing, opened).parts
    known = existing | opened
    passed = {p for p in range(-60, 60) if watermark >= ((p + 1) * 60 + delay) * MICROS}
    first = min(known) if known else 60
    reached = {p for p in passed if p >= first}
    assert set(found) == reached - set(existing)


def test_nothing_closes_without_rows_or_without_a_watermark() -> None:
    assert complete_before(None, 0, 60) == -FOREVER
    assert not by_delay(None, 0, 60, Parts(), Parts.single(1)).parts
    assert not by_delay(10**18, 0, 60, Parts(), Parts()).parts


def test_the_end_of_a_part_is_exact_to_the_microsecond() -> None:
    opened = Parts.single(0)
    assert not by_delay(60 * MICROS - 1, 0, 60, Parts(), opened).parts
    assert list(by_delay(60 * MICROS, 0, 60, Parts(), opened).parts) == [0]
    assert not by_delay(-1, 0, 60, Parts(), Parts.single(-1)).parts
    assert list(by_delay(0, 0, 60, Parts(), Parts.single(-1)).parts) == [-1]


def test_a_gap_too_wide_is_left_and_told() -> None:
    found = by_delay((10**6 + 1) * 60 * MICROS, 0, 60, Parts(), Parts.single(0, 10**6))
    assert list(found.parts) == [0, 10**6]
    assert [tuple(gap) for gap in found.left] == [(1, 10**6 - 1)]
    assert by_delay((MOST_EMPTY + 2) * 60 * MICROS, 0, 60, Parts(), Parts.single(0, MOST_EMPTY + 1)).left == ()


def test_nothing_closes_below_the_floor() -> None:
    found = by_delay(10 * 60 * MICROS, 0, 60, Parts.of((5, 6)), Parts.single(2), floor=5)
    assert list(found.parts) == [7, 8, 9]


def test_markers_close_their_parts_and_gaps_without_rows() -> None:
    assert list(by_marker(Parts.single(3), Parts(), Parts.single(1, 3)).parts) == [3]
    found = by_marker(Parts.single(0, 5), Parts.single(5), Parts.single(0, 2))
    assert list(found.parts) == [0, 1, 3, 4]  # 2 has rows and no marker
    assert not by_marker(Parts(), Parts(), Parts.single(2)).parts
