"""One time for all writers, what was due when, mixed parts, generations, readers.

Old ledgers took the time of a commit from the clock of whoever wrote it, before it had the lock: some times run
backwards against their sequences. They are raised to the time of the sequence before, so that a moment means one
sequence in old history as well.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    on = op.get_bind()
    newest = _straighten(on)
    _clock(on, newest)
    op.add_column("revision", sa.Column("as_of", sa.BigInteger))
    op.add_column("revision", sa.Column("mixed", sa.Text))
    op.add_column("revision", sa.Column("superseded", sa.Boolean))
    op.add_column("lease", sa.Column("seq", sa.BigInteger))
    op.add_column("due", sa.Column("since_seq", sa.BigInteger))
    op.execute("UPDATE due SET since_seq = 0")
    _table(
        "was_due",
        _name("table"),
        _number("until_seq", key=True),
        _number("lo", key=True),
        _number("hi"),
        _number("since_seq"),
    )
    _table(
        "mixed",
        _name("table"),
        _number("part", key=True),
        _number("as_of"),
        sa.Column("reads", sa.Text, nullable=False),
    )
    _table(
        "generation",
        _name("table"),
        _number("generation", key=True),
        _number("began_seq"),
        sa.Column("whole_seq", sa.BigInteger),
    )
    _generations()
    _table(
        "reader",
        sa.Column("id", sa.String(32), primary_key=True),
        _number("seq"),
        sa.Column("who", sa.String(255), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("expires", sa.Float, nullable=False),
    )


def _straighten(on: sa.Connection) -> float:
    """Let no time be before that of an earlier sequence. Returns the newest."""
    rows = on.execute(
        sa.text(
            "SELECT seq, MAX(at) FROM (SELECT seq, at FROM version UNION ALL SELECT seq, at FROM revision) AS known "
            "GROUP BY seq ORDER BY seq"
        )
    )
    newest, raised = 0.0, []
    for seq, at in rows:
        if at < newest:
            raised.append({"s": seq, "a": newest})
        newest = max(newest, at)
    if raised:
        on.execute(sa.text("CREATE TEMPORARY TABLE raised (seq BIGINT PRIMARY KEY, at DOUBLE PRECISION NOT NULL)"))
        on.execute(sa.text("INSERT INTO raised VALUES (:s, :a)"), raised)
        for table in ("version", "revision"):
            on.execute(
                sa.text(
                    f"UPDATE {table} SET at = (SELECT raised.at FROM raised WHERE raised.seq = {table}.seq) "
                    "WHERE seq IN (SELECT seq FROM raised)"
                )
            )
        on.execute(sa.text("DROP TABLE raised"))
    return newest


def _clock(on: sa.Connection, newest: float) -> None:
    """The one row, with the ledger's time. What was due before nobody wrote down."""
    seq, defined = on.execute(sa.text("SELECT seq, defined FROM clock WHERE id = 1")).one()
    since = on.execute(sa.text("SELECT MAX(since) FROM due")).scalar() or 0.0
    op.drop_table("clock")
    _table(
        "clock",
        _number("id", key=True),
        _number("seq"),
        _number("defined"),
        sa.Column("at", sa.Float, nullable=False),
        _number("watched"),
    )
    on.execute(
        sa.text("INSERT INTO clock (id, seq, defined, at, watched) VALUES (1, :s, :d, :a, :s)"),
        {"s": seq, "d": defined, "a": max(newest, since)},
    )


def _generations() -> None:
    """A new content was taken for complete with the second commit, unless parts of it are due since before the first."""
    op.execute(
        "INSERT INTO generation "
        'SELECT g."table", g.generation, g.began, CASE WHEN g.generation = c.generation AND EXISTS '
        '(SELECT 1 FROM due AS d WHERE d."table" = g."table" AND d.since <= g.at) THEN NULL '
        'ELSE (SELECT MIN(v.seq) FROM version AS v WHERE v."table" = g."table" AND v.generation = g.generation '
        "AND v.version > 0) END "
        'FROM (SELECT "table", generation, MIN(seq) AS began, MIN(at) AS at FROM version WHERE generation > 0 '
        'GROUP BY "table", generation) AS g JOIN catalog AS c ON c."table" = g."table"'
    )


def _table(name: str, *columns: "sa.Column[object]") -> None:
    op.create_table(name, *columns, sqlite_with_rowid=False)


def _name(name: str) -> "sa.Column[object]":
    return sa.Column(name, sa.String(255), primary_key=True, autoincrement=False)


def _number(name: str, key: bool = False) -> "sa.Column[object]":
    return sa.Column(name, sa.BigInteger, primary_key=key, autoincrement=False, nullable=False)
