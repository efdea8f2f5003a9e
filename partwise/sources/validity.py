"""From when to when something else is valid, after rows of a dimension with `valid_from` have changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from partwise.parts import FOREVER, Parts, Range

#: Microseconds since 1970: of rows that do not say from when on they are valid.
EVER = -9_000_000_000_000_000_000
#: More ranges than these are told as one.
MOST = 500
_SECOND = 1_000_000


class Validity(NamedTuple):
    """Rows of one key that are valid from the same microsecond on: whether the content before and the one after have
    some, and whether they differ in them."""

    key: tuple[object, ...]
    since: int
    before: bool
    after: bool
    differs: bool


@dataclass
class _Key:
    before: set[int]
    after: set[int]
    touched: set[int]


def changed_ranges(rows: Iterable[Validity]) -> tuple[Range, ...]:
    """Seconds since 1970, both ends included, in which a key has other valid rows than before.

    A row is valid until the next one of its key: one that comes in between shortens another one, whose times before that
    stay as they are.
    """
    keys: dict[tuple[object, ...], _Key] = defaultdict(lambda: _Key(set(), set(), set()))
    for row in rows:
        key = keys[row.key]
        for there, times in ((row.before, key.before), (row.after, key.after), (row.differs, key.touched)):
            if there:
                times.add(row.since)
    found: list[tuple[int, int]] = []
    for key in keys.values():
        begins = sorted(key.before | key.after)
        then = now = None
        for since, until in pairwise([*begins, None]):
            assert since is not None
            then = since if since in key.before else then
            now = since if since in key.after else now
            if then != now or now in key.touched:
                lo = -FOREVER if since <= EVER else since // _SECOND
                found.append((lo, FOREVER if until is None else (until - 1) // _SECOND))
    merged = Parts.of(*found)
    if len(merged.ranges) > MOST:
        return (Range(merged.first, merged.last),)
    return merged.ranges
