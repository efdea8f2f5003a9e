"""Processes: start, find those of ours, end them. No decision is made here.

Airflow runs every task in a session of its own, and tasks outlive a scheduler that is killed. On Linux the supervisor
declares itself the parent of all orphans below it, so that none of them can escape.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import psutil

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """From now on orphans among our descendants become our children. False where the system has no such thing."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


#: Bytes. A log that has grown beyond this when its process is started becomes the one of before, in place of an older one.
LARGE_LOG = 50_000_000


def rotate(log: Path, most: int = LARGE_LOG) -> None:
    """Two files of a log at most: this one, and the one of before with `.1` behind its name."""
    try:
        if log.stat().st_size > most:
            log.replace(log.with_name(f"{log.name}.1"))
    except FileNotFoundError:
        pass


def start(command: Iterable[str], environment: Mapping[str, str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C in the terminal reaches the supervisor alone, which then ends all in order."""
    log.parent.mkdir(parents=True, exist_ok=True)
    rotate(log)
    with open(log, "ab") as output:
        return subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def descendants(of: int | None = None, without: Collection[int] = ()) -> list[psutil.Process]:
    """All processes below one, except those in `without` and what is below these."""
    try:
        children = psutil.Process(of).children()
    except psutil.NoSuchProcess:
        return []
    found = []
    for child in children:
        if child.pid not in without:
            found += [child, *descendants(child.pid, without)]
    return found


def strangers(known: Collection[int]) -> list[psutil.Process]:
    """Direct children that nobody here has started: orphans of a component that died."""
    return [child for child in psutil.Process().children() if child.pid not in known]


def reap_strangers(known: Collection[int]) -> None:
    """Orphans that have ended stay in the list of processes until their new parent has looked at them."""
    for process in strangers(known):
        reap(process.pid)


def terminate(
    running: Iterable[subprocess.Popen[bytes]], seconds: float, hurry: Callable[[], bool] = lambda: False
) -> None:
    """Asks, waits unless there is a hurry, then kills whoever is still there, with everything below it."""
    running = list(running)
    for process in running:
        _signal(process.pid, signal.SIGTERM)
    end = time.monotonic() + seconds
    while time.monotonic() < end and not hurry() and any(process.poll() is None for process in running):
        time.sleep(0.1)
    for process in running:
        if process.poll() is None:
            below = descendants(process.pid)
            _signal(process.pid, signal.SIGKILL)
            kill(below)
        process.wait()


def kill(found: Iterable[psutil.Process]) -> None:
    """At once. Those that are our own children are reaped."""
    for process in found:
        try:
            process.kill()  # psutil compares the start time: never a stranger with the same number
        except psutil.NoSuchProcess:
            pass
        except psutil.AccessDenied:
            continue
        reap(process.pid)


def reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except (ChildProcessError, OSError):
        pass


def sweep(without: Collection[int] = (), seconds: float = 5.0) -> int:
    """Kills every descendant, and those that appear while it does. Returns how many there were."""
    seen: set[int] = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        left = descendants(without=without)
        seen |= {process.pid for process in left if process.status() != psutil.STATUS_ZOMBIE}
        if not left:
            break
        kill(left)
        time.sleep(0.05)
    return len(seen)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
