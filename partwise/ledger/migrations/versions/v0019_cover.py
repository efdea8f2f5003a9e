"""Views that read panes which hold more than they need."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "cover",
        sa.Column("view", sa.String(255), primary_key=True),
        sa.Column("base", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
