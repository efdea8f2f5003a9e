"""Of dimensions whose rows are valid for a time: which times have changed."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "validity_change",
        sa.Column("table", sa.String(255), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("lo", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("hi", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
