"""Settings that the arrivals of a source speak for, where the truth is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partwise.choose.arrivals import percent, suggestions
from partwise.definitions import Source
from partwise.definitions.definitions import Close, Late, Time
from partwise.definitions.yaml.places import Place
from partwise.sources.expected import Arrivals, Behind, OnTime, StillToCome

MINUTE, HOUR, DAY = 60, 3600, 86400
PARTS = 20 * 1440
SOURCE = Source("s", Place("s.yaml", 1, 1), MINUTE, Time("t"), files=("*.csv",))


def expected(*late: tuple[float, int, int], days: int = 20) -> StillToCome:
    """Of a hundred rows on time in each part, and every nth part with one delivery of so many rows at an age."""
    parts = days * 1440
    now = float(parts * MINUTE)
    behind = tuple(
        Behind(age, rows) for age, every, rows in late for p in range(0, parts, every) if (p + 1) * MINUTE + age <= now
    )
    on_time = OnTime(100 * parts, parts)
    return StillToCome(Arrivals(MINUTE, 0, 0.0, now, behind, on_time, on_time))


def test_a_delay_is_suggested_that_leaves_few_rows_late() -> None:
    found = suggestions(SOURCE, expected((1.5 * HOUR, 1, 4), (20 * HOUR, 10, 4)), 600)[0]
    assert (found.seconds, found.now) == (2 * HOUR, 0)
    at = {option.seconds: option for option in found.options}
    assert at[0].share == pytest.approx(4.4 / 104.4, rel=0.01)
    assert at[2 * HOUR].share == pytest.approx(0.4 / 104.4, rel=0.01)
    assert at[2 * HOUR].deliveries == pytest.approx(0.1, rel=0.02)
    assert found.text == (
        "2 hours would leave 0.38 % of rows late, 0.1 deliveries a part after which what reads it is computed again"
        " (now 0: 4.2 %); every part comes 2 hours later"
    )


def test_a_delay_that_is_right_is_left_alone_and_one_too_long_is_shortened() -> None:
    late = expected((1.5 * HOUR, 1, 4))
    right = suggestions(replace(SOURCE, close=Close(delay=2 * HOUR)), late, 600)[0]
    assert (right.seconds, right.text) == (2 * HOUR, "2 hours leaves 0 % of rows late; that is how it is set")
    long = suggestions(replace(SOURCE, close=Close(delay=DAY)), late, 600)[0]
    assert long.seconds == 2 * HOUR
    assert long.text.endswith("every part comes 22 hours earlier")


def test_parts_that_close_otherwise_have_no_delay() -> None:
    found = suggestions(replace(SOURCE, close=Close("manual")), expected(), 600)[0]
    assert (found.seconds, found.text) == (None, "parts close by manual, not after a delay")


def test_rows_are_accepted_as_long_as_they_come() -> None:
    late = expected((1.5 * HOUR, 1, 4), (5 * DAY, 10, 4))
    delay, accept, keep = suggestions(SOURCE, late, 600)
    assert (delay.seconds, accept.seconds) == (2 * HOUR, 7 * DAY)
    assert accept.text.startswith("1 week would quarantine 0 % of rows; helpers")
    assert keep.seconds == 14 * DAY  # a week late, and ten minutes back, do not fit into a week
    assert "about 2,104,704 rows" in keep.text  # 20,160 parts of 104.4
    assert {o.seconds: percent(o.share) for o in accept.options}[3 * DAY] == "0.38 %"
    set_already = suggestions(replace(SOURCE, late=Late(accept=2 * DAY)), StillToCome(late.watched, 2 * DAY), 600)[2]
    assert set_already.seconds == 3 * DAY


def test_what_was_not_watched_is_not_suggested() -> None:
    """One day of history cannot tell that nothing comes after two days; nor that one is enough."""
    delay, accept, keep = suggestions(SOURCE, expected((20 * HOUR, 1, 4), days=1), 600)
    assert delay.seconds is None
    assert accept.seconds is None
    assert keep.seconds is None
    assert "too short to say" in delay.text
    assert max(option.seconds for option in accept.options) < DAY
