"""Views that read the same helpers come, change and go in the middle of a history: the others do not notice."""

from __future__ import annotations

from random import Random

import pytest

from partwise.ledger.open import in_memory
from partwise.ledger.read.pin import Pin
from partwise.ledger.runs import due_rows
from partwise.ledger.write.commit import Entry
from partwise.parts import Parts, Reference
from partwise.tables import Graph, Input, Table
from tests.simulation.checks import check_due, check_end
from tests.simulation.history import History, Runner
from tests.simulation.test_strategies import BACK
from tests.simulation.world import Model

SAME = Reference.same()
#: Of each view that there may be: which rows it reads, how many parts, and whether it rolls.
Present = dict[str, tuple[int, int, bool]]
NAMES = ("w1", "w2", "w3", "w4")


def reading(name: str, *inputs: tuple[str, Reference], initial: tuple[tuple[str, Reference], ...] = ()) -> Table:
    read = tuple(Input(*each) for each in inputs)
    return Table(name, "view", 60, "", read, tuple(Input(*each) for each in initial) or read)


def serving(table: Table, views: list[str]) -> Table:
    from dataclasses import replace

    return replace(table, helper_of=views[0], also=tuple(views[1:]))


def model_of(present: Present) -> Model:
    """What views mean decides what their helpers are called, and the salts of their contents."""
    model = Model(Graph.of([Table("s", "source", 60, "s")]), {})
    for rows in sorted({rows for rows, _, _ in present.values()}):
        panes = f"s__panes_{rows:08x}"
        readers = [view for view in NAMES if view in present and present[view][0] == rows]
        model = model.with_view(serving(reading(panes, ("s", SAME)), readers), rows)
        for width in sorted({present[view][1] for view in readers if present[view][2]}):
            sums = f"s__rolling_{rows * 16 + width:08x}"
            both = [view for view in readers if present[view] == (rows, width, True)]
            new = ((sums, Reference.same(-1)), (panes, SAME), (panes, Reference.same(-width)))
            first = ((panes, Reference.window(1 - width, 0)),)
            model = model.with_view(serving(reading(sums, *new, initial=first), both), rows * 16 + width)
    for view in (view for view in NAMES if view in present):
        rows, width, rolls = present[view]
        one = (f"s__rolling_{rows * 16 + width:08x}", SAME)
        several = (f"s__panes_{rows:08x}", Reference.window(1 - width, 0))
        model = model.with_view(reading(view, one if rolls else several), rows * 100 + width)
    return model.with_view(reading("r", ("s", Reference.window(-1, 0))), 7)


def drawn(rng: Random) -> tuple[int, int, bool]:
    return rng.choice((1, 1, 2)), rng.choice((2, 3, 4)), rng.random() < 0.4


class Sharing(History):
    def define(self, present: Present, before: Present) -> None:
        model = model_of(present)
        alike = {name for name in present if before.get(name) == present[name]}
        helpers = {n for n, t in self.model.graph.tables.items() if not alike.isdisjoint(t.serves)}
        untouched = {*alike, *helpers, "r"}
        was = {name: (self._due(name), self._revisions(name)) for name in untouched}
        self.ledger.define(model.graph, self.now)
        for name, (due, revisions) in was.items():
            assert name in self.ledger.graph().tables, f"{name} still has a reader"
            assert self._due(name) == due, f"{name} is due because others came or went"
            assert self._revisions(name) == revisions
        self.model = model
        self.models.append(model)

    def _due(self, name: str) -> list[tuple[int, int]]:
        with self.ledger.database.reading() as r:
            return [(row.lo, row.hi) for row in due_rows(r, name)]

    def _revisions(self, name: str) -> list[tuple[int, int]]:
        from sqlalchemy import select

        from partwise.ledger.schema import part

        with self.ledger.database.reading() as r:
            wanted = select(part.c.part, part.c.revision).where(part.c.table == name).order_by(part.c.part)
            return [(row.part, row.revision) for row in r.on.execute(wanted)]

    def step(self, name: str, asked: Parts | None, model: Model) -> Runner:
        if name in model.graph.tables:
            yield from super().step(name, asked, model)

    def register(self, entry: Entry, pin: Pin | None = None) -> None:
        if entry.table in self.ledger.graph().tables:
            super().register(entry, pin)


def play(seed: int, retention: bool) -> Sharing:
    rng = Random(seed)
    present: Present = {name: drawn(rng) for name in NAMES if rng.random() < 0.7}
    model = model_of(present)
    history = Sharing(rng, model, in_memory(), changing=0.0, retention=retention, models=[model])
    history.ledger.define(model.graph, history.now)
    for _ in range(rng.randint(3, 6)):
        history.play(rng.randint(15, 45))
        before, name = dict(present), rng.choice(NAMES)
        if name in present and rng.random() < 0.5:
            del present[name]
        else:
            present[name] = drawn(rng)
        history.define(present, before)
        check_due(history)
    history.settle()
    check_end(history)
    history.ledger.database.close()
    history.problems = [told for told in history.problems if not any(words in told for words in BACK)]
    return history


@pytest.mark.parametrize("retention", [False, True], ids=["all-kept", "retention"])
@pytest.mark.parametrize("first", range(0, 30, 15))
def test_contents_stay_exact_whoever_comes_and_goes(first: int, retention: bool) -> None:
    shared, computations = 0, 0
    for seed in range(first, first + 15):
        history = play(seed, retention)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"
        shared += sum(bool(t.also) for model in history.models for t in model.graph.tables.values())
        computations += history.computations
    assert shared > 15, "hardly any helper was shared"
    assert computations > 150
