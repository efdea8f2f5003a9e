"""What is kept: the search against all subsets, and the decisions that the literature takes for L, O and C."""

from __future__ import annotations

import random
from itertools import chain, combinations, product

import pytest

from partwise.choose.frontier import KeptOption, Operator, Weights, curve, within_budget


def operators(root: Operator) -> list[Operator]:
    return [root, *(below for each in root.inputs for below in operators(each))]


class AllSubsets:
    """Costs of one set of kept outputs, by plain recursion. Infinite where an operator is kept that is not used."""

    def __init__(self, kept: frozenset[str], times: float, w: Weights) -> None:
        self.kept, self.times, self.w = kept, times, w
        self.used: set[str] = set()

    def root(self, at: Operator, merge: bool) -> float:
        w, found = self.w, []
        self.used = set()
        full = self.full(at) + self.times * w.write * at.rows
        if self.used == self.kept:
            found.append(full)
        if merge:
            self.used = set()
            below = at.inputs[0] if at.kind == "group" else at
            cost = self.delta(below) + self.times * (w.merging + w.read * at.rows + w.write * at.new)
            if self.used == self.kept:
                found.append(cost)
        return min(found, default=float("inf"))

    def full(self, at: Operator) -> float:
        w, t = self.w, self.times
        if at.name in self.kept:
            return self.stored(at)
        if at.kind == "scan":
            return t * w.read * at.rows
        inputs = sum(self.full(each) for each in at.inputs)
        if at.kind == "filter":
            return inputs
        return inputs + t * (w.group * at.inputs[0].rows if at.kind == "group" else self.joins(*at.inputs))

    def joins(self, left: Operator, right: Operator) -> float:
        a, b, w = left.rows, right.rows, self.w
        if min(a, b) <= w.small:
            return w.join * min(a, b) + w.probe * max(a, b)
        return w.join * (a + b)

    def stored(self, at: Operator) -> float:
        w, t = self.w, self.times
        self.used.add(at.name)
        cost = w.write * at.rows + w.apart + t * w.read * at.rows
        if at.new and at.kind == "group":
            cost += self.delta(at.inputs[0]) + t * (w.group * at.inputs[0].new + w.write * at.new + w.upkeep)
        elif at.new:
            cost += self.plain_delta(at) + t * w.write * at.new
        return cost

    def delta(self, at: Operator) -> float:
        if not at.new:
            return 0.0
        return self.stored(at) if at.kind == "group" and at.name in self.kept else self.plain_delta(at)

    def plain_delta(self, at: Operator) -> float:
        w, t = self.w, self.times
        if not at.new:
            return 0.0
        if at.kind == "scan":
            return t * w.read * at.new
        if at.kind == "filter":
            return self.delta(at.inputs[0])
        if at.kind == "group":
            return self.both(at.inputs[0]) + t * w.group * (2 * at.inputs[0].rows + at.inputs[0].new)
        left, right = at.inputs
        cost = t * self.probes(left, right)
        if left.new and right.new:
            return cost + self.both(left) + self.both(right)
        return cost + (self.delta(left) + self.full(right) if left.new else self.full(left) + self.delta(right))

    def probes(self, left: Operator, right: Operator) -> float:
        w = self.w
        return sum(w.join * a.new + w.probe * b.rows for a, b in ((left, right), (right, left)) if a.new)

    def both(self, at: Operator) -> float:
        w, t = self.w, self.times
        if not at.new:
            return self.full(at)
        if at.name in self.kept:
            return self.stored(at)
        if at.kind == "scan":
            return t * w.read * (at.rows + at.new)
        if at.kind == "filter":
            return self.both(at.inputs[0])
        if at.kind == "group":
            return self.both(at.inputs[0]) + t * w.group * (2 * at.inputs[0].rows + at.inputs[0].new)
        left, right = at.inputs
        return self.both(left) + self.both(right) + t * (self.joins(left, right) + self.probes(left, right))


