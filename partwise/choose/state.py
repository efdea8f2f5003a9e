"""Which join of a view's inputs is worth keeping, by the rows of its inputs and the deliveries that are expected.

Every join of some of the inputs is a candidate. What is expected comes one input at a time: if the input is outside of
the join, the kept part is read; if it is inside, the part is computed again and so is what was kept. A kept join is a
table with steps of its own, so that small parts never pay. A wrong estimate costs time, never correctness.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from partwise.choose.frontier import Operator, Weights, curve
from partwise.compile.state.flat import Flat
from partwise.compile.state.split import is_connected, used_columns

#: Rows that are read in the time of one step of the helper: its lease, its jobs and its commit. By bench_late.py.
STEP = 1_000_000.0
#: As measured on Spark: two million rows are read and reduced in 0.4 s, shuffled in 2.3 s and written in 1.4 s.
SPARK = Weights(read=1.0, probe=0.2, small=100_000, join=5.0, group=1.0, write=3.5, apart=STEP, merging=1_000_000)
#: The share of rows for which a condition holds, where nothing is known: of `=`, of others.
_EQUAL, _OTHER = 0.1, 0.33
#: More inputs have too many joins to look at each.
_MOST_INPUTS = 8
#: Less is not worth a line in a definition.
_LEAST_GAIN = 1.1
_WIDTHS = {"string": 16, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "float": 4, "boolean": 1}


@dataclass(frozen=True)
class ExpectedLate:
    """What an input can expect for a part after it was computed: deliveries, and rows in each."""

    deliveries: float
    rows: float


@dataclass(frozen=True)
class StateFigures:
    """By the number of the reference: rows that a part reads, and what is still to come. `result`: rows of the part."""

    rows: Mapping[int, float]
    late: Mapping[int, ExpectedLate]
    result: float


@dataclass(frozen=True)
class StateAdvice:
    """`join`: the inputs that are worth keeping joined, none if nothing is. Costs in rows, over all deliveries expected."""

    join: tuple[str, ...]
    rows: float
    bytes: float
    cost: float
    recompute: float

    @property
    def gain(self) -> float:
        return self.recompute / self.cost if self.cost else 1.0


def advised(flat: Flat, figures: StateFigures, merge: bool = False, weights: Weights = SPARK) -> StateAdvice:
    """The join that pays most, or nothing. `merge`: repairs of the view merge changed rows."""
    best = StateAdvice((), 0.0, 0.0, 0.0, 0.0)
    for kept in _candidates(flat):
        outside = {n: each for n, each in figures.late.items() if n not in kept and each.deliveries > 0}
        times = max((each.deliveries for each in outside.values()), default=0.0)
        tree = _tree(flat, figures, kept, {n: each.rows for n, each in outside.items()})
        options = [o for o in curve(tree, times, weights, merge) if o.bytes < inf]
        plain = next((o.cost for o in options if not o.kept), 0.0)
        with_it = [o for o in options if o.kept]
        if not with_it:
            continue
        again = _again(flat, figures, kept, weights)
        option, recompute = min(with_it, key=lambda o: o.cost), plain + again[0]
        cost = option.cost + again[0] + again[1]
        gain, so_far = recompute - cost, best.recompute - best.cost
        if gain > so_far and recompute > _LEAST_GAIN * cost:
            names = tuple(flat.of(n).alias for n in sorted(kept))
            best = StateAdvice(names, _rows(flat, figures, kept), option.bytes, cost, recompute)
    return best


def _candidates(flat: Flat) -> list[frozenset[int]]:
    numbers = [each.occurrence for each in flat.joined]
    if len(numbers) > _MOST_INPUTS:
        return []
    found = [frozenset(some) for size in range(2, len(numbers)) for some in combinations(numbers, size)]
    with_parts = {each.occurrence for each in flat.joined if each.reference.brackets is not None}
    return [some for some in found if some & with_parts and is_connected(flat.conditions, some)]


def _again(flat: Flat, figures: StateFigures, kept: frozenset[int], weights: Weights) -> tuple[float, float]:
    """Deliveries for what is inside of the join: the part is computed from its inputs, and what was kept again as well."""
    times = sum(each.deliveries for n, each in figures.late.items() if n in kept)
    part = curve(_tree(flat, figures, kept, {}), 1.0, weights, False)[0].cost
    helper = curve(_joined(flat, figures, sorted(kept), {}, "kept"), 1.0, weights, False)[0].cost
    return times * part, times * (helper + weights.apart)


def _tree(flat: Flat, figures: StateFigures, kept: frozenset[int], new: Mapping[int, float]) -> Operator:
    """The others joined one after the other with what may be kept, below an aggregate of as many rows as the part has."""
    found = _joined(flat, figures, sorted(kept), new, "kept")
    rest = sorted(
        (each.occurrence for each in flat.joined if each.occurrence not in kept), key=lambda n: -figures.rows[n]
    )
    inside = set(kept)
    for n in rest:
        inside.add(n)
        scan = Operator("", "scan", figures.rows[n], new.get(n, 0.0))
        found = Operator(f"join {n}", "join", _rows(flat, figures, inside), found.new + scan.new, inf, (scan, found))
    return Operator("result", "group", figures.result, found.new, inf, (found,))


def _joined(flat: Flat, figures: StateFigures, numbers: Sequence[int], new: Mapping[int, float], name: str) -> Operator:
    found: Operator | None = None
    inside: set[int] = set()
    for n in sorted(numbers, key=lambda n: -figures.rows[n]):
        inside.add(n)
        scan = Operator("", "scan", figures.rows[n], new.get(n, 0.0))
        rows = _rows(flat, figures, inside)
        last = len(inside) == len(numbers)
        size = rows * _width(flat, frozenset(numbers)) if last else inf
        made = name if last else f"{name} {n}"
        found = scan if found is None else Operator(made, "join", rows, found.new + scan.new, size, (found, scan))
    assert found is not None
    return found


def _rows(flat: Flat, figures: StateFigures, numbers: Collection[int]) -> float:
    """Of a join on keys, as the largest input has them, without those that conditions leave out."""
    rows = max((figures.rows[n] for n in numbers), default=0.0)
    for condition in flat.conditions:
        if (
            condition.occurrences is not None
            and len(condition.occurrences) == 1
            and condition.occurrences <= set(numbers)
        ):
            rows *= _EQUAL if " = " in condition.sql else _OTHER
    return max(1.0, rows)


def _width(flat: Flat, numbers: frozenset[int]) -> float:
    """Bytes of a kept row: columns that the query uses, packed."""
    used = used_columns(flat)
    kinds = [kind for n in numbers for name, kind in flat.of(n).columns if name.lower() in used]
    return sum(_WIDTHS.get(kind or "", 8) for kind in kinds) / 2
