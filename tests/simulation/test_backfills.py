"""Backfills in random worlds: all that was requested is computed, nothing outside of what it reaches, and the end is exact."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from partwise.backfill import BadRange, ask
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records import backfills
from partwise.ledger.records.backfills import Backfill
from partwise.ledger.schema import part
from partwise.parts import FOREVER, Parts, Range
from tests.simulation.checks import check_end
from tests.simulation.history import History, new_history


def begin(history: History) -> Backfill | None:
    """Somebody asks for some parts of a view, some of them before its start or after its end."""
    rng, graph = history.rng, history.ledger.graph()
    name = history.a_table("view")
    with as_defined(history.ledger, graph, history.now) as snapshot:
        world = backfills.world_of(snapshot)
        there = world.existing(name, -FOREVER, FOREVER)
        if not there:
            return None
        lo = rng.randint(there.first - 3, there.last)
        try:
            asked = ask(world, name, Range(lo, lo + rng.randint(0, 5)), rng.random() < 0.3)
        except BadRange:
            return None
    history.requested |= {(table, j) for table, parts in asked.requested.items() for j in parts}
    with history.ledger.database.writing(history.now) as w:
        return backfills.begin(w, graph, asked, rng.random() < 0.7, "somebody", lambda _: False)


def carry_out(history: History, found: Backfill) -> None:
    for _ in range(300):
        history.now += 1
        graph = history.ledger.graph()
        with history.ledger.database.reading() as r:
            scope = backfills.scope_of(r, graph, found)
        steps = [s for s in history.ledger.plan(history.now).steps if scope.get(s.table, Parts()).within(*s.parts)]
        if not steps:
            return
        step = history.rng.choice(steps)
        history.finish(history.step(step.table, scope[step.table], history.model))
    history.problems.append("the backfill does not come to an end")


def check(history: History, found: Backfill) -> int:
    """Everything that was recorded meanwhile belongs to the backfill, and asked parts are done if they can be.

    What is still due after everything else has run waits for a part that is not there.
    """
    graph = history.ledger.graph()
    with history.ledger.database.reading() as r:
        scope = backfills.scope_of(r, graph, found)
        done = backfills.progress(r, graph, found)
        rows = r.on.execute(select(part.c.table, part.c.part).where(part.c.self_as_of > found.number)).all()
    for name, p in rows:
        if p not in scope.get(name, Parts()):
            history.problems.append(f"{name}[{p}] was computed, but is no part of the backfill")
    history.settle()
    with history.ledger.database.reading() as r:
        for name, parts in found.asked.items():
            if left := (parts & done[name].left) - backfills.due_parts(r, name):
                history.problems.append(f"{name}: {left} was requested and could have been done")
    return sum(each.recomputed.count for each in done.values())


#: The last ones of each move the start of a view.
SEEDS = [[*range(10), 29, 42], [*range(10, 20), 28, 53]]


@pytest.mark.parametrize("seeds_of", SEEDS, ids=["first", "second"])
def test_backfills_do_what_was_asked_and_what_follows_from_it(seeds_of: list[int]) -> None:
    computed = moved = 0
    for seed in seeds_of:
        history = new_history(seed)
        history.play(80)
        history.settle()
        for _ in range(3):
            for _ in range(history.rng.randint(0, 3)):
                history.arrive()
            for table in history.model.graph.tables.values():
                if table.kind != "view":
                    history.finish(history.ingest(table.name))
            found = begin(history)
            if found is not None:
                carry_out(history, found)
                computed += check(history, found)
                moved += len(found.asked) > 1
                with history.ledger.database.writing(history.now) as w:
                    backfills.finish(w, found.number, True)
        history.settle()
        check_end(history)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"
    assert computed > 30
    assert moved
