"""How estimates of fresh answers compare with what refreshes gave."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "estimate_check",
        sa.Column("table", sa.String(255), primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("part", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("column", sa.String(255), primary_key=True, autoincrement=False),
        sa.Column("published", sa.Float),
        sa.Column("estimate", sa.Float, nullable=False),
        sa.Column("low", sa.Float, nullable=False),
        sa.Column("high", sa.Float, nullable=False),
        sa.Column("truth", sa.Float, nullable=False),
        sa.Column("covered", sa.Boolean, nullable=False),
        sa.Column("ratio", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
