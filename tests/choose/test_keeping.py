"""How long what is kept is kept, and that it does not come and go: pure, with figures as they could be in a ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from partwise.choose.arrivals import AGES
from partwise.choose.keeping import ViewState, ages, curve_of_view
from partwise.choose.state import ExpectedLate, StateFigures, best
from partwise.compile.load import load_texts
from partwise.compile.relations import Relations
from partwise.compile.state.generate import keepable
from partwise.ledger.records.kept_states import KeptChoice

TEXT = """
source: lineitem
part: 1 day
time: t
columns: {t: timestamp, l_orderkey: bigint, price: bigint, quantity: bigint}
files: l/*.csv
---
source: orders
part: 1 day
time: t
columns: {t: timestamp, o_orderkey: bigint, o_custkey: bigint, kind: string}
files: o/*.csv
---
dimension: customer
columns: {c_custkey: bigint, c_name: string}
files: c.csv
---
view: v
part: 1 day
KEEP
update: |
  SELECT c_name, o_orderkey, price FROM lineitem[j], orders[j], customer
  WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey AND kind = 'web' AND o_orderkey IN
    (SELECT i.l_orderkey FROM lineitem[j] i GROUP BY i.l_orderkey HAVING SUM(i.quantity) > 3)
"""
DAY = 86_400


def state(rows: float, deliveries: float, half: float = DAY, keep: str = "", again: float = 0.0) -> ViewState:
    """`half`: after so many seconds half of the deliveries have come."""
    program = load_texts({"v.yaml": TEXT.replace("KEEP", keep).encode()})
    assert program.ok, program.problems
    view = program.views["v"]
    can = keepable(view, Relations(program), {name.lower(): table for name, table in program.tables.items()})
    assert can is not None
    late = ExpectedLate(deliveries, rows / 100)
    figures = StateFigures(
        {0: rows, 1: rows / 4, 2: rows / 40, 3: rows}, {0: late, 3: late}, rows / 20, {2: again} if again else None
    )
    return ViewState(view, can, figures, False, lambda age: 0.5 ** (age / half), 30 * DAY)


def test_the_deliveries_that_are_left_decide_how_long() -> None:
    short, long = (state(20_000_000, 4, half) for half in (DAY, 7 * DAY))
    advice = best(short.options())
    assert advice.join == ("orders", "customer")
    assert ages(short, advice)[-1] < ages(long, advice)[-1]
    last = ages(short, advice)[-1]
    assert not advice.with_fewer(short.share(last)).pays
    assert all(advice.with_fewer(short.share(age)).pays for age in AGES if age < last)


def test_nothing_is_kept_longer_than_the_view() -> None:
    found = state(20_000_000, 4, 7 * DAY, keep="keep: 2 days")
    assert ages(found, best(found.options()))[-1] == 2 * DAY


@pytest.mark.parametrize(
    "rows, deliveries, again",
    [(200_000, 3, 0), (20_000_000, 0.01, 0), (20_000_000, 0, 0), (20_000_000, 1, 30)],
    ids=["small parts", "hardly anything late", "nothing late", "dimensions that always change"],
)
def test_nothing_is_possible(rows: float, deliveries: float, again: float) -> None:
    found = curve_of_view(state(rows, deliveries, again=again), None)
    assert [o for o in found if "customer" in o.advice.join] == []
    if not again:
        assert found == []


def test_what_is_kept_has_to_be_clearly_beaten() -> None:
    found = state(20_000_000, 4)
    options = curve_of_view(found, None)
    kept = min(options, key=lambda o: o.gain)
    now = KeptChoice("v", kept.advice.join, kept.advice.groups, "", kept.until)
    gains = {(o.advice.join, o.advice.groups, o.until): o.gain for o in options}
    for each in curve_of_view(found, now):
        same = (each.advice.join, each.advice.groups) == (now.join, now.groups)
        before = gains[each.advice.join, each.advice.groups, each.until]
        assert each.gain == pytest.approx(before * (1.25 if same else 1))


def test_longer_is_more_bytes_and_more_gain() -> None:
    found = state(20_000_000, 4, 7 * DAY)
    by_what: dict[object, list[tuple[int, float, float]]] = {}
    for each in curve_of_view(found, None):
        by_what.setdefault((each.advice.join, each.advice.groups), []).append((each.until, each.bytes, each.gain))
    assert by_what
    for options in by_what.values():
        assert options == sorted(options)
        assert [gain for _, _, gain in options] == sorted(gain for _, _, gain in options)


def test_groups_are_for_deliveries_that_touch_few() -> None:
    found = state(20_000_000, 4)
    assert any(o.advice.groups for o in curve_of_view(found, None))
    many = {n: replace(each, rows=5_000_000) for n, each in found.figures.late.items()}
    assert not any(
        o.advice.groups for o in curve_of_view(replace(found, figures=replace(found.figures, late=many)), None)
    )
