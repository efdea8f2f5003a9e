"""Random histories: what is not what the sources gave at its pin is marked; what is settled is what they give.

Late rows, crashes, zombies, failing checks and views out of patience make parts that mix moments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from sqlalchemy import select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.read import newest_settled as settling
from partwise.ledger.read import pin as pins
from partwise.ledger.read.as_of import versions_at
from partwise.ledger.records.mixtures import mixed_parts
from partwise.ledger.schema import part, revision
from partwise.ledger.write import commit
from partwise.parts import Parts
from partwise.tables import Graph
from tests.simulation.history import History, new_history
from tests.simulation.world import Model, Value, scratch

SEEDS = range(20)


def contents_at(history: History, r: Reading, seq: int, name: str) -> dict[int, Value]:
    at = versions_at(r, seq).get(name)
    return {} if at is None else history.storage[name, at.generation].at(at.version)


def given_by_sources(history: History, r: Reading, seq: int) -> dict[str, dict[int, Value]]:
    graph = history.ledger._catalog.graph(r)
    sources = {n: contents_at(history, r, seq, n) for n, t in graph.tables.items() if t.kind != "view"}
    views = {n: s for n, t in graph.tables.items() if t.kind == "view" and (s := settled(r, n).start) is not None}
    return scratch(history.model, sources, views)


def check_marks(history: History) -> None:
    """Every part equals recomputation as of its pin, or is marked."""
    with history.ledger.database.reading() as r:
        graph, mixed = history.ledger._catalog.graph(r), mixed_parts(r)
        expected: dict[int, dict[str, dict[int, Value]]] = {}
        for row in r.on.execute(select(part)):
            table = graph[row.table]
            if table.kind != "view" or row.part in mixed.get(row.table, Parts()):
                continue
            if row.as_of not in expected:
                expected[row.as_of] = given_by_sources(history, r, row.as_of)
            actual = contents_at(history, r, r.seq, row.table).get(row.part, "nothing")
            if actual != expected[row.as_of].get(row.table, {}).get(row.part, "nothing"):
                history.problems.append(f"{row.table}[{row.part}] is not what the sources gave at {row.as_of}")


def check_settled(history: History) -> int:
    """A settled moment shows what its sources give. Returns how many of them were not the present."""
    past = 0
    with history.ledger.database.reading() as r:
        graph = history.ledger._catalog.graph(r)
        for name in (n for n in graph.order if graph[n].kind == "view"):
            p = history.rng.randint(0, 14)
            found = settling.newest_settled(r, graph, {name: Parts.single(p)})
            if found.seq is None:
                continue
            past += found.seq < r.seq
            actual = contents_at(history, r, found.seq, name).get(p, "nothing")
            if actual != given_by_sources(history, r, found.seq).get(name, {}).get(p, "nothing"):
                history.problems.append(f"{name}[{p}] as of {found.seq}, said to be settled, is not what sources give")
    return past


def play(seed: int) -> tuple[History, int, int]:
    """A history, how many revisions were mixed, and how many settled moments were not the present.

    Every other history has views that wait for nothing, the others have failing checks.
    """
    history = new_history(seed, failing=0.2 if seed % 2 else 0.0, changing=0.0)
    if seed % 2 == 0:
        hasty = {n: replace(t, patience=0.0) if t.kind == "view" else t for n, t in history.model.graph.tables.items()}
        history.model = Model(Graph(hasty), history.model.salts)
        history.models = [history.model]
        history.ledger.define(history.model.graph, history.now)
    past = 0
    for _ in range(8):
        history.play(15)
        check_marks(history)
        past += check_settled(history)
        if history.problems:
            return history, 0, past
    history.settle()
    check_marks(history)
    with history.ledger.database.reading() as r:
        marked = len(r.on.execute(select(revision.c.part).where(revision.c.mixed.is_not(None))).all())
        if left := mixed_parts(r):
            history.problems.append(f"all is repaired, but marked: {left}")
    return history, marked, past


def test_what_mixes_moments_is_marked_until_it_is_repaired() -> None:
    marked = past = 0
    for seed in SEEDS:
        history, found, moments = play(seed)
        assert not history.problems, f"seed {seed}: {history.problems[:3]}"
        marked, past = marked + found, past + moments
    assert marked > 10
    assert past > 5


@pytest.mark.parametrize(
    ("where", "name", "new", "first"),
    [
        pytest.param(pins, "mixed_reads", lambda *_: {}, 5, id="nothing-is-marked"),
        pytest.param(commit, "lift", lambda *_: None, 0, id="marks-are-never-lifted"),
        pytest.param(settling, "computed_from", lambda graph, start, wanted: dict(wanted), 1, id="only-what-is-read"),
        pytest.param(settling, "_since", lambda *_: iter(()), 1, id="the-past-was-always-settled"),
    ],
)
def test_a_broken_rule_is_noticed(where: object, name: str, new: Callable[..., Any], first: int) -> None:
    """`first` only saves time: a seed that was seen to notice."""
    with patch.object(where, name, new):
        assert any(play(seed)[0].problems for seed in (first, *range(200)))
