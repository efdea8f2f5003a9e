"""A window that is kept in another way in the middle of a history: contents stay exact, whoever is at work meanwhile.

The ways have helpers of their own, and one that has the same name and other content. They come, go and come back.
"""

from __future__ import annotations

from random import Random

import pytest

from partwise.ledger.open import in_memory
from partwise.ledger.read.pin import Pin
from partwise.ledger.records.strategies import Settlement, tables_of
from partwise.ledger.write.commit import Entry
from partwise.ledger.write.leases import Busy
from partwise.parts import Parts, Reference
from partwise.tables import Graph, Input, Table
from tests.simulation.checks import check_due, check_end
from tests.simulation.history import History, Runner
from tests.simulation.world import Model

SAME = Reference.same()
WINDOW = Reference.window(-2, 0)


def table(name: str, *inputs: tuple[str, Reference], initial: tuple[tuple[str, Reference], ...] = ()) -> Table:
    read = tuple(Input(*each) for each in inputs)
    first = tuple(Input(*each) for each in initial) or read
    return Table(name, "view", 60, "", read, first, helper_of="w" if "__" in name else None)


WAYS = {
    "recompute": (table("w", ("s", WINDOW)),),
    "merge": (table("w__panes", ("s", SAME)), table("w", ("w__panes", WINDOW))),
    "subtract": (
        table("w__panes", ("s", SAME)),
        table(
            "w__rolling",
            ("w__rolling", Reference.same(-1)),
            ("w__panes", SAME),
            ("w__panes", Reference.same(-3)),
            initial=(("w__panes", WINDOW),),
        ),
        table("w", ("w__rolling", SAME)),
    ),
}


def model_of(way: str, salt: int) -> Model:
    """Helpers and view by this way, a reader, and a source. Where helpers share a name they differ by way."""
    found = Model(Graph.of([Table("s", "source", 60, "s")]), {})
    for each in WAYS[way]:
        found = found.with_view(each, 10 * salt + list(WAYS).index(way))
    return found.with_view(table("r", ("w", Reference.window(-1, 0))), 7)


class Settling(History):
    """Now and then somebody settles the window in another way, or writes it into the file."""

    def keep(self, way: str, salt: int, asked_for: bool) -> bool:
        model = model_of(way, salt)
        if asked_for:
            self.ledger.define(model.graph, self.now)
        else:
            before, after = (tables_of(each.graph, "w") for each in (self.model, model))
            try:
                if not self.ledger.settle(Settlement("w", way, "", ""), before, after, self.now):
                    return False
            except Busy:
                return False
        self.model = model
        self.models.append(model)
        return True

    def step(self, name: str, asked: Parts | None, model: Model) -> Runner:
        if name in model.graph.tables:
            yield from super().step(name, asked, model)

    def register(self, entry: Entry, pin: Pin | None = None) -> None:
        if entry.table in self.ledger.graph().tables:
            super().register(entry, pin)


#: What is said of a part that is due because a definition came back that it was once built by. It is computed for
#: nothing then: nobody knows whether what it reads has changed under the other one.
BACK = ("due is not what the formula says", "was computed again from the same inputs")


def play(seed: int, retention: bool) -> Settling:
    """In every other history ways come back as they were."""
    rng = Random(seed)
    model = model_of(rng.choice(list(WAYS)), 1)
    history = Settling(rng, model, in_memory(), changing=0.0, retention=retention, models=[model])
    history.ledger.define(model.graph, history.now)
    for n in range(rng.randint(2, 5)):
        history.play(rng.randint(20, 60))
        # Files are only edited where nothing is lost by it: another way may need what has expired.
        salt = 1 if seed % 2 else n + 2
        history.keep(rng.choice(list(WAYS)), salt, asked_for=not retention and rng.random() < 0.4)
        check_due(history)
    history.settle()
    check_end(history)
    history.ledger.database.close()
    if seed % 2:
        history.problems = [told for told in history.problems if not any(words in told for words in BACK)]
    return history


@pytest.mark.parametrize("retention", [False, True], ids=["all-kept", "retention"])
@pytest.mark.parametrize("first", range(0, 24, 12))
def test_contents_stay_exact(first: int, retention: bool) -> None:
    ways, computations = 0, 0
    for seed in range(first, first + 12):
        history = play(seed, retention)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"
        ways += len(history.models) - 1
        computations += history.computations
    assert ways > 12, "hardly any was changed"
    assert computations > 120
