"""What Alembic runs. The caller gives the connection, with its transaction and its lock: see `open.py`."""

from alembic import context

from partwise.ledger.migrations import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite changes a table by copying it
    transactional_ddl=True,
)
context.run_migrations()
