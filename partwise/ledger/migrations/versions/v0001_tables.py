"""All tables, and the one row of the clock. What each is for stands in `partwise/ledger/schema.py`."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _table(
        "clock",
        _number("id", key=True),
        _number("seq"),
        _number("defined"),
    )
    op.execute("INSERT INTO clock (id, seq, defined) VALUES (1, 0, 0)")
    _table(
        "catalog",
        _name("table"),
        sa.Column("kind", sa.String(16), nullable=False),
        _number("length"),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        _number("defined_seq"),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("start", sa.BigInteger),
        sa.Column("floor", sa.BigInteger),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("retired", sa.Boolean, nullable=False),
        sa.Column("updated_at", sa.Float),
        _number("frozen_hits"),
    )
    _table(
        "part",
        _name("table"),
        _number("part", key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        _number("changed_seq"),
        _number("as_of"),
        _number("self_as_of"),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        _number("rows"),
        sa.Column("digest", sa.String(80), nullable=False),
        sa.Column("version", sa.BigInteger),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
    _partial("part_empty", "part", ["table", "part"], "rows = 0")
    _table(
        "revision",
        _name("table"),
        _number("part", key=True),
        _number("seq", key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        _number("rows"),
        sa.Column("digest", sa.String(80), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_index("revision_by_time", "revision", ["table", "at"])
    _partial("revision_repairs", "revision", ["at", "table", "part"], "revision > 1")
    _table("have", _name("table"), _number("lo", key=True), _number("hi"))
    _table(
        "due",
        _name("table"),
        _number("lo", key=True),
        _number("hi"),
        _number("seq"),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("cause", sa.String(16), nullable=False),
        sa.Column("cause_table", sa.String(255)),
        sa.Column("cause_lo", sa.BigInteger),
        sa.Column("cause_hi", sa.BigInteger),
    )
    _table(
        "version",
        _name("table"),
        _number("seq", key=True),
        sa.Column("generation", sa.Integer, nullable=False),
        _number("version"),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("version_by_time", "version", ["at"])
    _table(
        "lease",
        _name("table"),
        _number("fence"),
        sa.Column("holder", sa.String(255)),
        sa.Column("expires", sa.Float, nullable=False),
    )
    _table(
        "failure",
        _name("table"),
        _number("part", key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        _number("pin"),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("retry_at", sa.Float),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
    )
    _table(
        "outbox",
        _name("table"),
        _number("seq"),
        _number("announced"),
        sa.Column("at", sa.Float, nullable=False),
    )
    _table(
        "arrival",
        _name("table"),
        _number("part", key=True),
        _number("seq", key=True),
        sa.Column("at", sa.Float, nullable=False),
        _number("rows"),
        sa.Column("late", sa.Boolean, nullable=False),
    )
    op.create_index("arrival_late", "arrival", ["late", "table", "rows"])
    _table(
        "open_part",
        _name("table"),
        _number("part", key=True),
        _number("rows"),
        sa.Column("digest", sa.String(80), nullable=False),
    )
    _intake()
    _checks()
    _work()


def _work() -> None:
    _table(
        "step",
        _name("table"),
        _number("seq", key=True),
        _number("parts"),
        _number("rows"),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    _table(
        "backfill",
        _number("seq", key=True),
        sa.Column("table", sa.String(255), nullable=False),
        _number("lo"),
        _number("hi"),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("downstream", sa.Boolean, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("holder", sa.String(255), nullable=False),
        sa.Column("began", sa.Float, nullable=False),
        sa.Column("beat", sa.Float, nullable=False),
    )
    _table("promise", _number("id", key=True), _number("seq"), sa.Column("at", sa.Float, nullable=False))
    _table(
        "announcement",
        _name("table"),
        sa.Column("keys", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("begun", sa.BigInteger),
        sa.Column("run", sa.String(255)),
    )


def _intake() -> None:
    _table(
        "intake",
        _name("table"),
        sa.Column("watermark", sa.BigInteger),
        _number("last_file"),
        sa.Column("origin", sa.Text),
        sa.Column("position", sa.BigInteger),
    )
    _table(
        "file",
        _name("table"),
        sa.Column("name", sa.String(4096), primary_key=True),
        _number("id"),
        _number("size"),
        _number("mtime"),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("lo", sa.BigInteger),
        sa.Column("hi", sa.BigInteger),
        sa.Column("at", sa.Float, nullable=False),
    )
    _table(
        "quarantine",
        _name("table"),
        sa.Column("batch", sa.String(32), primary_key=True),
        _number("n", key=True),
        _number("file_id"),
        sa.Column("file", sa.String(4096), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("row", sa.Text, nullable=False),
        sa.Column("layout", sa.Text),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("kept", sa.Boolean, nullable=False),
    )


def _checks() -> None:
    _table(
        "checked",
        _name("table"),
        _number("part", key=True),
        _number("seq"),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        _number("rows"),
        sa.Column("digest", sa.String(80), nullable=False),
        sa.Column("mark", sa.String(64), nullable=False),
        sa.Column("results", sa.Text, nullable=False),
    )
    _table(
        "decision",
        _name("table"),
        _number("part", key=True),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("digest", sa.String(80)),
        sa.Column("who", sa.String(255), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    _table(
        "held_file",
        _name("table"),
        sa.Column("name", sa.String(4096), primary_key=True),
        _number("size"),
        _number("mtime"),
        sa.Column("hash", sa.String(64), nullable=False),
        _number("lo"),
        _number("hi"),
        sa.Column("at", sa.Float, nullable=False),
    )


def _table(name: str, *columns: sa.Column[object]) -> None:
    op.create_table(name, *columns, sqlite_with_rowid=False)


def _partial(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _name(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.String(255), primary_key=True, autoincrement=False)


def _number(name: str, key: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.BigInteger, primary_key=key, nullable=False, autoincrement=False)
