"""Processes of a supervisor that was killed itself, found and ended by the next one; and the lock that keeps it alone."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from partwise.serve.supervise import processes

FILE, LOCK = "processes.json", "lock"


class Occupied(Exception):
    """Another supervisor serves this workspace; the message is meant for people."""


@contextmanager
def alone(state: Path) -> Iterator[None]:
    """For as long as it lasts, nobody else serves this workspace. The lock ends with the process that holds it."""
    state.mkdir(parents=True, exist_ok=True)
    with open(state / LOCK, "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise Occupied(
                f"{state.parent} is being served already, by process {lock.read().strip() or '?'}. Stop that one first."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def note(state: Path, pids: Mapping[str, int]) -> None:
    """What runs, with the time each was started: a number alone may belong to somebody else later on."""
    found = {}
    for name, pid in pids.items():
        try:
            found[name] = [pid, psutil.Process(pid).create_time()]
        except psutil.NoSuchProcess:
            pass
    draft = state / f".{FILE}"
    draft.write_text(json.dumps(found))
    draft.replace(state / FILE)


def end_leftovers(state: Path) -> list[str]:
    """Ends what an earlier supervisor left running. Returns the names."""
    try:
        noted: dict[str, tuple[int, float]] = json.loads((state / FILE).read_text())
    except (OSError, ValueError):
        return []
    ended = []
    for name, (pid, started) in noted.items():
        try:
            process = psutil.Process(pid)
            if process.create_time() == started:
                processes.kill([process, *processes.descendants(pid)])
                process.wait(5)
                ended.append(name)
        except (psutil.NoSuchProcess, psutil.TimeoutExpired):
            pass
    (state / FILE).unlink(missing_ok=True)
    return ended
