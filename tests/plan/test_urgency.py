"""The order of steps: earliest deadline first, hopeless last, missing before stale, and nobody waits for ever."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.ledger.open import in_memory
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Range, Reference
from partwise.plan.model import Step, StepKind
from partwise.plan.urgency import LONGEST, MAY_WAIT, USUAL, Lag, first_of_each, lags
from partwise.tables import Graph, Input, Table


def step(table: str, lo: int, since: float, kind: StepKind = "missing") -> Step:
    return Step(table, Range(lo, lo), kind, "", since)


def order(now: float, allowed: dict[str, float], *steps: Step) -> list[str]:
    return [s.table for s in first_of_each(steps, allowed, now)]


def test_the_longest_waiting_comes_first_one_step_a_table() -> None:
    steps = [step("a", 1, 30), step("a", 2, 10), step("b", 1, 20), step("c", 1, 5)]
    assert [(s.table, s.parts.lo) for s in first_of_each(steps)] == [("c", 1), ("a", 2), ("b", 1)]


def test_what_has_waited_equally_long_stays_in_the_order_of_the_plan() -> None:
    steps = [step(name, 0, 7) for name in ("panes", "window", "report")]
    assert [s.table for s in first_of_each(steps)] == ["panes", "window", "report"]


def test_nobody_starves_while_data_keep_landing() -> None:
    """More becomes due than one worker can do: every second each of the views that is done is due again."""
    names = [f"v{n}" for n in range(5)]
    due, done = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    for second in range(1, 101):
        chosen = first_of_each(step(name, 0, since) for name, since in due.items())[0].table
        done[chosen] += 1
        due[chosen] = float(second)
    assert max(done.values()) - min(done.values()) <= 1


def test_a_plan_says_since_when() -> None:
    sources = [Table(name, "source", 60, "f") for name in ("s", "t")]
    views = [Table(f"of_{s.name}", "view", 60, "f", *2 * ((Input(s.name, Reference.same()),),)) for s in sources]
    ledger = in_memory()
    ledger.define(Graph.of((*sources, *views)), 0.0)
    for name, part, now in (("t", 5, 10.0), ("s", 5, 20.0), ("t", 6, 30.0)):
        held = ledger.take(name, "me", 60, now)
        ledger.commit(held, Entry(name, 0, "f", None, None, {part: Content(1, f"1:{part}")}), None, now)
    steps = ledger.plan(40.0).steps
    assert {(s.table, s.parts, s.since) for s in steps} == {("of_s", Range(5, 5), 20.0), ("of_t", Range(5, 6), 10.0)}
    assert [s.table for s in first_of_each(steps)] == ["of_t", "of_s"]


class TestDeadlines:
    def test_the_earliest_deadline_comes_first(self) -> None:
        allowed = {"hourly": 3600.0, "alarms": 60.0, "report": 600.0}
        steps = [step("hourly", 0, 0), step("report", 0, 20), step("alarms", 0, 50)]
        assert order(60, allowed, *steps) == ["alarms", "report", "hourly"]

    def test_what_is_late_already_comes_last_but_not_for_ever(self) -> None:
        allowed = {"late": 100.0, "new": 100.0}
        late = step("late", 0, 0)
        assert order(100, allowed, late, step("new", 0, 60)) == ["late", "new"]
        assert order(101, allowed, late, step("new", 0, 60)) == ["new", "late"]
        assert order(399, allowed, late, step("new", 0, 350)) == ["new", "late"]
        assert order(LONGEST * 100, allowed, late, step("new", 0, 350)) == ["late", "new"]

    def test_missing_before_stale_until_half_of_the_time_is_gone(self) -> None:
        allowed = {"repair": 100.0, "new": 1000.0}
        steps = [step("repair", 0, 0, "stale"), step("new", 0, 0)]
        assert order(MAY_WAIT * 100 - 1, allowed, *steps) == ["new", "repair"]
        assert order(MAY_WAIT * 100, allowed, *steps) == ["repair", "new"]

    def test_a_table_is_as_urgent_as_its_most_urgent_step(self) -> None:
        allowed = {"a": 100.0, "b": 100.0}
        steps = [step("a", 1, 0, "stale"), step("a", 9, 5), step("b", 1, 3)]
        assert [(s.table, s.parts.lo) for s in first_of_each(steps, allowed, 10)] == [("b", 1), ("a", 9)]

    def test_without_freshness_an_hour_is_allowed(self) -> None:
        steps = [step("nobody_said", 0, 0), step("said", 0, USUAL)]
        assert order(USUAL, {"said": 60.0}, *steps) == ["nobody_said", "said"]
        assert order(USUAL, {"said": 60.0}, step("nobody_said", 0, 100), steps[1]) == ["said", "nobody_said"]

    def test_what_a_view_reads_has_its_deadline(self) -> None:
        same = Reference.same()
        graph = Graph.of(
            [
                Table("s", "source", 60, "f"),
                Table("a", "view", 60, "f", *2 * ((Input("s", same),),)),
                Table("b", "view", 60, "f", *2 * ((Input("a", same),),), freshness=300.0),
                Table("c", "view", 60, "f", *2 * ((Input("a", same),),), freshness=60.0),
                Table("d", "view", 60, "f", *2 * ((Input("c", same),),)),
            ]
        )
        assert graph.allowed == {"s": 60.0, "a": 60.0, "b": 300.0, "c": 60.0}


@st.composite
def waiting(draw: st.DrawFn) -> tuple[list[Step], dict[str, float], float]:
    names = [f"v{n}" for n in range(draw(st.integers(1, 6)))]
    kinds = st.sampled_from(["missing", "stale", "requested"])
    steps = [
        step(draw(st.sampled_from(names)), n, draw(st.integers(0, 500)), draw(kinds))
        for n in range(draw(st.integers(1, 10)))
    ]
    allowed = {name: float(draw(st.integers(1, 300))) for name in names if draw(st.booleans())}
    return steps, allowed, float(draw(st.integers(500, 2000)))


@given(waiting())
def test_each_table_once_and_without_freshness_by_waiting_time_alone(
    case: tuple[list[Step], dict[str, float], float],
) -> None:
    steps, allowed, now = case
    found = first_of_each(steps, allowed, now)
    assert len({s.table for s in found}) == len(found)
    assert {s.table for s in found} == {s.table for s in steps}
    plain = first_of_each(steps, {}, now)
    assert [s.since for s in plain] == sorted(s.since for s in plain)
    assert plain == first_of_each(steps)


@given(waiting())
def test_no_step_goes_before_one_that_can_still_be_on_time_unless_it_is_more_urgent(
    case: tuple[list[Step], dict[str, float], float],
) -> None:
    steps, allowed, now = case
    steps = [s for s in steps if s.table in allowed]  # deadlines that somebody has set
    found = first_of_each(steps, allowed, now)
    for earlier, later in pairwise(found):
        waited = now - earlier.since
        hopeless = allowed[earlier.table] < waited < LONGEST * allowed[earlier.table]
        on_time = now - later.since <= allowed[later.table]
        assert not (hopeless and on_time)
        if not hopeless and on_time and earlier.kind == later.kind != "stale":
            assert earlier.since + allowed[earlier.table] <= later.since + allowed[later.table]


@pytest.mark.parametrize("seed", range(10))
def test_under_any_load_nobody_waits_without_end(seed: int) -> None:
    """One step a second; whatever is done is due again at once, so the load is as many times too high as there are views."""
    rng = Random(seed)
    names = [f"v{n}" for n in range(12)]
    allowed = {name: float(rng.choice([2, 5, 20])) for name in names if rng.random() < 0.8}
    due = dict.fromkeys(names, 0.0)
    longest = dict.fromkeys(names, 0.0)
    for second in range(1, 3000):
        kind: StepKind = rng.choice(["missing", "stale"])
        chosen = first_of_each((step(n, 0, since, kind) for n, since in due.items()), allowed, float(second))[0].table
        longest[chosen] = max(longest[chosen], second - due[chosen])
        due[chosen] = float(second)
    assert all(3000 - since < USUAL + len(names) for since in due.values())
    for name, waited in longest.items():
        if name in allowed:
            assert waited <= LONGEST * max(allowed.values()) + 2 * len(names), (name, allowed)


def test_status_knows_who_is_behind_however_far_upstream_the_change_is() -> None:
    same = Reference.same()
    tables = [
        Table("s", "source", 60, "f"),
        Table("a", "view", 60, "f", *2 * ((Input("s", same),),)),
        Table("b", "view", 60, "f", *2 * ((Input("a", same),),), freshness=30.0),
        Table("other", "view", 60, "f", *2 * ((Input("s", same),),), freshness=1000.0),
    ]
    ledger = in_memory()
    ledger.define(Graph.of(tables), 0.0)

    def commit(name: str, content: str, now: float) -> None:
        held = ledger.take(name, "me", 60, now)
        if name == "s":
            ledger.commit(held, Entry(name, 0, "f", None, None, {5: Content(1, content)}), None, now)
            return
        pinned = ledger.pin(held, now)
        assert pinned is not None
        ledger.commit(held, pinned.entry({5: Content(1, content)}), None, now)

    def found(now: float) -> dict[str, Lag]:
        with as_defined(ledger, ledger.graph(), now) as snapshot:
            return lags(snapshot.graph, snapshot.looks)

    assert found(1.0) == {}
    commit("s", "1", 10.0)
    assert found(11.0) == {"other": Lag(10.0, 1010.0)}  # b has no part yet that could be behind
    for name in ("a", "b", "other"):
        commit(name, "1", 12.0)
    assert found(13.0) == {}
    commit("s", "2", 20.0)
    assert found(21.0) == {"b": Lag(20.0, 50.0), "other": Lag(20.0, 1020.0)}
    commit("a", "2", 30.0)
    assert found(31.0)["b"] == Lag(30.0, 60.0)
