"""Opening a ledger: connect, and bring its schema up to date.

A ledger that is up to date costs one query. Only one that is not brings in Alembic, under a lock, so
that several processes may open a new ledger at once.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, insert, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from partwise.ledger.database import Database
from partwise.ledger.ledger import Ledger
from partwise.ledger.migrations import HEAD, VERSION_TABLE
from partwise.ledger.schema import clock, complete

SCRIPTS = Path(__file__).parent / "migrations"
_VERSION = text(f"SELECT version_num FROM {VERSION_TABLE}")
_LOCK = 7_236_911_046  # any number, as long as every Partwise takes the same


class LedgerProblem(Exception):
    """The ledger cannot be opened; the message is meant for people."""


def open_ledger(url: str, now: float) -> Ledger:
    """The ledger at an SQLAlchemy URL, created or upgraded if need be.

    `now` is recorded nowhere yet; versions to come may need to say when they were reached.
    """
    database = _connect(url)
    try:
        if _version(database) != HEAD:
            upgrade(database)
    except DBAPIError as why:
        database.close()
        raise LedgerProblem(_unreachable(url, why)) from why
    except BaseException:
        database.close()
        raise
    return Ledger(database)


def in_memory() -> Ledger:
    """A ledger that lives as long as the process: for simulations and tests."""
    database = Database("sqlite://")
    complete().create_all(database.engine)
    with database.engine.connect() as on, on.begin():
        on.execute(insert(clock), {"id": 1, "seq": 0, "defined": 0, "at": 0.0, "watched": 0})
    return Ledger(database)


def upgrade(database: Database, scripts: Path = SCRIPTS, head: str = HEAD) -> None:
    """Bring the schema to `head`. Safe beside others that do the same: one does it, the rest find it done."""
    with database.changing_schema() as on:
        if not database.sqlite:
            on.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        known = on.execute(_VERSION).scalar() if inspect(on).has_table(VERSION_TABLE) else None
        if known != head:
            _migrate(on, scripts, head, known, database.shown)


def _migrate(on: Connection, scripts: Path, head: str, known: str | None, shown: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.attributes["connection"] = on
    if known is not None and known not in {s.revision for s in ScriptDirectory.from_config(config).walk_revisions()}:
        raise LedgerProblem(
            f"The ledger at {shown} was made by a newer Partwise: its schema is {known}, this program knows "
            f"those up to {head}. Update Partwise here, or use the one that made it; nothing was changed."
        )
    if known is None and (others := set(inspect(on).get_table_names()) & {"clock", "catalog", "part"}):
        raise LedgerProblem(
            f"The database at {shown} holds tables named {', '.join(sorted(others))} that are not a ledger's. "
            "Give the ledger a database of its own."
        )
    command.upgrade(config, head)


def _connect(url: str) -> Database:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if backend not in ("sqlite", "postgresql", "postgres"):
            raise LedgerProblem(f"A ledger is kept in SQLite or PostgreSQL, not in {backend}.")
        if backend == "sqlite" and parsed.database and not Path(parsed.database).absolute().parent.is_dir():
            raise LedgerProblem(
                f"There is no folder {Path(parsed.database).absolute().parent} for the ledger {parsed.database}."
            )
        return Database(url)
    except (ArgumentError, NoSuchModuleError) as why:
        raise LedgerProblem(
            "The ledger's URL cannot be understood; write for example sqlite:///ledger.db or "
            f"postgresql://user@host/database ({why})."
        ) from None


def _version(database: Database) -> str | None:
    """The ledger's schema version, without asking first whether there is one."""
    try:
        with database.engine.connect() as on:
            found: str | None = on.execute(_VERSION).scalar()
            return found
    except DBAPIError as why:
        if _is_missing_table(why):
            return None
        raise


def _is_missing_table(why: DBAPIError) -> bool:
    undefined_table = "42P01"
    return getattr(why.orig, "pgcode", None) == undefined_table or "no such table" in str(why.orig)


def _unreachable(url: str, why: DBAPIError) -> str:
    shown = make_url(url).render_as_string(hide_password=True)
    return f"The ledger at {shown} cannot be opened: {str(why.orig).strip()}"
