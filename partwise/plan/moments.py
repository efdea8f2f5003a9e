"""Moments at which several parts were what their inputs say, though each was computed at another time.

A part computed at `since` holds what its query gives for every later version of the inputs, until one of the parts that it
reads changes. In a table that follows its source each part is computed at a time of its own; what a late row makes stale can
still be repaired together, from one version of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


def common_moments(since: Mapping[int, int], until: Callable[[int], int]) -> dict[int, list[int]]:
    """As few sequences as possible, each with parts that may be taken for computed then. `until(j)`: the last sequence
    before something that part j reads changed; never before `since[j]`."""
    ends = {j: until(j) for j in since}
    found: dict[int, list[int]] = {}
    left = sorted(since, key=lambda j: (ends[j], j))
    while left:
        moment = ends[left[0]]
        found[moment] = sorted(j for j in left if since[j] <= moment)
        left = [j for j in left if since[j] > moment]
    return found
