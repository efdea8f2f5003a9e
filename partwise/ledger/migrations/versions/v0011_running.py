"""Steps that run now, and how far they have come."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "running",
        sa.Column("table", sa.String(255), primary_key=True),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("lo", sa.BigInteger, nullable=False),
        sa.Column("hi", sa.BigInteger, nullable=False),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("of", sa.BigInteger, nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
