"""When a refresh policy fires: pure rules, one case each; what they do to histories is in tests/simulation."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from partwise.plan.refresh import Clock, Refresh, Refreshed, WaitingParts, fires, fires_at, parse_clock, text, waits_for

NOW = 1_000_000.0


def waiting(parts: int = 1, ago: float = 10.0) -> WaitingParts:
    return WaitingParts(parts, NOW - ago)


@pytest.mark.parametrize(
    "policy, parts, known, why",
    [
        # The first change after a quiet time goes at once, the next one waits.
        (Refresh(every=600), 1, Refreshed(), "every 10 minutes"),
        (Refresh(every=600), 1, Refreshed(NOW - 600), "every 10 minutes"),
        (Refresh(every=600), 1, Refreshed(NOW - 599), None),
        (Refresh(behind=3), 2, Refreshed(), None),
        (Refresh(behind=3), 3, Refreshed(), "3 parts behind"),
        (Refresh(rows=(("", 100),)), 1, Refreshed(rows={"a": 60, "b": 39}), None),
        (Refresh(rows=(("", 100),)), 1, Refreshed(rows={"a": 60, "b": 40}), "100 rows"),
        # By input each counts for itself, and `when` joins them.
        (Refresh(rows=(("a", 50), ("b", 50))), 1, Refreshed(rows={"a": 60}), "60 rows of a"),
        (Refresh(rows=(("a", 50), ("b", 50)), when="all"), 1, Refreshed(rows={"a": 60}), None),
        (Refresh(every=600, behind=3, when="all"), 3, Refreshed(NOW - 10), None),
        (Refresh(every=600, behind=3, when="all"), 3, Refreshed(NOW - 700), "every 10 minutes and 3 parts behind"),
        (Refresh(every=600, behind=3), 3, Refreshed(NOW - 10), "3 parts behind"),
    ],
)
def test_when_it_fires(policy: Refresh, parts: int, known: Refreshed, why: str | None) -> None:
    assert fires(policy, waiting(parts), known, NOW) == why


def test_no_part_waits_longer_than_within() -> None:
    never = Refresh(every=60, rows=(("", 10**9),), when="all", within=3600)
    assert fires(never, waiting(ago=3599), Refreshed(), NOW) is None
    assert fires(never, waiting(ago=3600), Refreshed(), NOW) == "within 1 hour"
    assert fires_at(never, waiting(ago=100), Refreshed(), NOW) == NOW + 3500
    assert never.longest == 3600


def moment(words: str) -> float:
    return datetime.fromisoformat(words).replace(tzinfo=UTC).timestamp()


def test_a_time_of_day_follows_the_clocks_of_its_zone() -> None:
    clock = parse_clock("day at 06:00 Europe/Berlin")
    assert clock.last_before(moment("2026-10-24T12:00")) == moment("2026-10-24T04:00")  # summer
    assert clock.last_before(moment("2026-10-26T12:00")) == moment("2026-10-26T05:00")  # winter
    assert clock.next_after(moment("2026-10-24T12:00")) == moment("2026-10-25T05:00")
    monday = parse_clock("monday at 06:30")
    assert monday == Clock(390, "UTC", 0)
    assert monday.last_before(moment("2026-11-18T12:00")) == moment("2026-11-16T06:30")
    assert monday.text() == "monday at 06:30"


def test_what_comes_after_the_time_of_day_waits_for_the_next_one() -> None:
    policy = Refresh(clock=parse_clock("day at 06:00"))
    now, since = moment("2026-11-18T10:00"), moment("2026-11-18T09:00")
    assert fires(policy, WaitingParts(1, since), Refreshed(), now) is None
    assert fires_at(policy, WaitingParts(1, since), Refreshed(), now) == moment("2026-11-19T06:00")
    early = moment("2026-11-18T05:00")
    assert fires(policy, WaitingParts(1, early), Refreshed(), now) == "every day at 06:00"
    assert fires(policy, WaitingParts(1, early), Refreshed(moment("2026-11-18T06:01")), now) is None


@pytest.mark.parametrize(
    "words, said",
    [
        ("day at noon", "'noon' is not a time of day"),
        ("day at 25:00", "'25:00' is not a time of day"),
        ("day at 06:00 Berlin", "'Berlin' is not a time zone"),
        ("month at 06:00", "expected a length of time, or a time of day"),
    ],
)
def test_a_wrong_time_of_day_is_explained(words: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_clock(words)


def test_a_policy_reads_as_it_is_written_and_survives_the_ledger() -> None:
    policy = Refresh(
        every=3600, clock=parse_clock("friday at 18:00 Asia/Tokyo"), rows=(("a", 5),), behind=2, when="all", within=7200
    )
    assert (
        text(policy)
        == "every 1 hour and every friday at 18:00 Asia/Tokyo and 5 rows of a and 2 parts behind, within 2 hours"
    )
    assert Refresh.from_json(policy.to_json()) == policy
    assert waits_for(policy, waiting(1), Refreshed(rows={"a": 3})) == ["3 of 5 rows of a", "1 of 2 parts"]
