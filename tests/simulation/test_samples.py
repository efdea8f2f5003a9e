"""Samples of views, those that read themselves among them: in the end they hold what their views hold."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from partwise.ledger.write import commit, define
from tests.simulation.history import run_history

SEEDS = range(3, 603, 5)


@pytest.mark.slow
def test_histories_with_samples_end_exact() -> None:
    for seed in SEEDS:
        history = run_history(seed)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"


def test_samples_that_are_lost_and_made_again_end_exact(seeds: range) -> None:
    for seed in SEEDS[: len(seeds) // 8]:
        history = run_history(seed, rebuilding=True)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"


def test_a_sample_that_does_not_begin_with_its_view_is_noticed() -> None:
    with patch.object(commit, "follow_start", lambda *_: None), patch.object(define, "_serves_parts", lambda *_: False):
        assert any(run_history(seed).problems for seed in SEEDS)
