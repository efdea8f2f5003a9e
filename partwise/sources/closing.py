"""When parts of a source are complete.

Times are integers: seconds for lengths and delays, microseconds since 1970 for event times.
"""

from __future__ import annotations

from dataclasses import dataclass

from partwise.parts import FOREVER, Parts, Range

MICROS = 1_000_000
#: A gap of more parts than this is no gap but a wrong time (1970, or the year 2262): it is left as it is and told.
MOST_EMPTY = 200_000


@dataclass(frozen=True, slots=True)
class Closing:
    """Parts that close now, with rows or as empty ones, and gaps that are too wide to be filled."""

    parts: Parts
    left: tuple[Range, ...] = ()


def complete_before(watermark: int | None, delay: int, length: int) -> int:
    """Parts below this one are complete: the newest event time has passed their end by the delay."""
    if watermark is None:
        return -FOREVER
    return (watermark - delay * MICROS) // (length * MICROS)


def by_delay(
    watermark: int | None, delay: int, length: int, existing: Parts, opened: Parts, floor: int | None = None
) -> Closing:
    """Everything from the source's first part up to the watermark: with its rows, gaps as empty parts."""
    limit = complete_before(watermark, delay, length)
    known = existing | opened
    if not known or limit <= known.first:
        return Closing(Parts())
    found = _filled(existing, opened.within(-FOREVER, limit - 1), limit - 1, floor)
    # A part that was closed manually ahead of the watermark does not close what is before it.
    return Closing(found.parts.within(-FOREVER, limit - 1), found.left)


def by_marker(marked: Parts, existing: Parts, opened: Parts, floor: int | None = None) -> Closing:
    """Marked parts, and parts without rows between closed ones. Rows without a marker keep their part open."""
    closed = marked | existing
    if not closed:
        return Closing(Parts())
    found = _filled(existing, marked - existing, closed.last, floor)
    return Closing(found.parts - (opened - marked), found.left)


def _filled(existing: Parts, closing: Parts, last: int, floor: int | None) -> Closing:
    """`closing`, and the gaps between all parts that exist by then, up to `last`."""
    closed = existing | closing
    if not closed:
        return Closing(Parts())
    gaps = (Parts.of((closed.first, max(last, closed.last))) - closed).ranges
    left = tuple(gap for gap in gaps if gap.size > MOST_EMPTY)
    filled = Parts.of(*(gap for gap in gaps if gap.size <= MOST_EMPTY))
    parts = (closing | filled) - existing
    return Closing(parts if floor is None else parts.within(floor, FOREVER), left)
