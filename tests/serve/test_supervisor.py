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
from typing import Any

import psutil
import pytest

from partwise.serve import serve
from partwise.serve.site.environment import Keys
from partwise.serve.site.site import Site
from partwise.serve.supervise.supervisor import Failed

SCRIPT = Path(__file__).with_name("supervised.py")


@contextmanager
def supervised(folder: Path, case: str, grace: float = 1) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(SCRIPT), str(folder), case, str(grace)]
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


def test_whoever_asks_twice_is_not_kept_waiting(tmp_path: Path) -> None:
    with supervised(tmp_path, "stubborn", grace=300) as process:
        wait_for((tmp_path / "task").exists)
        wait_for(lambda: (tmp_path / "task").read_text() != "")
        found = [int((tmp_path / "task").read_text()), pid_of(tmp_path, "scheduler")]
        process.terminate()
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n"
        assert alive(found[1])
        process.terminate()
        process.communicate(timeout=20)
    wait_for(lambda: not any(map(alive, found)))


def test_a_second_ctrl_c_reaches_the_stop_that_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`partwise serve` with a supervisor that cannot start, and stops while somebody asks again."""
    asked, seen = serve._Asked(), []

    class Stubborn:
        def __init__(self, *given: object, **more: object) -> None:
            pass

        def step(self) -> None:
            raise Failed("no")

        def stop(self, grace: float = 8, hurry: Callable[[], bool] = lambda: False) -> int:
            for _ in range(3):
                seen.append(hurry())
                asked.hear(signal.SIGINT, None)
            return 0

    monkeypatch.setattr(serve, "Supervisor", Stubborn)
    monkeypatch.setattr(serve.prepare, "needs_migration", lambda url: False)
    server: Any = None
    with pytest.raises(Failed):
        serve._run(Site(tmp_path), Keys("", "", "", "", ""), server, serve.Until(), asked, 0.0)
    assert seen == [False, False, True]


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
    assert said.rstrip().splitlines()[-3:] == ["no such jar", "stopping", "left 0"]
