"""What the engine's commands start with."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from partwise.cli.open_workspace import definitions_of, ledger_of, table_of, workspace_of
from partwise.cli.stop import Stop
from partwise.workspace import Workspace

if TYPE_CHECKING:
    from spark_jobs.engine import Engine


@contextmanager
def engine_of(given: str | None, names: Iterable[str] | None = None, *kinds: str) -> Iterator[tuple[Engine, Workspace]]:
    """The engine of a workspace. Its ledger has taken over the definitions as they are now.

    `names` are of tables of these kinds: a wrong one is told before Spark starts.
    """
    workspace = workspace_of(given)
    definitions = definitions_of(workspace)
    with ledger_of(workspace, time.time()) as ledger:
        definitions = workspace.take_over(ledger, definitions, time.time())
        for name in names or ():
            table_of(definitions.graph(), definitions, name, *kinds)
        ready(workspace)
        from spark_jobs.engine import Engine
        from spark_jobs.session.session import session

        spark = workspace.settings.spark
        if sys.stderr.isatty():
            print("starting Spark ...", end="\r", file=sys.stderr)
        started = session(master=spark.master, remote=spark.remote, conf=workspace.spark_conf)
        most = {"most_parts": workspace.settings.chunk_parts, "most_rows": workspace.settings.chunk_rows}
        yield Engine(started, ledger, definitions, workspace.warehouse, **most), workspace


def ready(workspace: Workspace) -> None:
    """Whether the object store can be used, told before Spark starts. Costs nothing where tables are in a folder."""
    if not workspace.in_object_store:
        return
    from partwise.storage.errors import StoreProblem
    from partwise.storage.probe import probe

    try:
        probe(workspace.warehouse)
        if workspace.settings.spark.remote is None:
            from spark_jobs.session.session import jars_folder, jars_for

            jars_for(jars_folder(), workspace.spark_conf)
    except (StoreProblem, FileNotFoundError) as why:
        raise Stop(str(why)) from None


def names_of(engine: Engine, names: list[str] | None, *kinds: str) -> list[str] | None:
    """Names as the user typed them, checked; None for all."""
    graph = engine.definitions.graph()
    return [table_of(graph, engine.definitions, name, *kinds).name for name in names] if names else None


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM let running steps finish; the second one ends at once, which is as safe, only less kind."""
    stop = threading.Event()

    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()
        print("stopping: running steps finish first; once more stops at once", file=sys.stderr)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
