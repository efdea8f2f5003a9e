"""The driver in the background: found by its key, guarded by a token, gone when nobody needs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spark_jobs.session import background
from spark_jobs.session.background import Driver
from tests.cli.conftest import ROOT

QUERY = (
    "import sys; from spark_jobs.session.session import session; print(session(remote=sys.argv[1]).range(5).count())"
)


def test_the_key_has_all_that_only_a_start_settles() -> None:
    settings, environment = {"spark.master": "local[2]"}, {"JAVA_HOME": "/a", "HOME": "/x"}
    key = background.key_of(settings, environment)
    assert key == background.key_of(dict(settings), {**environment, "HOME": "/y", "SPARK_REMOTE": "sc://z"})
    assert key != background.key_of({**settings, "spark.driver.memory": "4g"}, environment)
    for name in ("JAVA_HOME", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "SPARK_CONF_DIR", "PARTWISE_JARS"):
        assert key != background.key_of(settings, {**environment, name: "other"})


def test_nobody_else_can_read_the_token(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        where = background.folder({"PARTWISE_CACHE": str(tmp_path / "cache")})
        assert where is not None
        background.write(where, Driver("k", os.getpid(), background.birth(os.getpid()), 1, "secret", 0.0, 60.0))
    finally:
        os.umask(before)
    assert where.stat().st_mode & 0o777 == 0o700
    assert (where / "k.json").stat().st_mode & 0o777 == 0o600
    assert [driver.key for driver in background.drivers(where)] == ["k"]


def test_a_process_with_the_number_of_a_dead_one_is_not_it(tmp_path: Path) -> None:
    where = background.folder({"PARTWISE_CACHE": str(tmp_path)})
    assert where is not None
    background.write(where, Driver("k", os.getpid(), "earlier", 1, "secret", 0.0, 60.0))
    assert background.drivers(where) == []


def test_without_a_cache_there_is_no_driver() -> None:
    assert background.folder({"PARTWISE_CACHE": "off"}) is None


def _gone(driver: Driver, children: list[int], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not driver.alive and not any(background.birth(child) for child in children):
            return True
        time.sleep(0.2)
    return False


def _children(pid: int) -> list[int]:
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def _query(url: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", QUERY, url], capture_output=True, text=True, env=environment)


@pytest.mark.spark
@pytest.mark.own_process
def test_it_is_shared_guarded_and_never_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_jobs.session.session import driver_settings, find_java

    find_java()
    monkeypatch.setenv("PARTWISE_CACHE", str(tmp_path))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    settings = driver_settings("local[1]")
    first = background.obtain(settings, keep=300)
    children = _children(first.pid)
    assert len(children) == 1  # the JVM
    try:
        assert background.obtain(settings, keep=300) == first
        assert _query(first.url).stdout == "5\n"
        refused = _query(first.url.replace(first.token, "guessed"))
        assert refused.returncode != 0
        assert "UNAUTHENTICATED" in refused.stderr
        assert json.loads((tmp_path / "drivers" / f"{first.key}.json").read_text())["token"] == first.token
        command = Path(f"/proc/{children[0]}/cmdline").read_text()
        assert first.token not in command
    finally:
        os.kill(first.pid, signal.SIGKILL)
    assert _gone(first, children)


@pytest.mark.spark
@pytest.mark.own_process
@pytest.mark.slow
def test_it_ends_by_itself_when_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_jobs.session.session import driver_settings, find_java

    find_java()
    monkeypatch.setenv("PARTWISE_CACHE", str(tmp_path))
    settings = driver_settings("local[1]")
    driver = background.obtain(settings, keep=3)
    children = _children(driver.pid)
    assert _gone(driver, children, 120)
    assert background.drivers(tmp_path / "drivers") == []
    again = background.obtain(settings, keep=300)
    children = _children(again.pid)
    assert background.stop(tmp_path / "drivers", again)
    assert _gone(again, children)


LONG = """
import sys
from spark_jobs.session.session import session
spark = session(remote=sys.argv[1])
print("connected", flush=True)
spark.range(10**13).selectExpr("sum(id % 7 * id)").collect()
"""


@pytest.mark.spark
@pytest.mark.own_process
@pytest.mark.slow
def test_a_query_whose_client_was_killed_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the driver would go on for hours, and never be idle."""
    from spark_jobs.session.session import driver_settings, find_java

    find_java()
    monkeypatch.setenv("PARTWISE_CACHE", str(tmp_path))
    driver = background.obtain(driver_settings("local[1]"), keep=8)
    children = _children(driver.pid)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        words = [sys.executable, "-c", LONG, driver.url]
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == "connected\n"
            time.sleep(12)  # longer than it would be kept without a query
            assert driver.alive
            client.kill()
        assert _gone(driver, children, 180)
    finally:
        background.stop(tmp_path / "drivers", driver)
