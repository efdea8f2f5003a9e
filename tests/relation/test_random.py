"""Rules against recomputation, over random queries, rows and changes on DuckDB.

restriction   rows of the result with P are the same whether the references are filtered by P or not
repair        rows without P as they were + rows with P computed again = computed from scratch
keys          no two rows agree in the key
merge         Q(new) = Q(old) + what the changed rows give
joined        a change of a dimension that meets no row of the references it is joined with changes nothing
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from partwise.relation import Delta, carried, delta, joined, key
from partwise.relation.restriction import Restriction, restriction
from partwise.relation.tree import Tree
from tests.many_parts.queries import rows
from tests.relation.duck import Bag, Duck, Query, Row, condition
from tests.relation.queries import changed, query, with_keys

BLOCKS = 10


@pytest.fixture(scope="module")
def duck() -> Duck:
    return Duck()


class Case:
    """A random query, with its tree and two states of its inputs."""

    def __init__(self, seed: int, sql: str | None = None) -> None:
        self.seed, (self.sql, self.data) = seed, query(seed) if sql is None else (sql, rows(random.Random(seed)))
        self.run = Query(self.sql)
        self.tree = self.run.tree(("k",))
        self.old = self.run.inputs(self.data)
        self.new = self.run.inputs(changed(self.data, {t.table for t in self.run.found.tables}, random.Random(seed)))


def positions(tree: Tree, columns: tuple[str, ...]) -> list[int]:
    return [tree.names.index(name) for name in columns]


def same_rows(duck: Duck, case: Case) -> bool | None:
    """Restriction to some values of what a reference carries; None if none carries anything."""
    tree, run, inputs = case.tree, case.run, case.old
    found, rng = carried(tree), random.Random(case.seed)
    columns = sorted({c for each in found.values() for c in each})
    if not columns:
        return None
    chosen = tuple(c for c in columns if rng.random() < 0.7) or (rng.choice(columns),)
    whole = duck.run(run, inputs)
    at = positions(tree, chosen)
    present = sorted({tuple(row[p] for p in at) for row in whole}, key=str)
    wanted = set(rng.sample(present, min(len(present), rng.choice([1, 1, 2]))))
    wanted.add(tuple(rng.choice([0, 1, None]) for _ in at))
    wanted.add((None,) * len(at))
    filters = {}
    for n, each in found.items():
        use = [(p, each[c]) for p, c in enumerate(chosen) if c in each]
        if use:
            listed = sorted({condition([(e.replace("`", '"'), value[p]) for p, e in use]) for value in wanted})
            filters[n] = " OR ".join(f"({text})" for text in listed)
    restricted = duck.run(run, inputs, filters)
    return kept(whole, at, wanted, True) == kept(restricted, at, wanted, True)


def kept(bag: Bag, at: list[int], wanted: set[tuple[object, ...]], inside: bool) -> Bag:
    return Counter({row: n for row, n in bag.items() if (tuple(row[p] for p in at) in wanted) is inside})


def repaired(duck: Duck, case: Case) -> bool | None:
    """A change repaired by keys; None if it cannot be."""
    tree, run, old, new = case.tree, case.run, case.old, case.new
    differs = {
        n: list(((Counter(new[n]) - Counter(old[n])) + (Counter(old[n]) - Counter(new[n]))).elements()) for n in old
    }
    plan = restriction(carried(tree), [n for n, rows in differs.items() if rows], key(tree) or ())
    if plan is None:
        return None
    touched = [set().union(*(duck.values(e, differs[n]) for n, e in each.taken.items())) for each in plan.sets]
    at = [positions(tree, each.columns) for each in plan.sets]

    def inside(row: tuple[object, ...]) -> bool:
        return any(tuple(row[p] for p in ps) in values for ps, values in zip(at, touched, strict=True))

    before, fresh = duck.run(run, old), duck.run(run, new, filters_of(plan, touched))
    found = Counter({r: n for r, n in before.items() if not inside(r)}) + Counter(
        {r: n for r, n in fresh.items() if inside(r)}
    )
    return found == duck.run(run, new)


def filters_of(plan: Restriction, touched: list[set[tuple[object, ...]]]) -> dict[int, str]:
    found = {}
    for n, by in plan.filters.items():
        ors = []
        for each, columns, values in zip(by, plan.sets, touched, strict=True):
            at = [columns.columns.index(c) for c, _ in each]
            for value in {tuple(v[p] for p in at) for v in values}:
                ors.append(condition([(e.replace("`", '"'), x) for (_, e), x in zip(each, value, strict=True)]))
        found[n] = " OR ".join(f"({text})" for text in ors) or "false"
    return found


def unique(duck: Duck, case: Case) -> bool | None:
    found = key(case.tree)
    if found is None:
        return None
    rows = duck.run(case.run, case.run.inputs(with_keys(case.data)))
    at = positions(case.tree, found)
    return len({tuple(row[p] for p in at) for row in rows}) == rows.total()


def merged(duck: Duck, case: Case) -> bool | None:
    how, run, old, new = delta(case.tree), case.run, case.old, case.new
    if not how.possible or (how.groups is not None and (not how.published or how.extremes)):
        return None
    found: Bag = duck.run(run, old)
    for n, (plus, minus) in differences(old, new):
        mixed = held(n, old, new)
        found += duck.run(run, {**mixed, n: plus})
        less = duck.run(run, {**mixed, n: minus})
        if how.groups is None:
            found.subtract(less)
        else:
            found = added(case.tree, how, [*found.elements()], [*less.elements()])
    if how.groups is not None:
        found = added(case.tree, how, [*found.elements()], [])
    return {r: n for r, n in found.items() if n} == dict(duck.run(run, new))


def held(n: int, old: dict[int, list[Row]], new: dict[int, list[Row]]) -> dict[int, list[Row]]:
    """Occurrences before this one are new already, those behind it still old."""
    return {o: new[o] if o < n else old[o] for o in old}


def added(tree: Tree, how: Delta, plus: list[tuple[Any, ...]], minus: list[tuple[Any, ...]]) -> Bag:
    """Partials of groups, added and taken away: a group without rows is gone, a sum without values is NULL."""
    assert how.groups is not None
    at = positions(tree, how.groups)
    column = {(p.function, p.argument): tree.names.index(str(p.column)) for p in how.partials}
    sums: dict[tuple[Any, ...], list[int]] = {}
    for listed, sign in ((plus, 1), (minus, -1)):
        for row in listed:
            total = sums.setdefault(tuple(row[p] for p in at), [0] * len(row))
            for p in column.values():
                total[p] += sign * (row[p] or 0)
    result: Bag = Counter()
    for group, total in sums.items():
        if total[column["count_all", ""]]:
            row: list[Any] = list(total)
            for p, value in zip(at, group, strict=True):
                row[p] = value
            for (function, argument), p in column.items():
                if function == "sum" and not total[column["count", argument]]:
                    row[p] = None
            result[tuple(row)] += 1
    return result


def differences(
    old: dict[int, list[Row]], new: dict[int, list[Row]]
) -> Iterator[tuple[int, tuple[list[Row], list[Row]]]]:
    for n in old:
        plus, minus = Counter(new[n]) - Counter(old[n]), Counter(old[n]) - Counter(new[n])
        if plus or minus:
            yield n, ([*plus.elements()], [*minus.elements()])


def met(duck: Duck, case: Case) -> bool | None:
    """Rows of dimensions come and go; None where each may matter for each part, or all of them meet something."""
    found, rng = joined(case.tree), random.Random(case.seed)
    if not found:
        return None
    missed = None
    for _ in range(4):
        new = dict(case.old)
        for n, by in found.items():
            listed = list(case.old[n])
            listed = listed[rng.choice([0, 0, 1]) :]
            listed += [
                (rng.choice([0, 2, 5, 8, None]), rng.choice([-1, 1, 3, 9, None])) for _ in range(rng.choice([0, 1]))
            ]
            moved = (Counter(listed) - Counter(case.old[n])) + (Counter(case.old[n]) - Counter(listed))
            if all(
                _values(moved, each.own).isdisjoint(_values(case.old[each.occurrence], each.columns)) for each in by
            ):
                new[n] = listed
        if new != case.old:
            missed = True
            if duck.run(case.run, new) != duck.run(case.run, case.old):
                return False
    return missed


def _values(rows: Iterable[Row], columns: tuple[str, ...]) -> set[tuple[int | None, ...]]:
    return {tuple(row["kv".index(c)] for c in columns) for row in rows}


#: How many of the queries a rule says something about, at least: else the test says nothing.
RULES = {
    "restriction": (same_rows, 0.3),
    "repair": (repaired, 0.1),
    "keys": (unique, 0.1),
    "merge": (merged, 0.05),
    "joined": (met, 0.05),
}


@pytest.mark.parametrize("block", range(BLOCKS))
def test_rules_hold(duck: Duck, block: int, request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--relations") // BLOCKS
    cases = [Case(seed) for seed in range(block * count, (block + 1) * count)]
    for rule, (check, least) in RULES.items():
        results = [(check(duck, case), case) for case in cases]
        wrong = [(case.seed, case.sql) for result, case in results if result is False]
        assert not wrong, (rule, wrong)
        assert sum(result is True for result, _ in results) >= least * len(cases), rule
