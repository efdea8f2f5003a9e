"""The demo feed: the same rows whenever it is asked, whole files, late rows now and then."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from partwise.serve import feed
from partwise.serve.feed import BEHIND, FIRST, LATE_BY, LATE_EVERY

NOW = 1_800_000_030.0
MINUTE = int(NOW // 60)


def test_every_row_comes_once_some_of_them_late() -> None:
    start = MINUTE // LATE_EVERY * LATE_EVERY
    minutes = range(start, start + 4 * LATE_EVERY)
    files = list(chain.from_iterable(feed.files(minute) for minute in minutes))
    came = sorted(row for file in files for row in file.text.splitlines(keepends=True)[1:])
    held = {minute for minute in minutes if minute % LATE_EVERY == 0 and minute + LATE_BY not in minutes}
    assert held == set()
    assert came == sorted(chain.from_iterable(feed.rows(minute) for minute in minutes))
    assert len([file for file in files if file.name.startswith("late-")]) == 4
    assert len({file.name for file in files}) == len(files)


def test_a_late_row_comes_after_its_part_was_closed() -> None:
    assert LATE_BY > 2 + 1  # the example closes two minutes after the end of a part


def test_a_new_feed_begins_in_the_past_with_enough_for_every_view() -> None:
    first = feed.due(None, NOW)
    assert len(first) == FIRST >= 13  # ten minutes of a window, and what is needed to close them
    assert MINUTE - BEHIND - LATE_EVERY <= first[0] <= MINUTE - BEHIND
    # No late row is older than the first minute: it would move the beginning of every view.
    assert not any(
        file.name < f"late-{feed._name(first[0])}" for m in first for file in feed.files(m) if "late" in file.name
    )


def test_it_goes_on_where_it_was_and_never_ahead_of_the_clock() -> None:
    assert feed.due(MINUTE - 100, NOW) == [MINUTE - 99]
    assert feed.due(MINUTE - 2, NOW) == [MINUTE - 1]
    assert feed.due(MINUTE - 1, NOW) == []


def test_what_was_delivered_is_seen_from_the_files(tmp_path: Path) -> None:
    assert feed.last_delivered(iter([])) is None
    for file in feed.files(MINUTE):
        feed.deliver(tmp_path, file)
    (tmp_path / "other.csv").touch()
    (tmp_path / f"{feed._name(MINUTE + 5)}.csv.tmp").touch()
    assert feed.last_delivered(path.name for path in tmp_path.iterdir()) == MINUTE


def test_there_are_patterns_to_find() -> None:
    """Four high losses of a pair in a row: what the example's views look for."""
    high = [
        {row.split(",")[1:3][0] + row.split(",")[2] for row in feed.rows(m) if float(row.split(",")[3]) > 10}
        for m in range(MINUTE, MINUTE + 60)
    ]
    assert any(set.intersection(*high[at : at + 4]) for at in range(56))
