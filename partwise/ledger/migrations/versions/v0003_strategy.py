"""How windows are kept, settled by counts."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "strategy",
        sa.Column("view", sa.String(255), primary_key=True, autoincrement=False),
        sa.Column("strategy", sa.String(16), nullable=False),
        sa.Column("mark", sa.String(64), nullable=False),
        sa.Column("rows", sa.BigInteger),
        sa.Column("groups", sa.BigInteger),
        sa.Column("again", sa.Boolean, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
