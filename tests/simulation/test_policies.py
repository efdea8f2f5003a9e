"""Each rule of refresh policies broken in turn: the simulation must notice, else it proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from partwise.ledger import ledger as ledgers
from partwise.parts import Parts
from partwise.plan import planner, refresh
from partwise.plan.refresh import Refreshed
from tests.simulation.history import History, new_history, to_its_end

_deferred, _is_released, _fires = planner._deferred, planner._is_released, refresh.fires
_look, _out_of_patience = planner._look, planner._out_of_patience


def play(seed: int, published: bool = False) -> History:
    history = new_history(seed, policies=seed, published=published)
    history.requesting = seed % 2 == 0
    return to_its_end(history)


def test_histories_with_policies_end_exact() -> None:
    for seed in range(20):
        history = play(seed, published=seed % 5 == 0)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"


def _no_bound(policy: Any, waiting: Any, known: Any, now: float) -> str | None:
    return _fires(replace(policy, within=10**12), waiting, known, now)


def _requests_wait(graph: Any, table: Any, row: Any, known: Refreshed) -> bool:
    return row.cause.kind != "requested" and _is_released(graph, table, row, known)


def _leave_earlier_ones(graph: Any, table: Any, rows: Any, ready: Parts, facts: Any, now: float) -> Any:
    return _deferred(graph, replace(table, inputs=table.partitioned_inputs), rows, ready, facts, now)


def _readers_go_on(graph: Any, facts: Any, now: float, table: Any, *given: Any) -> Any:
    policy = None if table.refresh is None else replace(table.refresh, readers="published")
    return _look(graph, facts, now, replace(table, refresh=policy), *given)


def _patience_runs(graph: Any, facts: Any, now: float, *given: Any) -> Any:
    """While an input is deferred, too."""
    with (
        patch.object(planner, "_delayed", lambda *_: Parts()),
        patch.object(planner, "_out_of_patience", lambda table, rows, now, _: _out_of_patience(table, rows, now, 0.0)),
    ):
        return _look(graph, facts, now, *given)


BREAKS: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "R3-no-bound": (refresh, "fires", _no_bound),
    "R4-firings-are-not-recorded": (ledgers.Ledger, "_fire", lambda *_: None),
    "R6-readers-do-not-wait": (planner, "_look", _readers_go_on),
    "R7-patience-runs-meanwhile": (planner, "_look", _patience_runs),
    "R8-requests-wait": (planner, "_is_released", _requests_wait),
    "R8-requests-leave-earlier-parts": (planner, "_deferred", _leave_earlier_ones),
}


@pytest.mark.parametrize(
    "name, first",  # `first` only saves time: a seed that was seen to notice
    [
        ("R3-no-bound", 13),
        ("R4-firings-are-not-recorded", 60),
        ("R6-readers-do-not-wait", 27),
        ("R7-patience-runs-meanwhile", 5),
        ("R8-requests-wait", 18),
        ("R8-requests-leave-earlier-parts", 74),
    ],
)
def test_a_broken_rule_is_noticed(name: str, first: int) -> None:
    module, attribute, new = BREAKS[name]
    with patch.object(module, attribute, new):
        assert any(play(seed).problems for seed in (first, *range(200)))
