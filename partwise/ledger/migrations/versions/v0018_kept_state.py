"""What of queries is kept for late rows, and how many parts steps computed from it."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_table(
        "kept_state",
        sa.Column("view", sa.String(255), primary_key=True, autoincrement=False),
        sa.Column("join", sa.Text, nullable=False),
        sa.Column("groups", sa.Boolean, nullable=False),
        sa.Column("mark", sa.String(64), nullable=False),
        sa.Column("until", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.Float, nullable=False),
        sa.Column("cost", sa.Float, nullable=False),
        sa.Column("recompute", sa.Float, nullable=False),
        sa.Column("deliveries", sa.Float, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "state_review",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("late", sa.BigInteger, nullable=False),
        sa.Column("budget", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
    op.add_column("step", sa.Column("from_kept", sa.BigInteger))
