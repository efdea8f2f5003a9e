"""Rows that were set aside know their line in the file. Of older ones nobody knows it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("quarantine", sa.Column("line", sa.BigInteger))
