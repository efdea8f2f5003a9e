"""Planning reads what is due and what exists, by indexes: never the rows of parts, however many there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select

from partwise.ledger import facts, runs
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory
from partwise.ledger.schema import part
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts, Reference
from partwise.plan.planner import look_around
from partwise.tables import Graph, Input, Table

T = 1_000.0
SAME = (Input("s", Reference.same()),)
VIEW = Table("v", "view", 60, "f", (*SAME, Input("v", Reference.same(-1))), SAME)
WINDOW = Table("w", "view", 60, "f", *(((Input("v", Reference.window(-9, 0)), Input("s", Reference.same())),) * 2))
GRAPH = Graph.of((Table("s", "source", 60, "f"), VIEW, WINDOW))
#: Read as a whole: what is due, what failed, and the clock. They do not grow with history.
SMALL = ("due", "failure", "clock")
TINY = ("asked", "lost", "promise")  # one row, or rows only while something special goes on


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """s -> v -> w with parts 0..39, a gap in s, and late rows in two parts."""
    made = in_memory()
    made.define(GRAPH, T)
    arrive(made, [*range(20), *range(25, 40)], "a")
    for name in ("v", "w"):
        held = made.take(name, "step", 60, T)
        pin = made.pin(held, T)
        assert pin is not None
        made.commit(held, pin.entry({j: Content(1, "a") for j in pin.due}), None, T)
    arrive(made, [7, 30], "b")
    yield made
    made.database.close()


def arrive(ledger: Ledger, parts: list[int], digest: str) -> None:
    held = ledger.take("s", "ingest", 60, T)
    ledger.commit(held, Entry("s", 0, "f", None, parts={p: Content(1, digest) for p in parts}), None, T)


@contextmanager
def statements(ledger: Ledger) -> Iterator[list[tuple[str, Any]]]:
    said: list[tuple[str, Any]] = []

    def note(_on: Any, _cursor: Any, sql: str, values: Any, _context: Any, _many: bool) -> None:
        said.append((sql, values))

    event.listen(ledger.database.engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(ledger.database.engine, "before_cursor_execute", note)


def test_a_plan_reads_no_rows_of_parts_and_walks_along_indexes(ledger: Ledger) -> None:
    ledger.graph()  # definitions are read once for as long as they do not change
    with statements(ledger) as said:
        plan = ledger.plan(T)
    assert [step.table for step in plan.steps] == ["v"]
    assert plan.later
    tables = {name for sql, _ in said for name in re.findall(r'(?:FROM|JOIN)\s+"?(\w+)', sql)}
    assert tables == {*SMALL, "have", "catalog", "asked"}
    walks = _walks(ledger, said)
    assert walks
    assert [step for step in walks if _is_scan(step)] == []


def test_the_pin_of_a_step_reads_only_rows_of_its_own_parts(ledger: Ledger) -> None:
    held = ledger.take("v", "step", 60, T)
    with statements(ledger) as said:
        assert ledger.pin(held, T, Parts.single(7)) is not None
    # Its own parts, and which of the parts that it reads have changed since it was computed.
    assert sum(" part\n" in f"{sql}\n" or "FROM part " in sql for sql, _ in said) == 2
    assert [step for step in _walks(ledger, said) if _is_scan(step)] == []


@pytest.mark.parametrize("statement", [runs._HAVE, runs._DUE, facts._SETTLED, runs._BOUNDS])
def test_each_question_of_the_planner_goes_by_an_index(ledger: Ledger, statement: Any) -> None:
    values = {"t": "s", "a": 3, "b": 9, "names": ["s", "v"]}
    with statements(ledger) as said, ledger.database.reading() as r:
        wanted = {name: values[name] for name in statement.compile().params if name in values}
        r.on.execute(statement, wanted).all()
    assert [step for step in _walks(ledger, said[-1:]) if step.startswith("SCAN")] == []


def test_many_windows_go_by_an_index(ledger: Ledger) -> None:
    with statements(ledger) as said, ledger.database.reading() as r:
        found = runs.existing_together(r, [("s", 15, 27), ("v", 0, 3), ("w", 100, 200)])
    assert found == {
        ("s", 15, 27): Parts.of((15, 19), (25, 27)),
        ("v", 0, 3): Parts.of((0, 3)),
        ("w", 100, 200): Parts(),
    }
    walks = _walks(ledger, said[-1:])
    assert [step for step in walks if "have" in step and not step.startswith("SEARCH")] == []


def test_rows_of_parts_are_not_even_there(ledger: Ledger) -> None:
    """The plan is the same without them."""
    before = ledger.plan(T)
    with ledger.database.writing(T) as w:
        w.on.execute(part.delete())
        assert w.on.execute(select(part)).all() == []
        looks = look_around(ledger._catalog.graph(w), facts.LedgerFacts(w), T)
    assert ledger.plan(T) == before
    assert list(looks) == ["v", "w"]


def _walks(ledger: Ledger, said: list[tuple[str, Any]]) -> list[str]:
    with ledger.database.engine.connect() as on:
        return [
            row[3]
            for sql, values in said
            if sql.lstrip().startswith(("SELECT", "WITH"))
            for row in on.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)
        ]


def _is_scan(step: str) -> bool:
    match = re.match(r"SCAN (\w+)", step)
    return match is not None and match[1] not in (*SMALL, *TINY) and not match[1].isdigit()
