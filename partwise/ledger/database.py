"""Connections and transactions. Every writing transaction takes its number from one row, first of all.

The row lock is held to the end of the transaction, so transactions become visible in the order of
their numbers. A database SEQUENCE would not do: a reader could see number 5 before number 4 and
take 4 for something it has read.

Time is taken under the same lock. It grows with the numbers: a writer whose clock is behind, or that has waited
for the lock, records the next microsecond. So everything up to a moment is known as soon as the ledger's clock has
passed it, and the same moment means the same content for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.pool import StaticPool

_TICK = text(
    "UPDATE clock SET seq = seq + 1, at = CASE WHEN at < :now THEN :now ELSE at + 0.000001 END "
    "WHERE id = 1 RETURNING seq, defined, at"
)
_NOW = text("SELECT seq, defined, at FROM clock WHERE id = 1")
#: Nothing that is written from now on is as old as this time. Waits for whoever is writing.
_PASS = text(
    "UPDATE clock SET at = CASE WHEN at < :reached THEN :reached ELSE at END WHERE id = 1 RETURNING seq, defined, at"
)


@dataclass
class Reading:
    """A snapshot: everything read through it is as of sequence `seq`; `at` is the ledger's time."""

    on: Connection
    seq: int
    defined: int
    at: float


@dataclass
class Writing(Reading):
    """A writing transaction: `seq` is its own number, `at` the time (seconds since 1970) it records.

    `now` is the writer's own clock. Durations (how long a lease lasts) go by it: the ledger's time may be ahead.
    """

    now: float


class Database:
    """One ledger database, SQLite or PostgreSQL, through the same statements."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = _engine(url)
        self.sqlite = self.engine.dialect.name == "sqlite"

    @contextmanager
    def writing(self, now: float) -> Iterator[Writing]:
        with self._transaction("write") as on:
            seq, defined, at = on.execute(_TICK, {"now": now}).one()
            yield Writing(on, seq, defined, at, now)

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        with self._transaction("read") as on:
            yield Reading(on, *on.execute(_NOW).one())

    @contextmanager
    def passing(self, moment: float) -> Iterator[Reading]:
        """A transaction without a number, alone on the ledger, after which nothing is written as of `moment`."""
        with self._transaction("write") as on:
            yield Reading(on, *on.execute(_PASS, {"reached": moment}).one())

    @contextmanager
    def trying(self, now: float) -> Iterator[Writing]:
        """A writing transaction that is always rolled back: what would happen if."""
        with self._transaction("write") as on:
            seq, defined, at = on.execute(_TICK, {"now": now}).one()
            yield Writing(on, seq, defined, at, now)
            on.rollback()

    @contextmanager
    def aside(self) -> Iterator[Connection]:
        """A writing transaction without a number: for notes that are no history."""
        with self._transaction("write") as on:
            yield on

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
