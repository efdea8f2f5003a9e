"""Dimensions whose new versions count forward only: what a part holds depends on what came in, not on when it was made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import func, select

from partwise.ledger.read import born, pin
from partwise.ledger.read.born import Born, Versions
from partwise.ledger.schema import part
from partwise.ledger.write import commit, define, repin, turning
from partwise.parts import FOREVER, Parts
from tests.simulation.checks import check_end
from tests.simulation.forward import beginning_at_once
from tests.simulation.history import LEASE, History, new_history, to_its_end
from tests.simulation.world import Value, required

#: Seeds that were seen to notice. They only save time.
FIRST = {
    "at-first-computation": 1,
    "newest": 1,
    "at-changes-of-inputs": 1,
    "own-parts-do-not-count": 56,
    "changes-paint": 8,
    "the-first-load-does-not-paint": 9,
    "one-step-for-several-versions": 9,
    "turned-forward-since-ever": 74,
    "definitions-turn-nothing": 90,
    "repin-makes-nothing-due": 12,
    "repin-of-the-time-of-the-view's-part": 9,
    "repin-of-others-counts-after-it-is-taken-back": 22,
}


def play(seed: int, rebuilding: bool = False, repinning: float = 0.0) -> History:
    retention = seed % 4 == 3
    history = new_history(
        seed,
        forward=seed,
        failing=0.0 if seed % 3 else 0.1,
        retention=retention,
        changing=0.0 if retention else (0.05 if seed % 5 == 0 else 0.005),
    )
    history.requesting = seed % 5 == 2
    history.rebuilding = 0.03 if rebuilding else 0.0
    history.repinning = repinning
    return to_its_end(history)


def test_histories_with_forward_dimensions_end_exact_and_minimal(seeds: range) -> None:
    for seed in seeds[::10]:
        history = play(seed)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"


def test_tables_that_are_made_again_read_what_they_read(seeds: range) -> None:
    for seed in seeds[::20]:
        history = play(seed, rebuilding=True)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"


def test_what_somebody_says_of_a_time_range_counts_for_all_that_is_computed_from_it(seeds: range) -> None:
    said = 0
    for seed in seeds[::10]:
        history = play(seed, rebuilding=seed % 20 == 0, repinning=0.1)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"
        said += len(history.said)
    assert said, "nothing is said"


# -- two schedules of the same arrivals ---------------------------------------------------------------


def _arrive(history: History, order: Random) -> None:
    """Mostly the next part, now and then a late row or another version."""
    name = order.choice([t.name for t in history.model.graph.tables.values() if t.kind != "view"])
    parts, value = history.landing.setdefault(name, {}), order.choice((None, 0, 1, 2))
    if history.model.graph[name].kind == "dimension":
        parts[0] = value
    else:
        parts[max(parts, default=2) + 1 if not parts or order.random() < 0.7 else order.choice(sorted(parts))] = value


def scheduled(seed: int, schedule: int) -> dict[str, dict[int, Value]]:
    """The same things come in in the same order, whatever runs, crashes or lies about in between."""
    history = new_history(seed, forward=seed, changing=0.0)
    history.model = beginning_at_once(history.model)
    history.ledger.define(history.model.graph, history.now)
    history.models = [history.model]
    order, work = Random(f"arrivals {seed}"), Random(f"{seed} {schedule}")
    for _ in range(50):
        _arrive(history, order)
        history.now += 1
        # Dimensions first, as an ingest of everything does.
        for table in sorted(history.model.graph.tables.values(), key=lambda t: t.kind):
            if table.kind != "view":
                history.finish(history.ingest(table.name))
        history.rng = work
        for _ in range(work.choice((0, 0, 3, 12))):
            history.start_step() if work.random() < 0.4 or not history.runners else history.advance()
        history.now += work.choice((0, LEASE + 5))
    history.settle()
    check_end(history)
    assert not history.problems, f"seed {seed}, schedule {schedule}: {history.problems[:3]}"
    views = [name for name, table in history.model.graph.tables.items() if table.kind == "view"]
    stored = {name: history.storage[name, history.ledger.current(name).generation] for name in views}
    return {name: table.at(table.version) for name, table in stored.items()}


def test_the_same_arrivals_give_the_same_contents_by_any_schedule() -> None:
    filled = 0
    for seed in range(8):
        first, second = scheduled(seed, 1), scheduled(seed, 2)
        assert first == second, f"seed {seed}"
        filled += sum(len(parts) for parts in first.values())
    assert filled > 150, "the schedules compute next to nothing"


# -- each rule broken in turn -------------------------------------------------------------------------

_borns, _number_for, _repinned = born.borns, Versions.number_for, Versions.repinned


def _at_first_computation(r: Any, view: Any, start: int, parts: Any) -> dict[int, Born]:
    known = dict(r.on.execute(select(part.c.part, part.c.born).where(part.c.table == view.name)).all())
    return {j: Born(known.get(j) or r.seq, -1) for j in parts}


def _by_changes_of_inputs(r: Any, view: Any, start: int, parts: Any) -> dict[int, Born]:
    """As if a source part were born again with every late row."""
    found = {}
    for j in sorted(parts):
        spans = [(t, span) for t, span in required(view, start, j) if t not in ("d", "e")]
        newest = [
            r.on.execute(
                select(func.max(part.c.changed_seq)).where(part.c.table == t, part.c.part.between(*span))
            ).scalar()
            for t, span in spans
        ]
        found[j] = Born(max((n for n in newest if n is not None), default=0), -1)
    return found


def _without_own_parts(r: Any, view: Any, start: int, parts: Any) -> dict[int, Born]:
    others = replace(view, inputs=tuple(i for i in view.inputs if i.table != view.name))
    return _borns(r, others, start, parts)


def _at_its_own_time(r: Any, view: Any, start: int, parts: Any) -> dict[int, Born]:
    return {j: Born(born.seq, j * view.length) for j, born in _borns(r, view, start, parts).items()}


def _never_taken_back(self: Versions, known: Born, until: int = FOREVER) -> Any:
    return _repinned(
        replace(self, repins=tuple(item for item in self.repins if item.version is not None)), known, until
    )


def _as_if_always_forward(self: Versions, known: int) -> int:
    return _number_for(replace(self, since=0), known)


BREAKS: dict[str, list[tuple[object, str, Callable[..., Any]]]] = {
    "at-first-computation": [(m, "borns", _at_first_computation) for m in (pin, commit)],
    "newest": [(Versions, "number_for", lambda self, known: len(self.contents) - 1)],
    "at-changes-of-inputs": [(m, "borns", _by_changes_of_inputs) for m in (pin, commit)],
    "own-parts-do-not-count": [(m, "borns", _without_own_parts) for m in (pin, commit, turning)],
    "changes-paint": [(commit, "_is_first_version", lambda *_: True)],
    "the-first-load-does-not-paint": [(commit, "_is_first_version", lambda *_: False)],
    "one-step-for-several-versions": [(pin, "_of_one_version", lambda table, due, reach, read: (due, reach))],
    "turned-forward-since-ever": [(Versions, "number_for", _as_if_always_forward)],
    "definitions-turn-nothing": [(define, "turn", lambda *_: None)],
    "repin-makes-nothing-due": [(repin, "_touched", lambda *_: Parts())],
    "repin-of-the-time-of-the-view's-part": [(m, "borns", _at_its_own_time) for m in (pin, commit, turning, repin)],
    "repin-of-others-counts-after-it-is-taken-back": [(Versions, "repinned", _never_taken_back)],
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_rule_is_noticed(name: str) -> None:
    with ExitStack() as stack:
        for module, attribute, new in BREAKS[name]:
            stack.enter_context(patch.object(module, attribute, new))
        often = 0.1 if name.startswith("repin") else 0.0
        assert any(play(seed, repinning=often).problems for seed in (FIRST.get(name, 0), *range(300)))
