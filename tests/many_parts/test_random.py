"""Lifted = part by part, over random queries; and a rewriter with a fault in it is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from partwise.compile.many_parts import NotLiftable, Spread, grouping, joins, rewrite
from partwise.compile.many_parts.text import lift
from tests.many_parts import duck as ducks
from tests.many_parts.duck import Duck
from tests.many_parts.queries import query

#: Random queries that are compared; in blocks, so that a failure names its neighbourhood.
BLOCKS, IN_A_BLOCK = 11, 50
FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {}


@pytest.fixture(scope="module")
def duck() -> Duck:
    return Duck()


def same(duck: Duck, seed: int) -> bool | None:
    """Whether the lifted query gives the same columns and rows; None if it cannot be lifted."""
    sql, tables = query(seed)
    try:
        lifted = lift(sql)
    except NotLiftable:
        return None
    duck.fill(tables)
    names, bags = duck.part_by_part(sql)
    found_names, found = duck.lifted(lifted)
    return (found_names, found) == ([*names, "__j"], bags)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_lifted_is_part_by_part(duck: Duck, block: int) -> None:
    seeds = range(block * IN_A_BLOCK, (block + 1) * IN_A_BLOCK)
    results = {seed: same(duck, seed) for seed in seeds}
    wrong = [seed for seed, result in results.items() if result is False]
    assert not wrong, [(seed, query(seed)[0]) for seed in wrong]
    assert sum(result is True for result in results.values()) >= 0.9 * IN_A_BLOCK


# -- faults ---------------------------------------------------------------------------------------------


def fault(apply: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
    FAULTS[apply.__name__] = apply
    return apply


@fault
def groups_are_not_kept_apart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(grouping, "by_part", lambda s, index: None)


@fault
def windows_are_not_kept_apart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(grouping, "windows_by_part", lambda s, index: None)


@fault
def aggregates_of_empty_parts_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    def grouped(s: exp.Select, index: exp.Expr) -> None:
        if grouping_is_whole(s) and not s.args.get("group"):
            s.set("group", exp.Group(expressions=[index.copy()]))
        else:
            by_part(s, index)

    grouping_is_whole, by_part = grouping.is_whole, grouping.by_part
    patch.setattr(rewrite.grouping, "is_whole", lambda s: False)
    patch.setattr(rewrite.grouping, "by_part", grouped)


@fault
def limits_hold_for_all_parts_together(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite, "limited", lambda q: False)


@fault
def stars_show_the_index(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite, "hide", lambda s, scope: None)


@fault
def subqueries_see_all_parts(patch: pytest.MonkeyPatch) -> None:
    def unchanged(self: Any, clause: exp.Expr, named: Any, index: exp.Expr) -> None:
        for inner in [n for n in clause.walk() if isinstance(n, exp.Table) and n.name in self.references]:
            self.columns[inner.name] = self.fresh()

    patch.setattr(rewrite.Rewriter, "_subqueries", unchanged)


@fault
def an_unmatched_left_row_loses_its_part(patch: pytest.MonkeyPatch) -> None:
    after = joins.index_after
    patch.setattr(joins, "index_after", lambda s, before, here: here if s == "LEFT" else after(s, before, here))


@fault
def an_unmatched_right_row_loses_its_part(patch: pytest.MonkeyPatch) -> None:
    after = joins.index_after
    patch.setattr(joins, "index_after", lambda s, before, here: before if s == "RIGHT" else after(s, before, here))


@fault
def an_unmatched_row_of_a_full_join_loses_its_part(patch: pytest.MonkeyPatch) -> None:
    after = joins.index_after
    patch.setattr(joins, "index_after", lambda s, before, here: before if s == "FULL" else after(s, before, here))


@fault
def rows_meet_rows_of_other_parts(patch: pytest.MonkeyPatch) -> None:
    def connect(self: Any, join: exp.Join, side: str, column: str) -> None:
        before = self.scope.index
        self.scope.index = exp.column(column) if before is None else joins.index_after(side, before, exp.column(column))

    patch.setattr(joins.Joins, "_connect", connect)


@fault
def dimensions_on_the_right_have_no_parts(patch: pytest.MonkeyPatch) -> None:
    """Their unmatched rows are then shown once for all parts, or not at all."""
    join = joins.Joins._join

    def plain(self: Any, node: exp.Join, side: str) -> None:
        if side in ("RIGHT", "FULL") and self.scope.index is not None and not self._carries(node.this):
            return
        join(self, node, side)

    patch.setattr(joins.Joins, "_join", plain)


@fault
def all_parts_come_first_in_from(patch: pytest.MonkeyPatch) -> None:
    """Wrong after a RIGHT or FULL JOIN of dimensions."""

    def first(self: Any) -> None:
        column = self.rewriter.fresh()
        relation = self.rewriter.parts(column)
        self.joins.insert(0, exp.Join(this=relation, kind="CROSS"))
        self.scope.add(relation.alias, column)
        self.scope.index = exp.column(column)

    patch.setattr(joins.Joins, "_cross_parts", first)


@fault
def rows_go_one_part_too_far(patch: pytest.MonkeyPatch) -> None:
    spread = ducks.spread

    def far(reference: Any) -> Spread:
        way = spread(reference)
        return Spread(way.first, f"{way.last} + 1", False, way.gaps)

    patch.setattr(ducks, "spread", far)


@fault
def gaps_between_windows_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    spread = ducks.spread
    patch.setattr(ducks, "spread", lambda r: Spread(spread(r).first, spread(r).last, spread(r).single, False))


@fault
def named_queries_share_one_index(patch: pytest.MonkeyPatch) -> None:
    def shared(self: Any, table: exp.Table, column: str) -> exp.Table:
        self.rewriter.columns[table.name] = column
        return table

    patch.setattr(joins.Joins, "_named_query", shared)


def noticed(duck: Duck) -> Iterator[bool]:
    for seed in range(1500):
        try:
            yield same(duck, seed) is False
        except (duckdb.Error, AssertionError):
            yield True


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    FAULTS[name](monkeypatch)
    assert any(noticed(Duck()))
