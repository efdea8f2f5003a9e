"""Refresh policies: when parts that are ready are computed, where their author asks for batches instead of at once.

A policy belongs to a view and holds for the helpers that were generated for it. It gates parts that would be ready
without it; those that wait for it are *deferred*. When it fires, everything that waits goes, however many steps that
takes: the firing is recorded, and what was due by then stays released.

Pure: policy, what waits and the clock go in, the reason to fire (or None) comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from partwise.parts import duration_text

DAY = 86400.0
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day in a zone, every day or on one day of the week (0 is Monday)."""

    minute: int  # of the day
    zone: str = "UTC"
    weekday: int | None = None

    def last_before(self, now: float) -> float:
        """The newest such moment at or before `now`."""
        local = self._local(now)
        for back in range(9):
            day = local.date() - timedelta(days=back)
            if self.weekday is not None and day.weekday() != self.weekday:
                continue
            found = self._on(datetime(day.year, day.month, day.day, tzinfo=UTC))
            if found <= now:
                return found
        raise AssertionError("there is one in every eight days")

    def next_after(self, now: float) -> float:
        local = self._local(now)
        for ahead in range(9):
            day = local.date() + timedelta(days=ahead)
            if self.weekday is not None and day.weekday() != self.weekday:
                continue
            found = self._on(datetime(day.year, day.month, day.day, tzinfo=UTC))
            if found > now:
                return found
        raise AssertionError("there is one in every eight days")

    def _local(self, now: float) -> datetime:
        from zoneinfo import ZoneInfo  # few workspaces have such a policy, and all commands load this file

        return datetime.fromtimestamp(now, ZoneInfo(self.zone))

    def _on(self, day: datetime) -> float:
        # A local time that the clocks skip in spring is taken as if they had not been moved yet.
        from zoneinfo import ZoneInfo

        at = day.replace(hour=self.minute // 60, minute=self.minute % 60, tzinfo=ZoneInfo(self.zone))
        return at.timestamp()

    @property
    def longest(self) -> float:
        """Seconds between two of them; a day with a change of clocks has 25 hours."""
        return (DAY if self.weekday is None else 7 * DAY) + 3600

    def text(self) -> str:
        day = "day" if self.weekday is None else _WEEKDAYS[self.weekday]
        zone = "" if self.zone == "UTC" else f" {self.zone}"
        return f"{day} at {self.minute // 60:02d}:{self.minute % 60:02d}{zone}"


def parse_clock(words: str) -> Clock:
    """`day at 06:00 Europe/Berlin`, `monday at 06:00` (UTC). Raises ValueError with what was expected instead."""
    from zoneinfo import ZoneInfo

    pieces = words.split()
    days = {"day": None} | {name: at for at, name in enumerate(_WEEKDAYS)}
    if len(pieces) not in (3, 4) or pieces[0].lower() not in days or pieces[1].lower() != "at":
        raise ValueError("expected a length of time, or a time of day such as day at 06:00 Europe/Berlin")
    hour, colon, minute = pieces[2].partition(":")
    if not (colon and hour.isdecimal() and minute.isdecimal() and int(hour) < 24 and int(minute) < 60):
        raise ValueError(f"'{pieces[2]}' is not a time of day; write it as 06:00")
    zone = pieces[3] if len(pieces) == 4 else "UTC"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"'{zone}' is not a time zone; write it as Europe/Berlin, or leave it out for UTC") from None
    return Clock(60 * int(hour) + int(minute), zone, days[pieces[0].lower()])


