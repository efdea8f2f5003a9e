"""A Spark driver in the background that many short commands share: the first one starts it, later ones reuse it.

A driver is found by its key: a hash of everything that only a start settles (master, settings, jars, versions, the
access to object stores). Commands with another key get another driver. Whoever may use it can run code as its owner, so it
listens on the loopback address only, and asks for a token that stands in a file which nobody else can read.

    <cache>/drivers/<key>.json   process, port, token
    <cache>/drivers/<key>.lock   held while one is looked for, started or ended
    <cache>/drivers/<key>.log    what the driver says

The process that starts the JVM (`spark_jobs.session.keeper`) ends it when nothing has run for a while. The JVM reads from a
pipe to it, and so ends with it whatever happens.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from partwise.serve.supervise.answers import answers

#: Seconds that a driver may take to start.
PATIENCE = 180.0
#: Variables that decide what a driver can reach, and how it runs.
_MATTERS = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "SPARK_", "JAVA_", "JDK_", "PARTWISE_JARS")
#: Set by clients for themselves: no property of a driver.
_OWN = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_AUTHENTICATE_TOKEN")


class NoDriver(Exception):
    """There is none, and none could be started; the message is meant for people."""


@dataclass(frozen=True)
class Driver:
    """A running driver as its file describes it. `born` tells its process from a later one with the same number."""

    key: str
    pid: int
    born: str
    port: int
    token: str
    started: float
    keep: float

    @property
    def url(self) -> str:
        return f"sc://localhost:{self.port}/;token={self.token}"

    @property
    def alive(self) -> bool:
        return birth(self.pid) == self.born


def key_of(settings: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Everything that only a start settles. `settings` are those of the driver, jars among them."""
    matters = {n: v for n, v in environment.items() if n.startswith(_MATTERS) and n not in _OWN}
    versions = [sys.executable, sys.version, version("pyspark"), _version("partwise")]
    text = json.dumps([dict(settings), matters, versions], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where drivers are noted; None if nothing may be remembered, or the folder is not ours alone."""
    given = environment.get("PARTWISE_CACHE")
    if given == "off":
        return None
    base = Path(given) if given else Path(environment.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "partwise"
    found = base / "drivers"
    try:
        found.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = found.stat()
        if state.st_uid != os.getuid():
            return None
        if state.st_mode & 0o077:
            found.chmod(0o700)
    except OSError:
        return None
    return found


def drivers(where: Path) -> list[Driver]:
    """All that run. Notes of dead ones are left to whoever starts the next."""
    found = (read(file) for file in sorted(where.glob("*.json")))
    return [driver for driver in found if driver is not None and driver.alive]


def read(file: Path) -> Driver | None:
    try:
        return Driver(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write(where: Path, driver: Driver) -> None:
    """For its owner's eyes only, from the first byte on."""
    fresh = where / f"{driver.key}.{os.getpid()}.new"
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as out:
        json.dump(asdict(driver), out)
    fresh.replace(where / f"{driver.key}.json")


@contextmanager
def locked(where: Path, key: str, wait: bool = True) -> Iterator[bool]:
    """Whether this process has the say over a driver now; the lock goes with the process, however it ends."""
    with open(where / f"{key}.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            yield False
            return
        yield True


def obtain(settings: Mapping[str, str], keep: float) -> Driver:
    """The driver with these settings, started if there is none. Raises NoDriver."""
    where = folder()
    if where is None:
        raise NoDriver("there is no folder of our own to note it in")
    key = key_of(settings, os.environ)
    with locked(where, key):
        file = where / f"{key}.json"
        found = read(file)
        if found is not None and found.alive and answers(f"sc://localhost:{found.port}", seconds=2):
            os.utime(file)  # somebody is coming: it does not end now
            return found
        file.unlink(missing_ok=True)
        return _start(where, key, settings, keep)


def _start(where: Path, key: str, settings: Mapping[str, str], keep: float) -> Driver:
    asked = json.dumps({"key": key, "settings": dict(settings), "keep": keep, "folder": str(where)})
    root = Path(__file__).resolve().parents[2]
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {n: v for n, v in os.environ.items() if n not in _OWN} | {"PYTHONPATH": os.pathsep.join(paths)}
    with open(where / f"{key}.log", "wb") as log:
        os.chmod(log.fileno(), 0o600)
        keeper = subprocess.Popen(
            [sys.executable, "-m", "spark_jobs.session.keeper"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=where,
            env=environment,
            start_new_session=True,  # neither Ctrl-C here nor the end of the terminal reaches it
        )
    assert keeper.stdin is not None
    keeper.stdin.write(asked.encode())
    keeper.stdin.close()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = read(where / f"{key}.json")
        if found is not None and found.pid == keeper.pid:
            return found
        if keeper.poll() is not None:
            raise NoDriver(f"it ended with code {keeper.returncode}; see {where / f'{key}.log'}")
        time.sleep(0.05)
    keeper.kill()
    raise NoDriver(f"it did not start within {PATIENCE:.0f} seconds; see {where / f'{key}.log'}")


def stop(where: Path, driver: Driver, seconds: float = 20.0) -> bool:
    """End a driver, and what runs in it. Returns whether it is gone."""
    if driver.alive:
        os.kill(driver.pid, signal.SIGTERM)
    end = time.monotonic() + seconds
    while driver.alive and time.monotonic() < end:
        time.sleep(0.05)
    if driver.alive:
        os.kill(driver.pid, signal.SIGKILL)
    (where / f"{driver.key}.json").unlink(missing_ok=True)
    return not driver.alive


def birth(pid: int) -> str:
    """Tells this process from any other one that ever had its number; empty if there is none."""
    try:
        # The name of the command stands in brackets, and may have blanks and brackets itself.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    except OSError:
        pass
    done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True)
    return done.stdout.strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