def random_tree(rng: random.Random, leaves: int, counter: list[int]) -> Operator:
    counter[0] += 1
    name = f"n{counter[0]}"
    if leaves == 1:
        scan = Operator(f"{name}s", "scan", rng.randint(1, 100), rng.choice([0, 0, 1, 10]))
        if rng.random() < 0.6:
            return scan
        rows = max(1, scan.rows * rng.choice([0.1, 0.5, 1]))
        return Operator(name, "filter", rows, min(scan.new, rows), rng.randint(1, 50), (scan,))
    at = rng.randint(1, leaves - 1)
    left, right = random_tree(rng, at, counter), random_tree(rng, leaves - at, counter)
    rows = max(left.rows, right.rows)
    new = rng.choice([1, 5]) if left.new or right.new else 0
    found = Operator(name, "join", rows, new, rng.randint(1, 50), (left, right))
    if rng.random() < 0.3:
        counter[0] += 1
        return Operator(f"n{counter[0]}g", "group", max(1, rows // 3), new, rng.randint(1, 50), (found,))
    return found


def test_the_frontier_is_the_best_of_all_subsets() -> None:
    longest = 0
    for seed in range(250):
        rng = random.Random(seed)
        root = random_tree(rng, rng.randint(2, 3), [0])
        weights = Weights(
            1,
            rng.choice([0.2, 1]),
            rng.choice([0, 20]),
            rng.choice([1, 5]),
            1,
            rng.choice([1, 3]),
            rng.choice([0, 20]),
            5,
            rng.choice([0, 3]),
        )
        times, merge = rng.choice([0.1, 1, 3, 10]), rng.random() < 0.6
        found = curve(root, times, weights, merge)
        longest = max(longest, len(found))
        keepable = [each for each in operators(root) if each.kind != "scan"]
        subsets = [
            frozenset(each.name for each in some)
            for some in chain.from_iterable(combinations(keepable, n) for n in range(len(keepable) + 1))
        ]
        sizes = {each.name: each.bytes for each in keepable}
        costs = {some: AllSubsets(some, times, weights).root(root, merge) for some in subsets}
        for option in found:
            assert costs[option.kept] == pytest.approx(option.cost), seed
        for budget in (0, 10, 25, 60, 200):
            best = min(c for some, c in costs.items() if sum(sizes[n] for n in some) <= budget)
            assert min(o.cost for o in found if o.bytes <= budget) == pytest.approx(best), (seed, budget)
    assert longest > 2


def three(late: str, times: float, apart: float = 0.0) -> KeptOption:
    """SUM over L * (O * C) by a column of C: 1000 rows of L, 250 of O, 25 of C; filters keep half of L and O."""
    rows = {"L": 1000.0, "O": 250.0, "C": 25.0}
    new = {name: rows[name] / 50 if name in late else 0.0 for name in rows}
    scans = {name: Operator(name, "scan", rows[name], new[name], rows[name]) for name in rows}
    few = {
        name: Operator(f"filtered {name}", "filter", rows[name] / 2, new[name] / 2, rows[name] / 4, (scans[name],))
        for name in "LO"
    }
    changed = bool(new["O"] or new["C"])
    orders = Operator("O*C", "join", 125, 4.0 if changed else 0.0, 60, (few["O"], scans["C"]))
    joined = Operator("L*O*C", "join", 500, 8.0 if late else 0.0, 400, (few["L"], orders))
    return min(
        curve(
            Operator("sums", "group", 25, 5.0 if late else 0.0, 5, (joined,)),
            times,
            Weights(read=1, probe=0.2, join=2, group=1, write=1, apart=apart),
            True,
        ),
        key=lambda o: o.cost,
    )


def test_the_decisions_for_late_line_items_and_customers() -> None:
    """The published part is the state of the aggregate on top, so joins and filtered inputs are what is left to keep."""
    for times in (1, 3, 10):
        assert three("L", times).kept == {"O*C"}
    assert three("C", 1).kept <= {"filtered O"}
    for times in (3, 10):
        assert three("C", times).kept == {"filtered L", "filtered O"}
    assert three("", 10).kept == frozenset()


def test_old_parts_drop_what_they_have() -> None:
    """Dropping is choosing again with what is still to come at that age."""
    assert [bool(three("L", times, 50.0).kept) for times in (10, 1, 0.1, 0.01)] == [True, True, False, False]


def test_what_costs_more_apart_is_not_kept() -> None:
    assert three("L", 3, 0.0).kept
    assert not three("L", 3, 10_000.0).kept


def curve_of(rng: random.Random) -> list[KeptOption]:
    some = [KeptOption(rng.randint(1, 40), -rng.randint(1, 50), frozenset([str(n)])) for n in range(rng.randint(0, 4))]
    return [KeptOption(0.0, 0.0), *some]


def test_the_knapsack_is_the_best_of_all_combinations() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        curves = [curve_of(rng) for _ in range(rng.randint(1, 4))]
        for budget in (0, 5, 20, 60, 200):
            found = within_budget(curves, budget)
            assert sum(o.bytes for o in found) <= budget, seed
            fitting = [some for some in product(*curves) if sum(o.bytes for o in some) <= budget]
            best = min(sum(o.cost for o in some) for some in fitting)
            assert sum(o.cost for o in found) == pytest.approx(best), (seed, budget)


def test_many_views_hold_the_budget() -> None:
    """So many sizes that sums are rounded: the budget holds, and the cost is near what sorting by gain per byte gives."""
    rng = random.Random(1)
    options = [KeptOption(rng.uniform(1, 100), -rng.uniform(1, 100), frozenset(["x"])) for _ in range(300)]
    found = within_budget([[KeptOption(0.0, 0.0), each] for each in options], 3_000.0)
    assert sum(o.bytes for o in found) <= 3_000
    left, greedy = 3_000.0, 0.0
    for each in sorted(options, key=lambda o: o.cost / o.bytes):
        if each.bytes <= left:
            left, greedy = left - each.bytes, greedy + each.cost
    assert sum(o.cost for o in found) <= 0.99 * greedy
