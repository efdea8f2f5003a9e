"""Which join is worth keeping, for queries of TPC-H: that sizes and deliveries decide, and that nothing is possible."""

from __future__ import annotations

import pytest

from partwise.choose.state import ExpectedLate, StateAdvice, StateFigures, advised
from partwise.compile.state.flat import Flat, flat
from tests.relation.tpch import QUERIES, TABLES
from tests.state.test_split import statement

#: Rows of the tables for one of lineitem.
SHARES = {"lineitem": 1.0, "orders": 0.25, "customer": 0.025, "supplier": 0.0017, "nation": 1e-5, "region": 1e-6}


def advice(query: int, rows: float, late: dict[str, float], merge: bool = False) -> StateAdvice:
    found: Flat = flat(statement(QUERIES[query]), TABLES.get)
    names = {each.occurrence: each.reference.table for each in found.joined}
    figures = StateFigures(
        rows={n: max(1.0, rows * SHARES[table]) for n, table in names.items()},
        late={n: ExpectedLate(late[table], rows / 100) for n, table in names.items() if table in late},
        result=rows / 20,
    )
    return advised(found, figures, merge)


@pytest.mark.parametrize(
    "query, rows, late, join",
    [
        (3, 2_000_000, {"lineitem": 3}, ("customer", "orders")),
        (10, 2_000_000, {"lineitem": 3}, ("customer", "orders", "nation")),
        (3, 200_000, {"lineitem": 3}, ()),
        (3, 20_000_000, {"lineitem": 0.05}, ()),
        (3, 20_000_000, {}, ()),
        (3, 2_000_000, {"lineitem": 3, "orders": 30}, ()),
    ],
    ids=["large parts", "three inputs", "small parts", "hardly anything late", "nothing late", "both sides late"],
)
def test_what_is_worth_keeping(query: int, rows: float, late: dict[str, float], join: tuple[str, ...]) -> None:
    found = advice(query, rows, late)
    assert found.join == join, found
    if join:
        assert found.gain > 1.1
        assert 0 < found.bytes < rows * 20


def test_more_deliveries_speak_for_it() -> None:
    gains = [advice(3, 20_000_000, {"lineitem": n}).gain for n in (1, 3, 10)]
    assert gains == sorted(gains)
    assert gains[0] < gains[2]


def test_merging_costs_least_of_all() -> None:
    assert advice(3, 20_000_000, {"lineitem": 3}, merge=True).cost < advice(3, 20_000_000, {"lineitem": 3}).cost


def test_tables_that_only_meet_in_a_third_one_are_not_kept_joined() -> None:
    """Customers and suppliers of one nation: every customer with every supplier."""
    found = advice(5, 2_000_000, {"lineitem": 3})
    assert set(found.join) >= {"customer", "orders"}
    assert "supplier" not in found.join
    assert found.rows < 2_000_000
