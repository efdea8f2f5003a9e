"""Which version of a forward dimension counts for a time range, and of parts the source part that came to exist last."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_OF_SOURCES = """
UPDATE {0} SET born_at = {0}.part * (SELECT c.length FROM catalog AS c WHERE c."table" = {0}."table")
WHERE "table" IN (SELECT "table" FROM catalog WHERE kind = 'source')
"""


def upgrade() -> None:
    for table in ("part", "lost"):
        op.add_column(table, sa.Column("born_at", sa.BigInteger))
        op.execute(_OF_SOURCES.format(table))
    op.create_table(
        "repin",
        sa.Column("table", sa.String(255), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("lo", sa.BigInteger, nullable=False),
        sa.Column("hi", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger),
        sa.Column("who", sa.String(255), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
