"""Which outputs of a query's operators are worth keeping for deliveries to come, for every number of bytes.

An operator can be needed in three modes: what a delivery changes in its output (delta), all of it (full), or both, as
by a join whose sides both change. For each mode there is a frontier of options, (bytes, cost, what is kept), none of
which is better than another in both. Options of inputs add up; so one pass over the tree gives the whole curve of a
view, up to the option that keeps nothing.

Costs are those of all deliveries that are expected, and of building what is kept once:

- An input that does not change costs nothing as a delta and needs no state for it.
- A kept output is charged its writing, and its upkeep with every delivery that changes it.
- An aggregate in the middle of a query cannot say what changed in it without its old output, so without state its
  delta costs the old and the new one. The one on top has the published part for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

#: Longer sums of curves are rounded.
_LONGEST = 2_000
Mode = Literal["delta", "full", "both"]


@dataclass(frozen=True)
class Weights:
    """Work, in rows read. `apart`: what a kept output costs whatever its size, `merging` what a repair by merging does,
    `upkeep` what adding a delivery to kept groups does.

    A side of at most `small` rows is sent to where the other one is, which then is only probed.
    """

    read: float = 1.0
    probe: float = 0.2
    small: float = 0.0
    join: float = 5.0
    group: float = 1.0
    write: float = 3.5
    apart: float = 0.0
    merging: float = 0.0
    upkeep: float = 0.0


@dataclass(frozen=True)
class Operator:
    """`rows` of its output, and those `new` in it after a delivery. Scans are not kept: they are tables already.

    `known`: whether the engine knows before how large it is; of tables it does, of what it computes first it does not.
    """

    name: str
    kind: Literal["scan", "filter", "join", "group"]
    rows: float
    new: float
    bytes: float = 0.0
    inputs: tuple[Operator, ...] = ()
    known: bool = True


@dataclass(frozen=True)
class KeptOption:
    """What it costs to keep these operators' outputs."""

    bytes: float
    cost: float
    kept: frozenset[str] = frozenset()

    def plus(self, cost: float, bytes: float = 0.0, name: str | None = None) -> KeptOption:
        kept = self.kept if name is None else self.kept | {name}
        return KeptOption(self.bytes + bytes, self.cost + cost, kept)


def curve(root: Operator, deliveries: float, weights: Weights, merge: bool) -> tuple[KeptOption, ...]:
    """From nothing kept to the most that pays. `merge`: whether changes can be merged into the published part."""
    pass_ = _Pass(deliveries, weights)
    found = [o.plus(deliveries * weights.write * root.rows) for o in pass_.options(root, "full")]
    if merge:
        below = root.inputs if root.kind == "group" else (root,)
        added = deliveries * (weights.merging + weights.read * root.rows + weights.write * root.new)
        found += [o.plus(added) for o in pass_.options(below[0], "delta")]
    return frontier(found)


def frontier(options: Iterable[KeptOption]) -> tuple[KeptOption, ...]:
    """Those that no other one beats in bytes and cost, by rising bytes."""
    found: list[KeptOption] = []
    for option in sorted(options, key=lambda o: (o.bytes, o.cost, len(o.kept), sorted(o.kept))):
        if not found or option.cost < found[-1].cost:
            found.append(option)
    return tuple(found)


