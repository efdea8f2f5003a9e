"""Dimensions whose rows are valid for a time: only parts of the times that changed are due, and that is enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from partwise.ledger.read import formula, validity
from partwise.ledger.write import due_painting
from partwise.parts import Range
from tests.simulation.history import History, new_history, to_its_end
from tests.simulation.timed import NAME


def play(seed: int) -> History:
    retention = seed % 4 == 3
    history = new_history(
        seed,
        timed=seed,
        failing=0.0 if seed % 3 else 0.1,
        retention=retention,
        changing=0.0 if retention else (0.05 if seed % 5 == 0 else 0.005),
    )
    history.requesting = seed % 5 == 2
    history.rebuilding = 0.03 if seed % 6 == 1 else 0.0
    return to_its_end(history)


def test_histories_end_exact(seeds: range) -> None:
    changes = 0
    for seed in seeds[::10]:
        history = play(seed)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"
        with history.ledger.database.reading() as r:
            changes += len(validity.changed_times(r, NAME, 0))
    assert changes > len(seeds[::10]), "next to nothing changes"


# -- each rule broken in turn ---------------------------------------------------------------------

_fed = validity.fed_by_times


def _too_little(graph: Any, view: Any, start: int, dimension: str, times: Any) -> Any:
    """As if rows of the last part that a window reads counted alone."""
    return _fed(graph, view, start, dimension, [Range(t.lo + 60, t.hi) for t in times])


def _without_own(graph: Any, view: Any, start: int, dimension: str, times: Any) -> Any:
    return _fed(graph, replace(view, own_times=False), start, dimension, times)


BREAKS: dict[str, list[tuple[object, str, Callable[..., Any]]]] = {
    "changes-paint-nothing": [(due_painting, "fed_by_times", lambda *_: due_painting.EVERYTHING - due_painting.EVERYTHING)],
    "own-parts-have-no-time": [(m, "fed_by_times", _without_own) for m in (due_painting, validity, formula)],
    "a-bit-less-than-the-time": [(m, "fed_by_times", _too_little) for m in (due_painting, validity, formula)],
}  # fmt: skip
#: Seeds that were seen to notice. They only save time.
FIRST = {"a-bit-less-than-the-time": 19, "own-parts-have-no-time": 243}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_rule_is_noticed(name: str) -> None:
    for module, attribute, new in BREAKS[name]:
        patch.object(module, attribute, new).start()
    try:
        assert any(play(seed).problems for seed in (FIRST.get(name, 0), *range(300)))
    finally:
        patch.stopall()
