"""Which rows cannot be placed, and what is said about them."""

from __future__ import annotations

from dataclasses import dataclass

from partwise.parts import duration_text, part_text
from partwise.sources.closing import MICROS

#: Codes of reasons, as rows carry them through Spark; 0 is a row that can be placed. The first that fits counts.
UNREADABLE, NO_TIME, BAD_TIME, NO_CALENDAR, TOO_OLD, TOO_NEW, EXPIRED = range(1, 8)

#: Rows that Spark cannot read as declared; what exactly does not fit may follow.
UNFIT = "the row does not fit the declared columns"

#: Why rows wait that may be placed later, when their time has come.
AHEAD = "further in the future"

#: Years 1 to 9999, the times that every reader of the tables can show.
FIRST_MICROS, LAST_MICROS = -62_135_596_800 * MICROS, 253_402_300_800 * MICROS - 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """Event times (microseconds) and parts outside of these are quarantined. None: no bound."""

    oldest: int | None = None
    newest: int | None = None
    floor: int | None = None
    accept: int | None = None
    future: int | None = None


def bounds(watermark: int | None, now: float, accept: int | None, future: int | None, floor: int | None) -> Bounds:
    """Age counts from `watermark`, the newest event time known: see `newest_known`."""
    newest = None if future is None else int((now + future) * MICROS)
    return Bounds(too_old(watermark, accept), newest, floor, accept, future)


def too_old(watermark: int | None, accept: int | None) -> int | None:
    """Event times before this are too old."""
    return None if accept is None or watermark is None else watermark - accept * MICROS


def newest_known(watermark: int | None, newest: int | None, median: int | None, accept: int) -> int | None:
    """The event time from which `late.accept` counts: the newest one, that of the load at hand included.

    A wrong time in the first load of a source is as wrong as in the second. But one row ahead of all others must not make
    the others too old: if more than half of the load would be, its median counts instead of its newest time.
    """
    if newest is not None and median is not None and median < newest - accept * MICROS:
        newest = median
    return max((m for m in (watermark, newest) if m is not None), default=None)


def reason_text(code: int, limits: Bounds, length: int, time: str) -> str:
    """One text for each reason, so that rows can be counted by it."""
    if code == UNREADABLE:
        return UNFIT
    if code == NO_TIME:
        return f"no event time: {time} is empty"
    if code == BAD_TIME:
        return f"the event time in {time} cannot be understood"
    if code == NO_CALENDAR:
        return f"the event time in {time} is outside of the years 1 to 9999"
    if code == TOO_OLD:
        return f"older than late.accept ({duration_text(limits.accept or 0)})"
    if code == TOO_NEW:
        return f"{AHEAD} than late.future ({duration_text(limits.future or 0)})"
    assert code == EXPIRED
    floor = "" if limits.floor is None else f" ({part_text(limits.floor, length)})"
    return f"before the first part that is kept{floor}"
