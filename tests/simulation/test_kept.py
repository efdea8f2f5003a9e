"""What a step may read in place of its inputs: a part of another table that is not due holds what the inputs give.

In random histories every pin is asked for all views, as if each were a kept join; what it calls up to date is computed
again from the versions that the same pin has. So it is right whatever was predicted, and for whatever was kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pytest

from partwise.ledger import ledger as ledgers
from partwise.ledger.catalog import settled
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.read import pin as pins
from partwise.ledger.runs import existing
from partwise.parts import Parts
from tests.simulation.history import History, new_history
from tests.simulation.world import compute

_pin, _kept = pins.pin, pins._kept


@dataclass
class Watch:
    """Stands in for the pin of a history's ledger."""

    history: History | None = None
    compared: int = 0
    stale: int = 0
    problems: list[str] = field(default_factory=list)

    def pin(self, r: Any, *given: Any, **named: Any) -> Any:
        found = _pin(r, *given, **named)
        if found is not None and self.history is not None:
            for name, table in self.history.model.graph.tables.items():
                if table.kind == "view" and not table.self_references and name != found.table.name:
                    self.compare(r, name)
        return found

    def compare(self, r: Any, name: str) -> None:
        history = self.history
        assert history is not None
        table = history.ledger._catalog.graph(r).tables.get(name)
        parts = existing(r, name) if table is not None else Parts()
        if table is None or not parts or table != history.model.graph.tables[name]:
            return
        kept = pins._kept(r, LedgerFacts(r), table, Parts.of((parts.first, parts.last)))
        self.stale += parts.count - len(kept.rows)
        stored = history.storage[name, kept.at.generation].at(kept.at.version)
        starts = {t: settled(r, t).start for t in history.model.graph.tables}
        start = starts[name]
        assert start is not None

        def read(other: str, p: int) -> Any:
            at = pins.version_of(r, other)
            return history.storage[other, at.generation].at(at.version)[p]

        for j in kept.rows:
            try:
                value = compute(table, history.salt_of(table.fingerprint), start, j, starts, read)
            except KeyError:
                continue  # what it reads has expired, or is being made again: nothing can be computed from that
            self.compared += 1
            if stored.get(j) != value:
                self.problems.append(f"{name}[{j}] is kept as {stored.get(j)}, but its inputs give {value}")


def play(seed: int) -> Watch:
    watch = Watch()
    with patch.object(ledgers, "pin", watch.pin):
        watch.history = history = new_history(seed)
        history.failing = 0.1 if seed % 3 == 0 else 0.0
        history.rebuilding = 0.01 if seed % 4 == 0 else 0.0
        for _ in range(6):
            history.play(20)
        history.settle()
    return watch


def test_what_is_kept_is_what_the_inputs_give() -> None:
    compared = stale = 0
    for seed in range(30):
        watch = play(seed)
        assert not watch.problems, f"seed {seed}: {watch.problems[:3]}"
        compared, stale = compared + watch.compared, stale + watch.stale
    assert compared > 3000
    assert stale > 100


def _also_what_is_due(r: Any, facts: Any, helper: Any, due: Parts) -> Any:
    with patch.object(pins, "due_rows", lambda *_: []):
        return _kept(r, facts, helper, due)


BREAKS: dict[str, tuple[str, Callable[..., Any]]] = {
    "due-parts-are-read": ("_kept", _also_what_is_due),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_rule_is_noticed(name: str) -> None:
    attribute, new = BREAKS[name]
    with patch.object(pins, attribute, new):
        assert any(play(seed).problems for seed in range(20))
