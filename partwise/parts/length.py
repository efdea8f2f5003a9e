"""Part lengths, and the way parts are written: index <-> time <-> text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from partwise.parts.ranges import Range

MINUTE, HOUR, DAY, WEEK = 60, 3600, 86400, 604800
_UNITS = {"second": 1, "minute": MINUTE, "hour": HOUR, "day": DAY, "week": WEEK}
_FARTHEST = 10**17  # seconds
#: Between the first and the last time that can be written.
ALL_TIME = 9999 * 366 * DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DURATION = re.compile(r"\s*(\d{1,18})\s*(second|minute|hour|day|week)s?\s*", re.IGNORECASE)
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d)[:-](\d\d)(?:[:-](\d\d))?(?:Z|\+00:00)?)?", re.IGNORECASE)


class BadTime(ValueError):
    """A part, range or length that cannot be understood; the message is meant for people."""


def seconds(value: object) -> int:
    """`5 minutes`, `1 day` or a plain number of seconds."""
    if isinstance(value, int) and not isinstance(value, bool):
        found = value
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        found = int(match[1]) * _UNITS[match[2].lower()]
    elif isinstance(value, str) and re.fullmatch(r"\s*\d{1,18}\s*", value):
        found = int(value)
    else:
        raise BadTime(f"'{value}' is not a length of time; write for example '5 minutes', '1 day' or 300")
    if found < 1:
        raise BadTime(f"'{value}' is not a length of time: it must be at least 1 second")
    if found > ALL_TIME:
        raise BadTime(f"'{value}' is longer than all time that can be written, from the year 1 to the year 9999")
    return found


def duration_text(length: int) -> str:
    """The shortest way to write a number of seconds: 300 -> '5 minutes'."""
    for name, unit in (("week", WEEK), ("day", DAY), ("hour", HOUR), ("minute", MINUTE)):
        if length % unit == 0:
            count = length // unit
            return f"{count} {name}" + ("s" if count != 1 else "")
    return f"{length} second" + ("s" if length != 1 else "")


def lasting(length: float) -> str:
    """A length for people, in its two largest units: 4200 -> '1 hour 10 minutes'."""
    said, left = [], int(length)
    for unit in (DAY, HOUR, MINUTE, 1):
        if count := left // unit:
            said.append(duration_text(count * unit))
            left -= count * unit
    return " ".join(said[:2]) or "0 seconds"


def index(moment: datetime, length: int) -> int:
    """The part that holds this time. A moment without a zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(seconds=1) // length


def start_of(part: int, length: int) -> datetime:
    return _EPOCH + timedelta(seconds=part * length)


def part_text(part: int, length: int) -> str:
    """`2026-10-03` for days, `2026-10-03T10:05` for minutes, `2026-10-03T10:05:30` below."""
    try:
        moment = start_of(part, length)
    except OverflowError:
        return f"#{part}"  # beyond the calendar; the bare index is still exact
    # isoformat and not strftime, which does not fill up years before 1000
    return moment.isoformat()[: 10 if length % DAY == 0 else 16 if length % MINUTE == 0 else 19]


def range_text(parts: Range, length: int) -> str:
    if parts.lo == parts.hi:
        return part_text(parts.lo, length)
    return f"{part_text(parts.lo, length)}..{part_text(parts.hi, length)}"


def parse_moment(text: str) -> datetime:
    """A UTC time as people write it: a day, or a day with hours and minutes (and seconds)."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise BadTime(f"'{text}' is not a time; write for example 2026-10-03 or 2026-10-03T10:05 (UTC)")
    try:
        return datetime(*(int(group or 0) for group in match.groups()), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError as why:
        raise BadTime(f"'{text}' is not a time: {why}") from None


def parse_part(text: str, length: int) -> int:
    """A part as written by `part_text`, as any moment on its start, or as `#index`."""
    if re.fullmatch(r"#-?\d+", text.strip()):
        return _by_index(text, length)
    moment = parse_moment(text)
    part = index(moment, length)
    if (moment - _EPOCH) // timedelta(seconds=1) != part * length:
        holds, after = part_text(part, length), part_text(part + 1, length)
        # The part that holds the first days of the year 1 may begin before the calendar does.
        near = f"the next one begins at {after}" if holds.startswith("#") else f"the part that holds it is {holds}"
        raise BadTime(f"'{text}' is not the start of a part of {duration_text(length)}; {near}")
    return part


def _by_index(text: str, length: int) -> int:
    digits = text.strip()[1:]
    # Of a longer one Python reads no number; and parts of other tables at its time must have numbers as well.
    if len(digits) > 20 or abs(int(digits) * length) > _FARTHEST:
        raise BadTime(f"'{text}' is not a part: it lies far outside of the years 1 to 9999")
    return int(digits)


def parse_range(text: str, length: int) -> Range:
    """`A..B`, both ends included, or a single part."""
    first, dots, last = text.partition("..")
    lo = parse_part(first, length)
    hi = parse_part(last, length) if dots else lo
    if lo > hi:
        raise BadTime(f"'{text}' is written backwards; did you mean {last.strip()}..{first.strip()}?")
    return Range(lo, hi)


def parse_span(text: str) -> Range:
    """Seconds since 1970 from one time to another, both included as they are written: a day ends with its last second,
    `10:05` with that of its minute."""
    first, dots, last = text.partition("..")
    end = last if dots else first
    lo, hi = parse_moment(first), parse_moment(end)
    if lo > hi:
        raise BadTime(f"'{text}' is written backwards; did you mean {last.strip()}..{first.strip()}?")
    match, second = _TIME.fullmatch(end.strip()), timedelta(seconds=1)
    assert match is not None
    until = hi + (timedelta(days=1) if match[4] is None else timedelta(minutes=1) if match[6] is None else second)
    return Range((lo - _EPOCH) // second, (until - _EPOCH) // second - 1)


def span_text(span: Range) -> str:
    """As `parse_span` reads it, to the minute where that is exact."""
    whole = span.lo % MINUTE == 0 and (span.hi + 1) % MINUTE == 0
    return range_text(Range(span.lo // MINUTE, span.hi // MINUTE), MINUTE) if whole else range_text(span, 1)
