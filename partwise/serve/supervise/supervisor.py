"""Starts components in order, starts again what dies, stops all. One thread: `step` is called again and again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from partwise.serve.supervise import processes
from partwise.serve.supervise.answers import answers
from partwise.serve.supervise.components import STOP, Component
from partwise.serve.supervise.restarts import Record, delay

#: Seconds between asking a component to end and killing it. A scheduler would wait for its tasks, however long.
GRACE = 8.0


class Failed(Exception):
    """A component does not come up; the message is meant for people."""


@dataclass
class _State:
    component: Component
    record: Record = field(default_factory=Record)
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    next_start: float = 0.0
    ready: bool = False
    done: bool = False


class Supervisor:
    """The processes of one site. `also` are children that are looked after elsewhere (PostgreSQL)."""

    def __init__(
        self,
        components: tuple[Component, ...],
        environment: Mapping[str, str],
        logs: Path,
        folder: Path,
        also: Callable[[], set[int]] = set,
        tell: Callable[[str], None] = print,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._states = {component.name: _State(component) for component in components}
        self._environment = dict(environment)
        self._logs = logs
        self._folder = folder
        self._also = also
        self._tell = tell
        self._clock = clock
        self._next_probe = 0.0

    def step(self) -> None:
        """Looks at every component once and does what is due. Raises Failed."""
        now = self._clock()
        for state in self._states.values():
            if state.process is not None and state.process.poll() is not None:
                self._ended(state, now)
        for state in self._states.values():
            if state.process is None and not state.done and now >= state.next_start and self._may_start(state):
                self._start(state, now)
        if now >= self._next_probe:
            for state in self._states.values():
                if state.process is not None and not state.ready:
                    self._probe(state, now)
            processes.reap_strangers(self.pids().values())
            self._next_probe = self._clock() + 0.5

    def is_ready(self, name: str) -> bool:
        return self._states[name].ready

    @property
    def all_ready(self) -> bool:
        return all(state.ready for state in self._states.values())

    def not_ready(self) -> list[str]:
        return [name for name, state in self._states.items() if not state.ready]

    def pids(self) -> dict[str, int]:
        return {name: s.process.pid for name, s in self._states.items() if s.process is not None}

    def restarts(self) -> dict[str, int]:
        return {name: s.record.restarts for name, s in self._states.items() if s.record.restarts}

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def stop(self, grace: float = GRACE, hurry: Callable[[], bool] = lambda: False) -> int:
        """Ends everything, in order. Returns how many processes had to be found that no component took along.

        `hurry` is asked all the while: once it says so, nobody is waited for.
        """
        for row in STOP:
            running = [s.process for name in row if (s := self._states.get(name)) and s.process is not None]
            processes.terminate(running, grace, hurry)
        for state in self._states.values():
            state.process = None
        return processes.sweep(without=self._also())

    def _may_start(self, state: _State) -> bool:
        return all(self._states[name].ready for name in state.component.needs)

    def _start(self, state: _State, now: float) -> None:
        name = state.component.name
        try:
            state.process = processes.start(state.component.command, self._environment, self.log(name), self._folder)
        except OSError as why:
            raise Failed(f"{name} cannot be started: {why}") from None
        state.started, state.ready = now, False

    def _probe(self, state: _State, now: float) -> None:
        component = state.component
        if component.once:
            ready = False  # seen from its end
        else:
            ready = component.url is None or answers(component.url, seconds=2)
        if ready:
            state.ready = True
            state.record = state.record.ready()
        elif now - state.started > component.patience and state.process is not None:
            self._tell(f"{component.name} is not ready after {component.patience:.0f} seconds; it is started again")
            processes.terminate([state.process], 2)

    def _ended(self, state: _State, now: float) -> None:
        assert state.process is not None
        code, state.process = state.process.returncode, None
        component = state.component
        if component.once and code == 0:
            state.done = state.ready = True
            state.record = state.record.ready()
            return
        state.ready = False
        state.record = state.record.ended(now - state.started)
        self._end_orphans()
        seconds = delay(state.record)
        if component.optional:
            self._tell(
                f"{component.name} ended with code {code}; the others do without it ({self.log(component.name)})"
            )
            state.done = state.ready = True
            return
        if seconds is None:
            raise Failed(
                f"{component.name} does not start: it ended {state.record.failures} times, last with code {code}. "
                f"The end of {self.log(component.name)}:\n{tail(self.log(component.name))}"
            )
        self._tell(
            f"{component.name} ended with code {code}; next start in {seconds:.0f} s ({self.log(component.name)})"
        )
        state.next_start = now + seconds

    def _end_orphans(self) -> None:
        """What a dead component left running would work beside its successor."""
        known = set(self.pids().values()) | self._also()
        for process in processes.strangers(known):
            processes.kill([process, *processes.descendants(process.pid)])


def tail(file: Path, lines: int = 15) -> str:
    try:
        with open(file, "rb") as content:
            content.seek(max(0, os.path.getsize(file) - 16_384))
            return "\n".join(content.read().decode("utf-8", "replace").splitlines()[-lines:])
    except OSError:
        return ""
