"""Parts as numbers, times and text, to the papers' numbers and before 1970."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.parts import (
    BadTime,
    Range,
    duration_text,
    index,
    parse_moment,
    parse_part,
    parse_range,
    part_text,
    range_text,
    seconds,
    start_of,
)

LENGTHS = st.sampled_from([1, 7, 10, 30, 60, 90, 300, 3600, 5400, 86400, 604800])
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001


def test_numbers_of_the_paper() -> None:
    midnight = datetime(2015, 1, 1, tzinfo=UTC)
    assert index(midnight, 60) == 23667840
    assert index(midnight, 3600) == 394464
    assert start_of(23667840, 60) == midnight
    assert part_text(23667840, 60) == "2015-01-01T00:00"
    assert parse_part("2015-01-01T00:00", 60) == 23667840
    assert 23667840 // 60 == 394464


@pytest.mark.parametrize(
    "text, length, part",
    [
        ("1969-12-31T23:59", 60, -1),
        ("1969-12-31", 86400, -1),
        ("1969-12-31T23:59:50", 10, -1),
        ("1900-01-01T00:00", 3600, -613_608),
        ("1970-01-01", 86400, 0),
        ("2026-10-03T10:05:30", 30, 59_700_731),
        ("2026-10-03", 86400, 20_729),
    ],
)
def test_parts_around_and_before_1970(text: str, length: int, part: int) -> None:
    assert parse_part(text, length) == part
    assert part_text(part, length) == text
    assert index(start_of(part, length), length) == part
    assert index(start_of(part, length) + timedelta(seconds=length - 1), length) == part


@given(MOMENTS, LENGTHS)
def test_a_moment_lies_in_its_part(moment: datetime, length: int) -> None:
    part = index(moment, length)
    begin = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    assert part * length <= begin < (part + 1) * length


@given(MOMENTS, LENGTHS)
def test_part_text_round_trip(moment: datetime, length: int) -> None:
    part = index(moment, length)
    assert parse_part(part_text(part, length), length) == part


@given(MOMENTS, LENGTHS, st.integers(0, 1000))
def test_range_text_round_trip(moment: datetime, length: int, more: int) -> None:
    lo = index(moment, length)
    parts = Range(lo, lo + more)
    assert parse_range(range_text(parts, length), length) == parts


@given(st.integers(1, 10_000_000))
def test_duration_round_trip(length: int) -> None:
    assert seconds(duration_text(length)) == length


def test_zones() -> None:
    assert index(datetime(2026, 10, 3, 12, 5, tzinfo=timezone(timedelta(hours=2))), 60) == parse_part(
        "2026-10-03T10:05", 60
    )
    assert index(datetime(2026, 10, 3, 10, 5), 60) == parse_part("2026-10-03T10:05", 60)  # noqa: DTZ001
    assert parse_moment("2026-10-03T10:05Z") == datetime(2026, 10, 3, 10, 5, tzinfo=UTC)


def test_beyond_the_calendar() -> None:
    assert part_text(10**15, 60) == "#1000000000000000"
    assert parse_part("#1000000000000000", 60) == 10**15
    assert parse_part("#-5", 60) == -5


@pytest.mark.parametrize(
    "text", ["#99999999999999999999", "#-99999999999999999999", "#1" + "0" * 5000, "#2000000000000000"]
)
def test_parts_that_no_ledger_can_hold_are_refused(text: str) -> None:
    with pytest.raises(BadTime, match="far outside of the years 1 to 9999"):
        parse_part(text, 60)
    with pytest.raises(BadTime, match="far outside of the years 1 to 9999"):
        parse_range(f"#1..{text}", 60)


def test_the_calendar_begins_in_the_middle_of_a_week() -> None:
    with pytest.raises(
        BadTime, match="'0001-01-01' is not the start of a part of 1 week; the next one begins at 0001-01-04"
    ):
        parse_part("0001-01-01", 604800)
    assert parse_part("0001-01-04", 604800) == -102737


@pytest.mark.parametrize(
    "text, length",
    [("10 seconds", 10), ("1 minute", 60), ("5 Minutes", 300), ("1 hour", 3600), ("1 day", 86400), ("1 week", 604800)],
)
def test_lengths(text: str, length: int) -> None:
    assert seconds(text) == length
    assert seconds(length) == length
    assert seconds(str(length)) == length


@pytest.mark.parametrize("bad", ["", "five minutes", "0 minutes", "-5", 0, -60, 1.5, True, None, "1 month", "9" * 5000])
def test_bad_lengths_are_told(bad: object) -> None:
    with pytest.raises(BadTime):
        seconds(bad)


@pytest.mark.parametrize(
    "bad", ["", "yesterday", "2026-13-01", "2026-10-03T25:00", "0000-01-01", "2026-10-03T10:05+02:00"]
)
def test_bad_times_are_told(bad: str) -> None:
    with pytest.raises(BadTime):
        parse_part(bad, 60)


def test_a_time_inside_a_part_is_no_part() -> None:
    with pytest.raises(BadTime, match="2026-10-03T10:05"):
        parse_part("2026-10-03T10:07", 300)


def test_a_range_backwards_is_told_with_the_right_one() -> None:
    with pytest.raises(BadTime, match=r"did you mean 2026-10-03\.\.2026-10-04"):
        parse_range("2026-10-04..2026-10-03", 86400)
