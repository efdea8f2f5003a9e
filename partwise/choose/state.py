"""Which outputs of a view's operators are worth keeping, by the rows of its inputs and the deliveries that are expected.

Every join of some of the inputs is a candidate, and so are the groups of a GROUP BY that late rows can be added to. What
is expected comes one input at a time: if the input is outside of the join, the kept part is read; if it is inside, the
part is computed again and so is what was kept. Kept outputs are tables with steps of their own, so that small parts never
pay. A wrong estimate costs time, never correctness.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from partwise.choose.frontier import Operator, Weights, curve
from partwise.choose.repair import MOST_CHANGED
from partwise.compile.state.flat import Flat
from partwise.compile.state.split import is_connected, used_columns

#: Rows that are read in the time of one step of the helper: its lease, its jobs and its commit. By bench_late.py.
STEP = 2_000_000.0
#: The same for a step of the view, whatever it reads, which takes 0.7 s; a repair by merging takes 1.6 s.
REFRESH = 3_500_000.0
#: As measured on Spark: two million rows are read and reduced in 0.4 s, shuffled in 2.3 s and written in 1.4 s.
SPARK = Weights(
    read=1.0,
    probe=0.2,
    small=500_000,
    join=5.0,
    group=1.0,
    write=3.5,
    apart=STEP,
    merging=4_500_000,
    upkeep=8_000_000,
)
#: The share of rows for which a condition holds, where nothing is known: of `=`, of others; of groups for which HAVING does.
_EQUAL, _OTHER = 0.1, 0.33
#: More inputs have too many joins to look at each.
_MOST_INPUTS = 8
#: Less is not worth a line in a definition, nor a table.
LEAST_GAIN = 1.1
_WIDTHS = {"string": 16, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "float": 4, "boolean": 1}
_GROUPS = "groups"


@dataclass(frozen=True)
class ExpectedLate:
    """What an input can expect for a part after it was computed: deliveries, and rows in each."""

    deliveries: float
    rows: float


@dataclass(frozen=True)
class StateFigures:
    """By the number of the reference: rows that a part reads, and what is still to come. `result`: rows of the part.

    `again`: how often inputs change whose changes are no rows that come late, as dimensions do.
    """

    rows: Mapping[int, float]
    late: Mapping[int, ExpectedLate]
    result: float
    again: Mapping[int, float] | None = None

    def inside(self, numbers: Collection[int]) -> float:
        """How often something of these inputs changes."""
        late = sum(each.deliveries for n, each in self.late.items() if n in numbers)
        return late + sum(times for n, times in (self.again or {}).items() if n in numbers)


@dataclass(frozen=True)
class GroupsShape:
    """Groups that could be kept: the references below, how many columns, and how many groups (None: not known)."""

    references: frozenset[int]
    columns: int
    rows: float | None = None


@dataclass(frozen=True)
class StateAdvice:
    """`join`: inputs kept joined, `groups`: whether those of a GROUP BY are; nothing if neither. Costs in rows, over all
    deliveries expected; `build` is what keeping costs at first, which is part of `cost`."""

    join: tuple[str, ...]
    rows: float
    bytes: float
    cost: float
    recompute: float
    groups: bool = False
    build: float = 0.0

    @property
    def is_something(self) -> bool:
        return bool(self.join) or self.groups

    @property
    def gain(self) -> float:
        return self.recompute / self.cost if self.cost else 1.0

    @property
    def pays(self) -> bool:
        return self.recompute > LEAST_GAIN * self.cost

    def with_fewer(self, share: float) -> StateAdvice:
        """The same choice where only this share of the deliveries is expected."""
        cost = self.build + share * (self.cost - self.build)
        return StateAdvice(self.join, self.rows, self.bytes, cost, share * self.recompute, self.groups, self.build)


NOTHING = StateAdvice((), 0.0, 0.0, 0.0, 0.0)


def advised(flat: Flat, figures: StateFigures, merge: bool = False, weights: Weights = SPARK) -> StateAdvice:
    """The join that pays most, or nothing. `merge`: repairs of the view merge changed rows."""
    return best(candidates(flat, None, figures, merge, weights))


def best(found: Collection[StateAdvice]) -> StateAdvice:
    paying = [each for each in found if each.pays]
    return max(paying, key=lambda each: each.recompute - each.cost, default=NOTHING)


def candidates(
    flat: Flat | None,
    grouped: GroupsShape | None,
    figures: StateFigures,
    merge: bool = False,
    weights: Weights = SPARK,
) -> list[StateAdvice]:
    """Everything that could be kept of a view, with what it costs; without regard to what pays."""
    found = []
    if any(each.rows > MOST_CHANGED * figures.rows[n] for n, each in figures.late.items()):
        grouped, merge = None, False  # nearly every group would be touched
    for kept in [frozenset[int](), *(_joins(flat) if flat is not None else ())]:
        if kept and _rows(flat, figures, kept) > sum(figures.rows[n] for n in kept):
            continue  # a step would not read it
        outside = {n: each for n, each in figures.late.items() if n not in kept and each.deliveries > 0}
        times = max((each.deliveries for each in outside.values()), default=0.0)
        new = {n: each.rows for n, each in outside.items()}
        again, keeping_again = _again(flat, grouped, figures, kept, weights)
        plain = curve(_tree(flat, grouped, figures, kept, new, ()), times, weights, merge)[0].cost
        names = tuple(flat.of(n).alias for n in sorted(kept)) if flat is not None else ()
        for groups in (False, True) if grouped is not None else (False,):
            wanted = frozenset([*(["kept"] if kept else []), *([_GROUPS] if groups else [])])
            tree = _tree(flat, grouped, figures, kept, new, wanted)
            options = [o for o in curve(tree, times, weights, merge) if o.kept == wanted] if wanted else []
            if not options:
                continue
            rows, size = 0.0, 0.0
            if flat is not None and kept:
                rows = _rows(flat, figures, kept)
                size = rows * _width(flat, kept)
            if grouped is not None and groups:
                rows += _groups(grouped, figures)
                size += _groups(grouped, figures) * 4.0 * grouped.columns
            pull = _pull(flat, grouped, figures, kept, groups, weights)
            build = weights.write * rows + weights.apart * len(wanted) + pull
            steps = REFRESH * (times + figures.inside(kept))
            cost = min(o.cost for o in options) + pull + again + keeping_again + steps
            found.append(StateAdvice(names, rows, size, cost, plain + again + steps, groups, min(build, cost)))
    return found


def _pull(
    flat: Flat | None,
    grouped: GroupsShape | None,
    figures: StateFigures,
    kept: frozenset[int],
    groups: bool,
    weights: Weights,
) -> float:
    """What computing that which is kept costs once: a step of its own reads the inputs again."""
    cost = 0.0
    if flat is not None and kept:
        cost += curve(_joined(flat, figures, sorted(kept), {}, inf), 1.0, weights, False)[0].cost
    if grouped is not None and groups:
        cost += curve(_grouped(grouped, figures, {}, inf), 1.0, weights, False)[0].cost
    return cost


def _joins(flat: Flat) -> list[frozenset[int]]:
    numbers = [each.occurrence for each in flat.joined]
    if not 2 < len(numbers) <= _MOST_INPUTS:
        return []
    found = [frozenset(some) for size in range(2, len(numbers)) for some in combinations(numbers, size)]
    with_parts = {each.occurrence for each in flat.joined if each.reference.brackets is not None}
    return [some for some in found if some & with_parts and is_connected(flat.conditions, some)]


def _again(
    flat: Flat | None, grouped: GroupsShape | None, figures: StateFigures, kept: frozenset[int], weights: Weights
) -> tuple[float, float]:
    """Changes of what is inside of the join: the part is computed from its inputs, and what was kept again as well."""
    times = figures.inside(kept)
    if flat is None or not times:
        return 0.0, 0.0
    part = curve(_tree(flat, grouped, figures, kept, {}, ()), 1.0, weights, False)[0].cost
    helper = curve(_joined(flat, figures, sorted(kept), {}, inf), 1.0, weights, False)[0].cost
    return times * part, times * (helper + weights.apart)


def _tree(
    flat: Flat | None,
    grouped: GroupsShape | None,
    figures: StateFigures,
    kept: frozenset[int],
    new: Mapping[int, float],
    keeping: Collection[str],
) -> Operator:
    """The others joined one after the other with what is kept, below an aggregate of as many rows as the part has.

    Of what is `keeping` the bytes are below nothing: then it is in the curve whether it pays or not.
    """
    below = None if grouped is None else _grouped(grouped, figures, new, -1.0 if _GROUPS in keeping else inf)
    own = set() if grouped is None else grouped.references
    numbers = [n for n in figures.rows if n not in own]
    size = -1.0 if "kept" in keeping else inf
    found = _joined(flat, figures, sorted(kept), new, size) if flat is not None and kept else None
    inside = set(kept)
    for n in sorted((n for n in numbers if n not in kept), key=lambda n: -figures.rows[n]):
        inside.add(n)
        scan = Operator("", "scan", figures.rows[n], new.get(n, 0.0))
        if found is None:
            found = scan
            continue
        rows = _rows(flat, figures, inside)
        found = Operator(f"join {n}", "join", rows, found.new + scan.new, inf, (scan, found), known=False)
    if below is not None and found is not None:
        few = max(1.0, _OTHER * found.rows)
        found = Operator("with groups", "join", few, found.new + below.new, inf, (found, below))
    root = found or below
    assert root is not None
    return Operator("result", "group", figures.result, root.new, inf, (root,))


def _grouped(shape: GroupsShape, figures: StateFigures, new: Mapping[int, float], size: float) -> Operator:
    scans = [Operator("", "scan", figures.rows[n], new.get(n, 0.0)) for n in sorted(shape.references)]
    found, *more = sorted(scans, key=lambda scan: -scan.rows)
    for n, scan in enumerate(more):
        found = Operator(f"below groups {n}", "join", found.rows, found.new + scan.new, inf, (found, scan))
    rows = _groups(shape, figures)
    return Operator(_GROUPS, "group", rows, min(rows, found.new), size, (found,))


def _groups(shape: GroupsShape | None, figures: StateFigures) -> float:
    if shape is None:
        return 0.0
    if shape.rows is not None:
        return max(1.0, shape.rows)
    everything = not set(figures.rows) - shape.references
    return figures.result if everything else max(1.0, max(figures.rows[n] for n in shape.references) / 4)


def _joined(
    flat: Flat, figures: StateFigures, numbers: Sequence[int], new: Mapping[int, float], size: float
) -> Operator:
    found: Operator | None = None
    inside: set[int] = set()
    for n in sorted(numbers, key=lambda n: -figures.rows[n]):
        inside.add(n)
        scan = Operator("", "scan", figures.rows[n], new.get(n, 0.0))
        rows = _rows(flat, figures, inside)
        last = len(inside) == len(numbers)
        name = "kept" if last else f"below kept {n}"
        here = size if last else inf
        new_rows = scan.new if found is None else found.new + scan.new
        stored = here < 0  # a table, of which the engine knows the size
        found = scan if found is None else Operator(name, "join", rows, new_rows, here, (found, scan), known=stored)
    assert found is not None
    return found


def _rows(flat: Flat | None, figures: StateFigures, numbers: Collection[int]) -> float:
    """Of a join, without those that conditions leave out.

    Columns that are equal have as many values as the smallest table that has one of them, in all of the query: two tables
    that refer to a third one meet in all pairs of rows that refer to the same row.
    """
    if flat is None:
        return max(1.0, max((figures.rows[n] for n in numbers), default=0.0))
    rows = 1.0
    for n in numbers:
        rows *= max(1.0, figures.rows[n])
    for columns in _equal_columns(flat):
        here = {n for n, _ in columns} & set(numbers)
        values = max(1.0, min(figures.rows[n] for n, _ in columns))
        rows /= values ** (len(here) - 1) if here else 1.0
    for condition in flat.conditions:
        if (
            condition.occurrences is not None
            and len(condition.occurrences) == 1
            and condition.occurrences <= set(numbers)
        ):
            rows *= _EQUAL if " = " in condition.sql else _OTHER
    return max(1.0, rows)


def _equal_columns(flat: Flat) -> list[set[tuple[int, str]]]:
    """Columns, by reference and name, that the query's conditions make equal."""
    found: list[set[tuple[int, str]]] = []
    for condition in flat.conditions:
        if condition.equal is None:
            continue
        pair = {(n, name.lower()) for n, name in condition.equal}
        met = [columns for columns in found if columns & pair]
        found = [columns for columns in found if not columns & pair] + [pair.union(*met)]
    return found


def _width(flat: Flat, numbers: frozenset[int]) -> float:
    """Bytes of a kept row: columns that the query uses, packed."""
    used = used_columns(flat)
    kinds = [kind for n in numbers for name, kind in flat.of(n).columns if name.lower() in used]
    return sum(_WIDTHS.get(kind or "", 8) for kind in kinds) / 2
