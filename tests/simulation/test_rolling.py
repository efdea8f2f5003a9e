"""Rolling tables: whatever happens, one holds what its newest part would, and no older part takes its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from partwise.ledger.write import commit
from partwise.plan import planner
from tests.simulation.history import Rules, run_history

#: Histories in which views that nobody reads are rolling.
SEEDS = range(1, 600, 6)


def noticed(rules: Rules | None = None, first: int = SEEDS[0]) -> bool:
    return any(run_history(seed, rules).problems for seed in (first, *SEEDS))


@pytest.mark.slow
def test_histories_with_rolling_tables_end_exact_and_minimal() -> None:
    for seed in SEEDS:
        history = run_history(seed)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"


def test_rolling_tables_that_are_lost_and_made_again_end_exact(seeds: range) -> None:
    for seed in SEEDS[: len(seeds) // 8]:
        history = run_history(seed, rebuilding=True)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"


def test_a_zombie_that_takes_a_rolling_table_back_is_noticed() -> None:
    assert noticed(Rules(same_rows_make_no_commit=True))


_look = planner._look


def _every_part(graph: Any, facts: Any, now: float, table: Any, *rest: Any) -> Any:
    return _look(graph, facts, now, replace(table, rolling=False), *rest)


BREAKS: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "older-parts-are-left-behind": (commit, "_forget_before", lambda *_: None),
    "older-parts-are-computed": (planner, "_look", _every_part),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_rule_is_noticed(name: str) -> None:
    module, attribute, new = BREAKS[name]
    with patch.object(module, attribute, new):
        assert noticed()
