"""Settings of a source that its arrivals speak for: `close.delay`, `late.accept` and `keep`, with what each would cost.

The shares are of the rows of a part when all have come. What nobody has watched is not guessed: an age counts only if enough
parts were seen at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from partwise.definitions import Source
from partwise.parts import lasting
from partwise.parts.length import DAY, HOUR, MINUTE, WEEK
from partwise.sources.expected import ENOUGH, StillToCome

#: Of all rows: so many may be late, and so many may be refused.
MAY_BE_LATE, MAY_BE_REFUSED = 0.01, 0.0001
DELAYS = (
    0,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
)
AGES = (HOUR, 6 * HOUR, DAY, 2 * DAY, 3 * DAY, WEEK, 2 * WEEK, 30 * DAY, 60 * DAY, 90 * DAY)


@dataclass(frozen=True, slots=True)
class Option:
    """A value in seconds: the share of rows that would come too late for it, and deliveries of them for each part."""

    seconds: int
    share: float
    deliveries: float


@dataclass(frozen=True, slots=True)
class Suggestion:
    """`seconds` None: nothing is suggested, `text` says why. `now` is the setting as it is."""

    setting: Literal["close.delay", "late.accept", "keep"]
    now: int | None
    seconds: int | None
    text: str
    options: tuple[Option, ...] = ()


def suggestions(source: Source, expected: StillToCome, reach: int) -> tuple[Suggestion, ...]:
    """`reach`: how far back the views that read the source look, in seconds."""
    accept = _accept(source, expected)
    return (_delay(source, expected), accept, _keep(source, expected, accept, reach))


def _delay(source: Source, expected: StillToCome) -> Suggestion:
    if source.close.rule != "delay":
        return Suggestion("close.delay", None, None, f"parts close by {source.close.rule}, not after a delay")
    now = source.close.delay
    options = _options(expected, sorted({*DELAYS, now}))
    found = next((option for option in options if option.share <= MAY_BE_LATE), None)
    if found is None:
        return Suggestion("close.delay", now, None, _too_short(expected), options)
    current = next((option for option in options if option.seconds == now), None)
    text = f"{_length(found.seconds)} would leave {percent(found.share)} of rows late"
    if found.deliveries:
        text += f", {found.deliveries:.2g} deliveries a part after which what reads it is computed again"
    if found.seconds == now:
        text = text.replace("would leave", "leaves") + "; that is how it is set"
    elif current is not None:
        text += f" (now {_length(now)}: {percent(current.share)})"
        later = found.seconds - now
        text += f"; every part comes {_length(abs(later))} {'later' if later > 0 else 'earlier'}"
    return Suggestion("close.delay", now, found.seconds, text, options)


def _accept(source: Source, expected: StillToCome) -> Suggestion:
    if not source.files:
        return Suggestion("late.accept", None, None, "a watched Delta table is taken over as it is")
    now = source.late.accept
    least = source.close.delay if source.close.rule == "delay" else 0
    options = _options(expected, [age for age in AGES if age > least])
    found = next((option for option in options if option.share <= MAY_BE_REFUSED), None)
    if found is None:
        return Suggestion("late.accept", now, None, _too_short(expected), options)
    text = f"{_length(found.seconds)} would quarantine {percent(found.share)} of rows"
    text += "; helpers of parts that cannot change any more are dropped" if now is None or now > found.seconds else ""
    return Suggestion("late.accept", now, found.seconds, f"{text} {_as_set(now)}", options)


def _keep(source: Source, expected: StillToCome, accept: Suggestion, reach: int) -> Suggestion:
    now, changes = source.keep, source.late.accept or accept.seconds
    if changes is None:
        return Suggestion("keep", now, None, "not before it is known how late rows come")
    # A row may come this late, and what it changes reads so far back.
    least = changes + reach
    found = next((age for age in AGES if age >= least), -(-least // DAY) * DAY)
    rows = round((expected.usual or 0) * found / source.part)
    text = f"{_length(found)} would keep about {rows:,} rows"
    text += f": rows may come {_length(changes)} late, and views look back {_length(reach)}"
    return Suggestion("keep", now, found, f"{text}; parts before cannot be computed again {_as_set(now)}")


def _options(expected: StillToCome, ages: list[int]) -> tuple[Option, ...]:
    watched = [age for age in ages if age <= expected.known and expected.watched.parts_at(age) >= ENOUGH]
    shares = ((age, expected.share(age)) for age in watched)
    return tuple(Option(age, share, expected.deliveries(age)) for age, share in shares if share is not None)


def _too_short(expected: StillToCome) -> str:
    watched = max(0, int(expected.watched.now - expected.watched.begun))
    return f"{_length(watched)} of event time watched so far, which is too short to say"


def _as_set(now: int | None) -> str:
    return "(now: no limit)" if now is None else f"(now {_length(now)})"


def _length(seconds: int) -> str:
    return lasting(seconds) if seconds else "0"


def percent(share: float) -> str:
    """`0.4 %`, with as many digits as it takes to differ from nothing."""
    if share == 0:
        return "0 %"
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"
