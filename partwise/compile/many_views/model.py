"""A query over rows of tables, in the pieces that one query for several views is put together from."""

from __future__ import annotations

from dataclasses import dataclass


class NotFusable(Exception):
    """The query runs by itself; the message says why."""


@dataclass(frozen=True, slots=True)
class Fusable:
    """`source` is what stands behind FROM, with its tables called `__in1`, `__in2`, ... in order of appearance.

    `keys` are what it groups by: nothing for one row of all, None where rows stay as they are. `items` are what it
    selects, by the `names` of the result; what they aggregate is of the rows of `where` only. A group is in the result
    if `present` is true, and always without it.
    """

    source: str
    where: str | None
    keys: tuple[str, ...] | None
    names: tuple[str, ...]
    items: tuple[str, ...]
    present: str | None
