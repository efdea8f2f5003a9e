"""Many processes on one ledger, killed at random; in the end everything equals recomputation."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import select

from partwise.ledger.catalog import settled
from partwise.ledger.runs import existing
from partwise.ledger.schema import part, version
from tests.ledger.chaos import Worker, work, worker
from tests.ledger.processes import Process
from tests.simulation.graphs import random_model
from tests.simulation.world import content, scratch

KILLS = 12


def _sequence(of: Worker) -> int:
    with of.ledger.database.reading() as r:
        return r.seq


@pytest.mark.parametrize("graph", [3, 11])
def test_killed_processes_leave_nothing_wrong(url: str, tmp_path: Path, graph: int) -> None:
    (tmp_path / "landing").mkdir()
    model, rng = random_model(Random(graph), views=4), Random(graph)
    last = worker(url, tmp_path, graph, 0)
    last.model = model
    last.ledger.define(model.graph, time.time())
    running: list[Process] = []
    kills, end = 0, time.monotonic() + 90
    # Kills follow progress, not the time: on a busy machine a process might otherwise die before it has done anything.
    while kills < KILLS and time.monotonic() < end:
        while len(running) < 3:
            running.append(Process(work, url, tmp_path, graph, rng.randrange(10**6), 200.0))
        if _sequence(last) >= (kills + 1) * 20:
            running.pop(rng.randrange(len(running))).kill()
            kills += 1
        time.sleep(rng.uniform(0.0, 0.05))
    for process in running:
        process.kill()
    before = _sequence(last)
    assert (kills, before >= KILLS * 20) == (KILLS, True), f"{kills} kills, {before} transactions"

    last.drain()
    ledger, files = last.ledger, last.files
    assert ledger.audit() == {}
    with ledger.database.reading() as r:
        now = {name: settled(r, name) for name in model.graph.tables}
        landed = {t.name: files.landed(t.name) for t in model.graph.tables.values() if t.kind != "view"}
        starts = {n: s.start for n, s in now.items() if s.start is not None and model.graph[n].kind == "view"}
        expected = scratch(model, landed, starts)
        assert any(expected[name] for name in starts)  # something was computed
        for name in model.graph.order:
            current = ledger.current(name)
            stored = files.at(name, current.generation, current.version)
            assert files.after(name, current.generation, current.version) == []
            assert stored == expected.get(name, {}), name
            rows = r.on.execute(select(part.c.part, part.c.digest).where(part.c.table == name))
            known = {row.part: row.digest for row in rows}
            assert known == {p: content(v).digest for p, v in stored.items()}
            assert set(existing(r, name)) == set(known)
            numbers = r.on.execute(select(version.c.version).where(version.c.table == name).order_by(version.c.seq))
            assert list(numbers.scalars()) == list(range(0 if current.version is None else current.version + 1))
