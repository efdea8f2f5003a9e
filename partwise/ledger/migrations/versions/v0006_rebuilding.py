"""Tables that are made again from their inputs, and queries whose short way failed. Nobody read the outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "lost",
        sa.Column("table", sa.String(255), primary_key=True),
        sa.Column("part", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("changed_seq", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String(80), nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rebuild",
        sa.Column("table", sa.String(255), primary_key=True),
        sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("whole", sa.BigInteger),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "careful",
        sa.Column("table", sa.String(255), primary_key=True),
        sa.Column("way", sa.String(16), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
    op.drop_table("outbox")
