"""Refresh policies: when they fired last, and the rows that came since."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "refresh",
        sa.Column("view", sa.String(255), primary_key=True, autoincrement=False),
        sa.Column("fired_at", sa.Float, nullable=False),
        sa.Column("fired_seq", sa.BigInteger, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "refresh_rows",
        sa.Column("view", sa.String(255), primary_key=True, autoincrement=False),
        sa.Column("input", sa.String(255), primary_key=True, autoincrement=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
