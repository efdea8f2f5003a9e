"""The order of steps: whoever has waited longest comes first, so that nobody waits for ever."""

from __future__ import annotations

from partwise.ledger.open import in_memory
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Range, Reference
from partwise.plan.model import Step
from partwise.plan.urgency import first_of_each
from partwise.tables import Graph, Input, Table


def step(table: str, lo: int, since: float) -> Step:
    return Step(table, Range(lo, lo), "missing", "", since)


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
