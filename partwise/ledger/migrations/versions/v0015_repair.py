"""What repairs of large parts took, and what had been foreseen."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "repair",
        sa.Column("table", sa.String(255), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True),
        sa.Column("by", sa.String(16), nullable=False),
        sa.Column("costs", sa.Text, nullable=False),
        sa.Column("foreseen", sa.Float, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("parts", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.Column("keys", sa.BigInteger, nullable=False),
        sa.Column("rows_read", sa.BigInteger, nullable=False),
        sa.Column("rows_copied", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
