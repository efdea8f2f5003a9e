"""Rules against recomputation, over random queries, rows and changes on DuckDB.

    restriction   rows of the result with P are the same whether the references are filtered by P or not
    repair        rows without P as they were + rows with P computed again = computed from scratch
    keys          no two rows agree in the key
    merge         Q(new) = Q(old) + what the changed rows give
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest

from partwise.relation import build, carried, delta, key
from partwise.relation.restriction import Restriction, restriction
from partwise.relation.tree import Tree
from tests.relation.duck import Bag, Duck, Query, Row, condition, tables
from tests.relation.queries import changed, query

BLOCKS = 10


@pytest.fixture(scope="module")
def duck() -> Duck:
    return Duck()


def seeds(config: pytest.Config, block: int) -> range:
    count = config.getoption("--relations")
    return range(block * count // BLOCKS, (block + 1) * count // BLOCKS)


def positions(tree: Tree, columns: tuple[str, ...]) -> list[int]:
    return [tree.names.index(name) for name in columns]


def same_rows(duck: Duck, seed: int) -> bool | None:
    """Restriction to some values of what a reference carries; None if none carries anything."""
    sql, data = query(seed)
    tree = build(sql, tables())
    found, rng = carried(tree), random.Random(seed)
    columns = sorted({c for each in found.values() for c in each})
    if not columns:
        return None
    chosen = tuple(c for c in columns if rng.random() < 0.7) or (rng.choice(columns),)
    run = Query(sql)
    inputs = run.inputs(data)
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


def repaired(duck: Duck, seed: int) -> bool | None:
    """A change repaired by keys; None if it cannot be."""
    sql, data = query(seed)
    later = changed(data, random.Random(seed))
    tree, run = build(sql, tables()), Query(sql)
    old, new = run.inputs(data), run.inputs(later)
    differs = {n: list(((Counter(new[n]) - Counter(old[n])) + (Counter(old[n]) - Counter(new[n]))).elements()) for n in old}
    plan = restriction(carried(tree), [n for n, rows in differs.items() if rows], key(tree) or ())
    if plan is None:
        return None
    touched = [
        set().union(*(duck.values(e, differs[n]) for n, e in each.taken.items())) for each in plan.sets
    ]
    at = [positions(tree, each.columns) for each in plan.sets]

    def inside(row: tuple[object, ...]) -> bool:
        return any(tuple(row[p] for p in ps) in values for ps, values in zip(at, touched, strict=True))

    before, fresh = duck.run(run, old), duck.run(run, new, filters_of(plan, touched))
    found = Counter({r: n for r, n in before.items() if not inside(r)}) + Counter({r: n for r, n in fresh.items() if inside(r)})
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


def unique(duck: Duck, seed: int) -> bool | None:
    sql, data = query(seed, unique=True)
    tree = build(sql, tables(("k",)))
    found = key(tree)
    if found is None:
        return None
    run = Query(sql)
    rows = duck.run(run, run.inputs(data))
    at = positions(tree, found)
    return len({tuple(row[p] for p in at) for row in rows}) == rows.total()


def merged(duck: Duck, seed: int) -> bool | None:
    sql, data = query(seed)
    later = changed(data, random.Random(seed))
    how = delta(build(sql, tables()))
    if not how.possible or how.groups is not None:
        return None
    run = Query(sql)
    old, new = run.inputs(data), run.inputs(later)
    found = duck.run(run, old)
    for n, (plus, minus) in differences(old, new):
        # Occurrences before this one are new already, those behind it still old.
        mixed = {o: new[o] if o < n else old[o] for o in old}
        found += duck.run(run, {**mixed, n: plus})
        found.subtract(duck.run(run, {**mixed, n: minus}))
    return {r: n for r, n in found.items() if n} == dict(duck.run(run, new))


def differences(old: dict[int, list[Row]], new: dict[int, list[Row]]) -> Iterator[tuple[int, tuple[list[Row], list[Row]]]]:
    for n in old:
        plus, minus = Counter(new[n]) - Counter(old[n]), Counter(old[n]) - Counter(new[n])
        if plus or minus:
            yield n, ([*plus.elements()], [*minus.elements()])


RULES = {"restriction": (same_rows, 0.3), "repair": (repaired, 0.2), "keys": (unique, 0.2), "merge": (merged, 0.05)}


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("rule", RULES)
def test_rule_holds(duck: Duck, rule: str, block: int, request: pytest.FixtureRequest) -> None:
    check, least = RULES[rule]
    chosen = seeds(request.config, block)
    results = {seed: check(duck, seed) for seed in chosen}
    wrong = [seed for seed, result in results.items() if result is False]
    assert not wrong, [(seed, query(seed)[0]) for seed in wrong]
    assert sum(result is True for result in results.values()) >= least * len(chosen)
