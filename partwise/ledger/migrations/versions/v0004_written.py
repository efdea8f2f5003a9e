"""Which task of Airflow wrote what."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "written",
        sa.Column("table", sa.String(255), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("dag", sa.String(255), nullable=False),
        sa.Column("run", sa.String(255), nullable=False),
        sa.Column("task", sa.String(255), nullable=False),
        sa.Column("map_index", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("written_by_time", "written", ["table", "at"])