def within_budget(curves: Sequence[Sequence[KeptOption]], budget: float) -> tuple[KeptOption, ...]:
    """One option of each curve, of the smallest sum of costs among all with no more bytes: a knapsack.

    Sums of curves are curves again, so what is dominated is left out as they are added up. Where so many views have so
    many sizes that the sum gets longer than `_LONGEST`, sizes are rounded up: the budget holds, the cost may be a little
    higher than the least.
    """
    sums: list[tuple[float, float, tuple[KeptOption, ...]]] = [(0.0, 0.0, ())]
    for options in curves:
        more = [
            (bytes + o.bytes, cost + o.cost, (*some, o))
            for bytes, cost, some in sums
            for o in options
            if bytes + o.bytes <= budget
        ]
        if not more:  # not even the smallest option fits: nothing is kept of any view
            return tuple(min(options, key=lambda o: o.bytes) for options in curves)
        sums = _undominated(more)
        if len(sums) > _LONGEST:
            grain = budget / _LONGEST
            sums = _undominated((-(-bytes // grain) * grain, cost, some) for bytes, cost, some in sums)
    return min(sums, key=lambda each: each[1])[2]


def _undominated(
    sums: Iterable[tuple[float, float, tuple[KeptOption, ...]]],
) -> list[tuple[float, float, tuple[KeptOption, ...]]]:
    found: list[tuple[float, float, tuple[KeptOption, ...]]] = []
    for each in sorted(sums, key=lambda s: s[:2]):
        if not found or each[1] < found[-1][1]:
            found.append(each)
    return found


class _Pass:
    def __init__(self, deliveries: float, weights: Weights) -> None:
        self.times, self.weights = deliveries, weights
        self._known: dict[tuple[int, Mode], tuple[KeptOption, ...]] = {}

    def options(self, at: Operator, mode: Mode) -> tuple[KeptOption, ...]:
        mode = "full" if mode == "both" and not at.new else mode
        key = id(at), mode
        if key not in self._known:
            self._known[key] = frontier([*self._made(at, mode), *self._kept(at, mode)])
        return self._known[key]

    def _made(self, at: Operator, mode: Mode) -> list[KeptOption]:
        """As the operator gives it from its inputs."""
        if mode == "delta" and not at.new:
            return [KeptOption(0.0, 0.0)]
        if at.kind == "scan":
            rows = at.new if mode == "delta" else at.rows if mode == "full" else at.rows + at.new
            return [KeptOption(0.0, self.times * self.weights.read * rows)]
        if at.kind == "filter":
            return list(self.options(at.inputs[0], mode))
        if at.kind == "group":
            below, weight = at.inputs[0], self.times * self.weights.group
            if mode == "full":
                return [o.plus(weight * below.rows) for o in self.options(below, "full")]
            # Old and new output: what went and what came is the difference.
            return [o.plus(weight * (2 * below.rows + below.new)) for o in self.options(below, "both")]
        return self._joined(at, mode)

    def _joined(self, at: Operator, mode: Mode) -> list[KeptOption]:
        left, right = at.inputs
        weights = self.weights
        few, many = sorted((left.rows, right.rows))
        is_sent = any(each.known and each.rows == few for each in at.inputs) and few <= weights.small
        full = weights.join * few + weights.probe * many if is_sent else weights.join * (few + many)
        if mode == "full":
            return self._both_inputs(left, "full", right, "full", full)
        delta = 0.0
        for changed, other in ((left, right), (right, left)):
            if changed.new:
                delta += weights.join * changed.new + weights.probe * other.rows
        if mode == "both":
            return self._both_inputs(left, "both", right, "both", full + delta)
        if not right.new:
            return self._both_inputs(left, "delta", right, "full", delta)
        if not left.new:
            return self._both_inputs(left, "full", right, "delta", delta)
        return self._both_inputs(left, "both", right, "both", delta)

    def _both_inputs(self, left: Operator, one: Mode, right: Operator, other: Mode, cost: float) -> list[KeptOption]:
        pairs = product(self.options(left, one), self.options(right, other))
        return [KeptOption(a.bytes + b.bytes, a.cost + b.cost + self.times * cost, a.kept | b.kept) for a, b in pairs]

    def _kept(self, at: Operator, mode: Mode) -> list[KeptOption]:
        """From the kept output: read, and if it changes brought up to date by its delta."""
        if at.kind == "scan" or (mode == "delta" and at.kind != "group") or (mode == "delta" and not at.new):
            return []
        weights = self.weights
        build = weights.write * at.rows + weights.apart
        each = weights.read * at.rows
        if not at.new:
            return [KeptOption(at.bytes, self.times * each + build, frozenset([at.name]))]
        each += weights.write * at.new
        if at.kind == "group":
            each += weights.group * at.inputs[0].new + weights.upkeep
            changes = self.options(at.inputs[0], "delta")
        else:
            changes = frontier(self._made(at, "delta"))
        return [o.plus(self.times * each + build, at.bytes, at.name) for o in changes]
