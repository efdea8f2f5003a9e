"""Dimensions that are joined by keys: parts without a changed key are left alone, and all end as they should be."""

from __future__ import annotations

import pytest

from tests.simulation.history import Rules, run_history
from tests.simulation.keyed import narrowed

#: Histories in which views join a dimension by keys.
SEEDS = range(3, 600, 6)


@pytest.mark.slow
def test_histories_with_dimensions_by_keys_end_exact_and_minimal() -> None:
    found = 0
    for seed in SEEDS:
        history = run_history(seed)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"
        found += narrowed(history)
    assert found > len(SEEDS)


def test_tables_that_are_lost_and_made_again_end_exact(seeds: range) -> None:
    for seed in SEEDS[: len(seeds) // 8]:
        history = run_history(seed, rebuilding=True)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"


@pytest.mark.parametrize("rules", [Rules(no_second_look=True), Rules(new_keys_only=True)], ids=["race", "old image"])
def test_a_broken_rule_is_noticed(rules: Rules) -> None:
    """What changes after keys were looked up counts, and so do keys that the dimension had before."""
    assert any(run_history(seed, rules).problems for seed in SEEDS)
