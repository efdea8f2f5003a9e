"""The heart of the product: after any history, contents equal recomputation, and nothing was computed in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import update

from partwise.ledger import runs
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.schema import part
from partwise.ledger.write import commit, define, due_painting, leases
from partwise.ledger.write.commit import Gap
from partwise.parts import FOREVER, Parts
from partwise.plan import planner, reach
from partwise.plan.reach import fed, fed_self
from tests.simulation.history import Rules, run_history


def test_every_history_ends_exact_and_minimal(seeds: range) -> None:
    computations = merges = 0
    for seed in seeds:
        history = run_history(seed)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"
        computations += history.computations
        merges += history.merges
    assert computations > 4 * len(seeds), "the histories do next to nothing"
    assert merges >= len(seeds), "changes are hardly ever merged"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(250, 1000, 125))
def test_the_rest_of_a_thousand_histories(first: int) -> None:
    for seed in range(first, first + 125):
        history = run_history(seed)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"


# Each rule broken in turn: the simulation must notice, else it proves nothing.


#: Refusals further down that a broken rule may end in. Any other error is a fault of the break itself, and is raised.
REFUSALS = (Gap,)


def noticed(rules: Rules | None = None, swap: bool = True, first: int = 0) -> str | None:
    """What the simulation says. `first` only saves time: a seed that was seen to notice."""
    for seed in (first, *range(600)):
        try:
            history = run_history(seed, rules, swap)
        except REFUSALS as error:
            return f"seed {seed}: {error!r}"
        if history.problems:
            return f"seed {seed}: {history.problems[0]}"
    return None


@pytest.mark.parametrize(
    "rules, first",
    [
        pytest.param(Rules(pin_before_lease=True), 1, id="2-pin-before-lease"),
        pytest.param(Rules(trust_the_plan=True), 173, id="3-plan-is-no-hint"),
        pytest.param(Rules(no_early_stop=True), 4, id="5-no-early-stop-inside-a-step"),
        pytest.param(Rules(no_adoption=True), 1, id="7-no-adoption"),
        pytest.param(Rules(adopt_as_of_now=True), 24, id="8-adoption-as-of-now"),
        pytest.param(Rules(current_fingerprint=True), 566, id="11-fingerprint-of-now"),
        pytest.param(Rules(stale_worker_checks=False), 28, id="11-old-worker"),
        pytest.param(Rules(merge_twice=True), 3, id="merge-from-another-past"),
        pytest.param(Rules(merge_over_anything=True), 20, id="merge-into-another-content"),
    ],
)
def test_a_step_that_breaks_a_rule_is_noticed(rules: Rules, first: int) -> None:
    assert noticed(rules, first=first)


def test_commits_without_compare_and_swap_are_noticed() -> None:
    assert noticed(swap=False, first=66)


_write_parts, _clear, _self_spread = commit._write_parts, runs.clear, due_painting._spread_self


def _as_of_commit(w: Any, entry: Any, version: Any, *rest: Any) -> Any:
    return _write_parts(w, replace(entry, pin=None), version, *rest)


def _self_as_of_pin(w: Any, entry: Any, version: Any, *rest: Any) -> Any:
    result = _write_parts(w, entry, version, *rest)
    if entry.pin is not None:
        mine = (part.c.table == entry.table) & part.c.part.in_(list(entry.parts))
        w.on.execute(update(part).where(mine).values(self_as_of=entry.pin))
    return result


def _clear_all(w: Any, table: str, parts: Parts, up_to: int = FOREVER) -> None:
    _clear(w, table, parts)


def _direct_inputs_only(table: Any, start: int, looks: Any) -> Parts:
    found = Parts()
    for name in table.input_names:
        if name in looks:
            found |= fed(table, start, name, Parts.of(*((row.lo, row.hi) for row in looks[name].due)))
    return found


def _as_if_dense(view: Any, parts: Parts, last: int) -> Parts:
    touched = fed_self(view, parts)
    return Parts.of((touched.first, last)) if touched else touched


_start = LedgerFacts.start


def _newest_existing(facts: Any, table: str) -> int | None:
    there = facts.existing(table, -FOREVER, FOREVER)
    if isinstance(facts, LedgerFacts) and table.startswith("v"):
        return _start(facts, table)  # also requested a view's own start, which stays right
    return there.last if there else None


BREAKS: dict[str, list[tuple[object, str, Callable[..., Any]]]] = {
    "4-as-of-is-the-commit": [(commit, "_write_parts", _as_of_commit)],
    "4-self-as-of-is-the-pin": [(commit, "_write_parts", _self_as_of_pin)],
    "6-all-dirt-is-cleared": [(commit, "clear", _clear_all)],
    "6-own-parts-painted-too": [
        (due_painting, "_spread_self", lambda w, own, changed, skip, why: _self_spread(w, own, changed, Parts(), why))
    ],
    "9-no-fence": [(leases, "check", lambda *_: None)],
    "12-direct-inputs-only": [(planner, "_incoming", _direct_inputs_only)],
    "12-failed-parts-with-content-block": [(planner, "_published", lambda *_: Parts())],
    "12-chains-of-a-view-count-as-dense": [(m, "self_closure", _as_if_dense) for m in (planner, reach)],
    "12-chains-of-a-view-are-not-followed": [(planner, "self_closure", lambda *_: Parts())],
    "14-nothing-is-frozen": [(m, "frozen_below", lambda *_: -FOREVER) for m in (due_painting, commit)],
    "optional-holes-read-nothing": [(c, "start", _newest_existing) for c in (LedgerParts, LedgerFacts)],
    "optional-readers-are-not-looked-at": [(m, "look_at_readers", lambda *_: None) for m in (commit, define)],
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    patches = [patch.object(module, attribute, new) for module, attribute, new in BREAKS[name]]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


#: Seeds that were seen to notice; the others are noticed early anyway.
FIRST = {
    "4-as-of-is-the-commit": 24,
    "6-all-dirt-is-cleared": 78,
    "12-direct-inputs-only": 58,
    "12-failed-parts-with-content-block": 186,
    "12-chains-of-a-view-count-as-dense": 17,
    "12-chains-of-a-view-are-not-followed": 58,
    "14-nothing-is-frozen": 7,
    "optional-holes-read-nothing": 14,
    "optional-readers-are-not-looked-at": 66,
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_ledger_that_breaks_a_rule_is_noticed(name: str) -> None:
    with broken(name):
        assert noticed(first=FIRST.get(name, 0))


def test_tables_that_are_lost_and_made_again_end_exact_and_minimal(seeds: range) -> None:
    rebuilt = 0
    for seed in seeds[::8]:
        history = run_history(seed, rebuilding=True)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"
        rebuilt += history.rebuilt
    assert rebuilt > len(seeds) // 8, "next to nothing is lost"


def test_the_simulation_notices_a_rebuild_that_forgets_who_waits() -> None:
    """Readers of a lost part that comes back unchanged, and of one that was pinned before it went."""
    for name, first in (("found_again", 0), ("rebuilt_since", 63)):
        with patch.object(commit, name, lambda *_: None):
            assert any(run_history(seed, rebuilding=True).problems for seed in (first, *range(60))), name
