"""Carries out a backfill: the parts that were requested, what they need first, and what their changes touch."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from partwise.ledger.heartbeat import heartbeat
from partwise.ledger.records import backfills
from partwise.ledger.records.backfills import Backfill, Done
from partwise.parts import Parts
from spark_jobs.engine import Engine
from spark_jobs.run import Outcome, run

#: Seconds between signs of life.
_BEAT = 30.0


def carry_out(engine: Engine, found: Backfill, stop: threading.Event | None = None) -> Iterator[Outcome]:
    """Run until nothing of the backfill is ready any more, and tell of each step.

    It is finished when everything that was requested is done; however else this ends, it can go on. What it touched
    and what waits for other stale parts stays due: that is the next run's.
    """
    stop = stop or threading.Event()
    with alive(engine, found):
        ended = False
        try:
            yield from run(engine, None, stop, within=lambda: scope(engine, found))
            ended = not stop.is_set() and not backfills.still_asked(found, progress(engine, found))
        finally:
            with engine.ledger.database.writing(engine.now()) as w:
                backfills.finish(w, found.number, ended)


def progress(engine: Engine, found: Backfill) -> dict[str, Done]:
    with engine.ledger.database.reading() as r:
        return backfills.progress(r, engine.ledger.graph(), found)


def scope(engine: Engine, found: Backfill) -> Mapping[str, Parts]:
    """What belongs to the backfill by now. Where people repair manually, this is the manual request."""
    graph = engine.ledger.graph()
    with engine.ledger.database.reading() as r:
        reached = backfills.scope_of(r, graph, found)
    by_hand = [name for name in reached if name in graph.tables and graph[name].repair == "manual"]
    if by_hand:
        for step in engine.ledger.plan(engine.now(), by_hand).manual:
            if asked := reached.get(step.table, Parts()).within(*step.parts):
                engine.ledger.request(step.table, asked, engine.now())
    return reached


@contextmanager
def alive(engine: Engine, found: Backfill) -> Iterator[None]:
    """Signs of life for others that would do the same."""

    def sign() -> bool:
        with engine.ledger.database.writing(engine.now()) as w:
            backfills.beat(w, found.number)
        return True

    with heartbeat(_BEAT, sign):
        yield
