"""Connections and transactions. Every writing transaction takes its number from one row, first of all.

The row lock is held to the end of the transaction, so transactions become visible in the order of
their numbers. A database SEQUENCE would not do: a reader could see number 5 before number 4 and
take 4 for something it has read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.pool import StaticPool

_TICK = text("UPDATE clock SET seq = seq + 1 WHERE id = 1 RETURNING seq, defined")
_NOW = text("SELECT seq, defined FROM clock WHERE id = 1")


@dataclass
class Reading:
    """A snapshot: everything read through it is as of sequence `seq`."""

    on: Connection
    seq: int
    defined: int


@dataclass
class Writing(Reading):
    """A writing transaction: `seq` is its own number, `at` the time (seconds since 1970) it records."""

    at: float


class Database:
    """One ledger database, SQLite or PostgreSQL, through the same statements."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = _engine(url)
        self.sqlite = self.engine.dialect.name == "sqlite"

    @contextmanager
    def writing(self, at: float) -> Iterator[Writing]:
        with self._transaction("write") as on:
            seq, defined = on.execute(_TICK).one()
            yield Writing(on, seq, defined, at)

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        with self._transaction("read") as on:
            seq, defined = on.execute(_NOW).one()
            yield Reading(on, seq, defined)

    @contextmanager
    def trying(self, at: float) -> Iterator[Writing]:
        """A writing transaction that is always rolled back: what would happen if."""
        with self._transaction("write") as on:
            seq, defined = on.execute(_TICK).one()
            yield Writing(on, seq, defined, at)
            on.rollback()

    @contextmanager
    def changing_schema(self) -> Iterator[Connection]:
        """A writing transaction without a number: the clock may not be there yet."""
        with self._transaction("write") as on:
            yield on

    @contextmanager
    def _transaction(self, mode: str) -> Iterator[Connection]:
        # A reader needs one snapshot for several statements. A writer is serialised by the clock row,
        # and must see what was committed while it waited for it: READ COMMITTED.
        options: dict[str, Any] = {"partwise_mode": mode}
        if not self.sqlite:
            options["isolation_level"] = "REPEATABLE READ" if mode == "read" else "READ COMMITTED"
        with self.engine.connect().execution_options(**options) as on, on.begin():
            yield on

    @property
    def shown(self) -> str:
        """Its URL as people may see it."""
        return self.engine.url.render_as_string(hide_password=True)

    def close(self) -> None:
        self.engine.dispose()


def _engine(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        if parsed.drivername in ("postgresql", "postgres"):
            # The driver we install. SQLAlchemy's own choice differs from release to release.
            parsed = parsed.set(drivername="postgresql+psycopg2")
        return create_engine(parsed, pool_pre_ping=True)
    memory = parsed.database in (None, "", ":memory:")
    arguments: dict[str, Any] = {"poolclass": StaticPool} if memory else {}
    engine = create_engine(parsed, connect_args={"timeout": 60, "check_same_thread": False}, **arguments)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        # The driver must not begin transactions by itself: we say BEGIN, and of which kind.
        connection.isolation_level = None
        connection.execute("PRAGMA busy_timeout = 60000")
        if not memory:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writing = connection.get_execution_options().get("partwise_mode") == "write"
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine
