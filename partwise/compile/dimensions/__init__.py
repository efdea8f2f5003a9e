"""Dimensions whose rows do not count for everything: those that change forward, and those with times of validity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """What kind of dimension it is, and the code of its problems."""

    code: str
    what: str


FORWARD = Kind("forward-query", "a forward dimension")
TIMED = Kind("valid-from", "a dimension with valid_from")


def time_of_part(qualifier: str) -> str:
    """The time of a row of a view that a query reads: when its part begins, in microseconds since 1970."""
    return f"UNIX_MICROS({qualifier}.part_timestamp)"


def meets_validity(text: str, name: str) -> bool:
    """Whether in a statement as it runs rows of the view of this name, or alias, meet what was valid at their time.

    Every command asks, so the text is not parsed again: nothing but such a join compares this time first."""
    written = (name, "`" + name.replace("`", "``") + "`")
    return any(f"{time_of_part(qualifier)} >= " in text for qualifier in written)
