"""Serves a workspace until it is told to stop: everything is brought up, watched, shown, and taken down."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from partwise.serve.postgres import Postgres
from partwise.serve.postgres_system import SystemPostgres
from partwise.serve.screen import Screen
from partwise.serve.site import ports, prepare
from partwise.serve.site.environment import Keys, environment
from partwise.serve.site.site import CannotServe, Site
from partwise.serve.supervise import leftovers, processes
from partwise.serve.supervise.components import components
from partwise.serve.supervise.supervisor import Supervisor


@dataclass(frozen=True, slots=True)
class Until:
    """When to stop without being told: after so many seconds, or once views have so many parts."""

    seconds: float | None = None
    parts: int | None = None


def serve(site: Site, until: Until = Until()) -> int:
    """Returns the exit code. Raises CannotServe, leftovers.Occupied or supervisor.Failed."""
    began = time.monotonic()
    with leftovers.alone(site.state), _signals() as asked:
        if ended := leftovers.end_leftovers(site.state):
            print(f"stopped processes of an earlier run: {', '.join(ended)}")
        if problems := [*ports.twice(site.ports), *map(str, ports.taken(site.ports))]:
            raise CannotServe("\n".join(problems))
        processes.adopt_orphans()
        print(f"serving {site.workspace}; logs in {site.logs}", flush=True)
        site, keys, server = prepare.open_site(site)
        try:
            return _run(site, keys, server, until, asked, began)
        finally:
            prepare.tell_commands(site, None)
            server.stop()


def _run(site: Site, keys: Keys, server: Postgres | SystemPostgres, until: Until, asked: _Asked, began: float) -> int:
    migrate = prepare.needs_migration(site.airflow_url)
    supervisor = Supervisor(
        components(site, migrate),
        environment(site, keys, os.environ),
        site.logs,
        site.workspace,
        also=lambda: set(server.pids),
        tell=lambda text: screen.say(text),
    )
    screen = Screen(site)
    try:
        supervisor.step()  # they start while we open the ledger
        for problem in prepare.take_over(site):
            screen.say(problem)
        prepare.tell_commands(site, keys)
        with screen:
            return _watch(site, keys, server, until, asked, began, supervisor, screen, migrate)
    finally:
        screen.say("stopping ... (Ctrl-C again stops immediately)")
        left = supervisor.stop(hurry=lambda: asked.twice)
        (site.state / leftovers.FILE).unlink(missing_ok=True)
        screen.say(f"stopped{f'; ended {left} task processes' if left else ''}. The next start continues from here.")


def _watch(
    site: Site,
    keys: Keys,
    server: Postgres | SystemPostgres,
    until: Until,
    asked: _Asked,
    began: float,
    supervisor: Supervisor,
    screen: Screen,
    migrate: bool,
) -> int:
    noted: dict[str, int] = {}
    greeted = False
    while not asked.once:
        if not server.is_running():
            screen.say("PostgreSQL ended; restarting it")
            for pid in server.pids:
                processes.reap(pid)
            while not server.ensure_running() and not asked.once:
                asked.wait(1)
        supervisor.step()
        if migrate and supervisor.is_ready("migrate"):
            prepare.stamp(site.airflow_url)
            migrate = False
        if (pids := supervisor.pids()) != noted:
            leftovers.note(site.state, pids)
            noted = pids
        if not greeted and supervisor.is_ready("api-server"):
            screen.greet(keys, time.monotonic() - began)
            greeted = True
        parts = screen.refresh(supervisor)
        if until.seconds is not None and time.monotonic() - began > until.seconds:
            return 0 if until.parts is None else 1
        if until.parts is not None and parts >= until.parts:
            return 0
        asked.wait(0.25)
    return 0


class _Asked:
    """Whether somebody wants us to stop; twice: at once."""

    def __init__(self) -> None:
        self.times = 0

    @property
    def once(self) -> bool:
        return self.times > 0

    @property
    def twice(self) -> bool:
        return self.times > 1

    def hear(self, number: int, frame: Any) -> None:
        self.times += 1

    def wait(self, seconds: float) -> None:
        if not self.times:
            time.sleep(seconds)


@contextmanager
def _signals() -> Iterator[_Asked]:
    asked = _Asked()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, asked.hear) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