@dataclass(frozen=True, slots=True)
class Refresh:
    """When parts that wait are computed. `rows` by input, "" for all inputs together. `within` is never absent:
    without a bound a policy that asks for much would never fire."""

    every: float | None = None
    clock: Clock | None = None
    rows: tuple[tuple[str, int], ...] = ()
    behind: int | None = None
    when: Literal["any", "all"] = "any"
    within: float = DAY
    readers: Literal["wait", "published"] = "wait"
    new: Literal["with the rest", "at once"] = "with the rest"

    @property
    def longest(self) -> float:
        """Seconds that a part can be deferred at most."""
        bounds = [self.within]
        alone = self.when == "any" or (not self.rows and self.behind is None)
        if alone and self.every is not None:
            bounds.append(self.every)
        if alone and self.clock is not None:
            bounds.append(self.clock.longest)
        return min(bounds)

    def to_json(self) -> dict[str, object]:
        clock = self.clock
        return {
            "every": self.every,
            "clock": None if clock is None else [clock.minute, clock.zone, clock.weekday],
            "rows": [list(item) for item in self.rows],
            "behind": self.behind,
            "when": self.when,
            "within": self.within,
            "readers": self.readers,
            "new": self.new,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, object]) -> Refresh:
        fields = dict(raw)
        fields["rows"] = tuple((name, least) for name, least in raw["rows"])  # type: ignore[attr-defined]
        fields["clock"] = None if raw["clock"] is None else Clock(*raw["clock"])  # type: ignore[misc]
        return cls(**fields)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What the ledger remembers of a policy: when it fired last and why, and the rows that came since, by input."""

    fired_at: float | None = None
    why: str = ""
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WaitingParts:
    """Parts that a policy could release: how many, and since when the oldest is due."""

    parts: int
    oldest: float


def fires(policy: Refresh, waiting: WaitingParts, known: Refreshed, now: float) -> str | None:
    """Why the policy fires now; None if it does not. Something must be waiting."""
    if now - waiting.oldest >= policy.within:
        return f"within {duration_text(int(policy.within))}"
    reasons: list[str | None] = []
    if policy.every is not None:
        due = known.fired_at is None or now - known.fired_at >= policy.every
        reasons.append(f"every {duration_text(int(policy.every))}" if due else None)
    if policy.clock is not None:
        last = policy.clock.last_before(now)
        due = last >= waiting.oldest and (known.fired_at is None or last > known.fired_at)
        reasons.append(f"every {policy.clock.text()}" if due else None)
    for name, least in policy.rows:
        came = sum(known.rows.values()) if name == "" else known.rows.get(name, 0)
        what = "rows" if name == "" else f"rows of {name}"
        reasons.append(f"{came:,} {what}" if came >= least else None)
    if policy.behind is not None:
        reasons.append(f"{waiting.parts:,} parts behind" if waiting.parts >= policy.behind else None)
    said = [reason for reason in reasons if reason is not None]
    if not said or (policy.when == "all" and len(said) < len(reasons)):
        return None
    return said[0] if policy.when == "any" else " and ".join(said)


def fires_at(policy: Refresh, waiting: WaitingParts, known: Refreshed, now: float) -> float:
    """When it fires by time alone, if nothing else arrives."""
    times = [waiting.oldest + policy.within]
    if policy.when == "any" or (not policy.rows and policy.behind is None):
        by_clock = []
        if policy.every is not None:
            by_clock.append(now if known.fired_at is None else known.fired_at + policy.every)
        if policy.clock is not None:
            by_clock.append(policy.clock.next_after(max(now, waiting.oldest)))
        if by_clock:
            times.append(min(by_clock) if policy.when == "any" else max(by_clock))
    return min(times)


def waits_for(policy: Refresh, waiting: WaitingParts, known: Refreshed) -> list[str]:
    """What else than time would make it fire, for people: `1,200 of 100,000 rows`."""
    found = []
    for name, least in policy.rows:
        came = sum(known.rows.values()) if name == "" else known.rows.get(name, 0)
        found.append(f"{came:,} of {least:,} rows" + (f" of {name}" if name else ""))
    if policy.behind is not None:
        found.append(f"{waiting.parts:,} of {policy.behind:,} parts")
    return found


def text(policy: Refresh) -> str:
    """The policy as people write it."""
    said = []
    if policy.every is not None:
        said.append(f"every {duration_text(int(policy.every))}")
    if policy.clock is not None:
        said.append(f"every {policy.clock.text()}")
    said += [f"{least:,} rows" + (f" of {name}" if name else "") for name, least in policy.rows]
    if policy.behind is not None:
        said.append(f"{policy.behind:,} parts behind")
    joined = (" or " if policy.when == "any" else " and ").join(said)
    return (
        f"{joined}, within {duration_text(int(policy.within))}"
        if joined
        else f"within {duration_text(int(policy.within))}"
    )
