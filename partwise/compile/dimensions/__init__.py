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
