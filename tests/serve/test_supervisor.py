"""Real processes under the supervisor: started in order, started again, ended to the last one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

SCRIPT = Path(__file__).with_name("supervised.py")


@contextmanager
def supervised(folder: Path, case: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(SCRIPT), str(folder), case]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            for left in [*psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []:
                left.kill()
            process.kill()


def wait_for(what: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def started(folder: Path) -> list[str]:
    file = folder / "started"
    return file.read_text().split() if file.exists() else []


def pid_of(folder: Path, name: str) -> int:
    return int(dict(line.split() for line in (folder / "pids").read_text().splitlines())[name])


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_components_start_after_what_they_need_and_again_when_they_die(tmp_path: Path) -> None:
    with supervised(tmp_path, "order") as process:
        wait_for(lambda: len(started(tmp_path)) == 3)
        assert started(tmp_path) == ["api-server", "pools", "scheduler"]
        os.kill(pid_of(tmp_path, "scheduler"), signal.SIGKILL)
        wait_for(lambda: len(started(tmp_path)) == 4)
        assert started(tmp_path)[3] == "scheduler"  # and what was to be done once is not done again
        process.terminate()
        said, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "scheduler ended with code -9; next start in 1 s" in said
    assert "left 0" in said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux gives orphans to a chosen parent")
def test_a_task_in_a_session_of_its_own_ends_with_its_killed_scheduler(tmp_path: Path) -> None:
    with supervised(tmp_path, "stubborn") as process:
        wait_for((tmp_path / "task").exists)
        wait_for(lambda: (tmp_path / "task").read_text() != "")
        task = int((tmp_path / "task").read_text())
        os.kill(pid_of(tmp_path, "scheduler"), signal.SIGKILL)
        wait_for(lambda: not alive(task))
        process.terminate()
        process.communicate(timeout=20)


def test_whoever_does_not_end_when_asked_is_killed_with_its_tasks(tmp_path: Path) -> None:
    with supervised(tmp_path, "stubborn") as process:
        wait_for((tmp_path / "task").exists)
        wait_for(lambda: (tmp_path / "task").read_text() != "")
        found = [int((tmp_path / "task").read_text()), pid_of(tmp_path, "scheduler")]
        process.terminate()
        process.communicate(timeout=20)
    wait_for(lambda: not any(map(alive, found)))


def test_what_is_optional_holds_nobody_up(tmp_path: Path) -> None:
    with supervised(tmp_path, "optional") as process:
        wait_for(lambda: started(tmp_path) == ["feed"])
        process.terminate()
        said, _ = process.communicate(timeout=20)
    assert "warm-up ended with code 1; the others do without it" in said


def test_what_never_comes_up_ends_with_the_end_of_its_log(tmp_path: Path) -> None:
    with supervised(tmp_path, "broken") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "spark does not start: it ended 4 times, last with code 1" in said
    assert said.rstrip().splitlines()[-2:] == ["no such jar", "left 0"]
