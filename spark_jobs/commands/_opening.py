"""What the engine's commands start with."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from partwise.cli.open_workspace import definitions_of, ledger_of, table_of, workspace_of
from partwise.cli.stop import Stop
from partwise.workspace import Workspace

#: Seconds for which a command that is to stop waits for what it is at.
GRACE = 5.0
#: Seconds for which a driver in the background waits for the next command, where people type them.
KEEP = 600.0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from partwise.compile.program import Program
    from partwise.ledger.ledger import Ledger
    from partwise.settings import Spark
    from spark_jobs.engine import Engine


@contextmanager
def engine_of(given: str | None, names: Iterable[str] | None = None, *kinds: str) -> Iterator[tuple[Engine, Workspace]]:
    """The engine of a workspace. Its ledger has taken over the definitions as they are now; Spark starts when needed.

    `names` are of tables of these kinds: a wrong one is reported before anything else happens.
    """
    with opened(given, names, *kinds) as (ledger, definitions, workspace):
        yield make_engine(ledger, definitions, workspace), workspace


@contextmanager
def opened(
    given: str | None, names: Iterable[str] | None = None, *kinds: str, quiet: bool = False
) -> Iterator[tuple[Ledger, Program, Workspace]]:
    """What an engine is made of, for commands that look first whether there is anything to do. A `quiet` one tells
    the problems of definitions itself."""
    workspace = workspace_of(given)
    definitions = definitions_of(workspace, quiet)
    with ledger_of(workspace, time.time()) as ledger:
        definitions = workspace.take_over(ledger, definitions, time.time())
        for name in names or ():
            table_of(definitions.graph(), definitions, name, *kinds)
        yield ledger, definitions, workspace


def driver_url(spark: Spark, conf: Mapping[str, str] | None = None) -> str | None:
    """Where the driver in the background is, started if need be; None if this command is to have a driver of its own."""
    from partwise.settings import keep_seconds

    keep = keep_seconds(spark.keep) if spark.keep else KEEP if _on_terminal() else 0.0
    if not keep or spark.remote:
        return None
    from spark_jobs.session.background import NoDriver, obtain
    from spark_jobs.session.session import driver_settings, find_java, local_cores

    if not local_cores(spark.master or "local[2]"):
        return None  # a cluster has its own ways
    find_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        return obtain(driver_settings(spark.master or "local[2]", spark.conf if conf is None else conf), keep).url
    except NoDriver as why:
        print(f"partwise: there is no driver in the background: {why}; this command starts its own", file=sys.stderr)
        return None


def _on_terminal() -> bool:
    """Whether a person types commands, one after the other: not in CI, and not inside a task of Airflow."""
    automatic = any(os.environ.get(name) for name in ("CI", "AIRFLOW_CTX_DAG_ID", "AIRFLOW__CORE__EXECUTOR"))
    return sys.stdin.isatty() and sys.stderr.isatty() and not automatic


def make_engine(
    ledger: Ledger,
    definitions: Program,
    workspace: Workspace,
    started: SparkSession | None = None,
    alone: bool = False,
) -> Engine:
    """`started`: a session from before, for a command that works again and again; `alone`: in a driver of its own."""
    from spark_jobs.engine import Engine
    from spark_jobs.session.late import late

    settings = workspace.settings

    def start() -> SparkSession:
        from spark_jobs.session.session import session

        ready(workspace)
        if sys.stderr.isatty():
            print("starting Spark ...", end="\r", file=sys.stderr)
        remote = settings.spark.remote or (None if alone else driver_url(settings.spark, workspace.spark_conf))
        return session(master=settings.spark.master, remote=remote, conf=workspace.spark_conf)

    return Engine(
        started or late(start),
        ledger,
        definitions,
        workspace.warehouse,
        most_parts=settings.chunk_parts,
        most_rows=settings.chunk_rows,
        batch=settings.batch,
        state_budget=settings.state_bytes,
    )


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
    """Ctrl-C and SIGTERM let running steps publish what they have, if that takes a few seconds; then the command ends. The
    second one ends it at once. Both are safe: what is not published is computed again by the next run."""
    stop = threading.Event()
    timer: threading.Timer | None = None

    def leave() -> None:
        message = "stopped; what was published stays, and the next call goes on with the rest"
        print(f"\npartwise: {message}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        os._exit(130)

    def ask(number: int, frame: Any) -> None:
        nonlocal timer
        if stop.is_set():
            os._exit(128 + number)
        stop.set()
        wait = f"stopping: running steps finish first, for at most {GRACE:g} seconds; Ctrl-C again stops immediately"
        print(wait, file=sys.stderr, flush=True)
        timer = threading.Timer(GRACE, leave)
        timer.daemon = True
        timer.start()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        if timer is not None:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
