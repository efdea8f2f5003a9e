"""Which parts changes of dimensions matter for. Those so far mattered everywhere."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "dimension_change",
        sa.Column("table", sa.String(255), primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("n", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("by", sa.Text),
        sa.Column("parts", sa.Text),
        sqlite_with_rowid=False,
    )
    op.execute(
        'INSERT INTO dimension_change ("table", seq, n) SELECT part."table", part.changed_seq, 0 FROM part '
        'JOIN catalog ON catalog."table" = part."table" WHERE catalog.kind = \'dimension\''
    )
