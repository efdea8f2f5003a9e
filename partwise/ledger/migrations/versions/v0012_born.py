"""When parts came to exist, and since when the versions of a dimension count forward."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

# Of a source that is the sequence of its first revision. What older versions of Partwise did not write down came to exist
# before everything that did; of views it is found out when somebody needs it.
_FIRST = """
UPDATE {0} SET born = COALESCE(
    (SELECT MIN(r.seq) FROM revision AS r WHERE r."table" = {0}."table" AND r.part = {0}.part AND r.seq >= COALESCE(
        (SELECT MAX(g.began_seq) FROM generation AS g WHERE g."table" = {0}."table"), 0)), 0
) WHERE "table" IN (SELECT "table" FROM catalog WHERE kind = 'source')
"""


def upgrade() -> None:
    op.add_column("part", sa.Column("born", sa.BigInteger))
    op.add_column("lost", sa.Column("born", sa.BigInteger))
    op.add_column("catalog", sa.Column("forward_since", sa.BigInteger))
    for table in ("part", "lost"):
        op.execute(_FIRST.format(table))
