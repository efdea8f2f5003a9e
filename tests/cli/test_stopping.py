"""Ctrl-C on long commands: they get a few seconds for what they are at, and end in any case."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from spark_jobs.commands import _opening

BUSY = """
import sys, time
from spark_jobs.commands import _opening
_opening.GRACE = 0.3
with _opening.stopping() as stop:
    print("working", flush=True)
    time.sleep(100)
"""


@pytest.mark.parametrize("times", [1, 2])
def test_a_command_that_cannot_stop_is_left_after_a_few_seconds(times: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "stopping: running steps finish first, for at most 0.3 seconds" in err
    assert ("what was published stays" in err) == (times == 1)


def test_a_command_that_stops_by_itself_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_opening, "GRACE", 0.2)
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail(f"ended with {code}"))
    before = signal.getsignal(signal.SIGINT)
    with _opening.stopping() as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
    assert signal.getsignal(signal.SIGINT) is before
    assert not any(
        isinstance(thread, threading.Timer) and not thread.finished.is_set() for thread in threading.enumerate()
    )
