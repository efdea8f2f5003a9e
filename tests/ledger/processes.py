"""Real processes: each has its own connection, can be killed, and starts from a clean interpreter."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

# A fork of a fresh server process: it inherits no connection of the tests, and the imports are paid for once.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.ledger.workers", "tests.ledger.chaos", "psycopg2", "alembic.command"])
PATIENCE = 120


class Process:
    """A function that runs elsewhere; `result()` waits for it and raises what it raised."""

    def __init__(self, work: Callable[..., Any], *arguments: Any) -> None:
        self._results, there = CONTEXT.Pipe(duplex=False)
        self.process = CONTEXT.Process(target=_run, args=(there, work, arguments), daemon=True)
        self.process.start()
        there.close()

    def result(self) -> Any:
        if not self._results.poll(PATIENCE):
            self.kill()
            raise TimeoutError("a process of this test hangs")
        good, value = self._results.recv()
        self.process.join(PATIENCE)
        if not good:
            raise AssertionError(f"in another process:\n{value}")
        return value

    def kill(self) -> None:
        """As if the power had gone: no cleaning up."""
        self.process.kill()
        self.process.join(PATIENCE)


def run_together(works: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> list[Any]:
    """Start all at the same time, as nearly as possible, and give back what they return."""
    barrier = CONTEXT.Barrier(len(works))
    processes = [Process(_after, barrier, work, arguments) for work, arguments in works]
    return [process.result() for process in processes]


def _after(barrier: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    barrier.wait(PATIENCE)
    return work(*arguments)


def _run(results: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        results.send((True, work(*arguments)))
    except BaseException:
        results.send((False, traceback.format_exc()))
