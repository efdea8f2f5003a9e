"""The ledger's schema, version by version.

Alembic reads this folder only when a ledger has to be created or upgraded. What every start needs is
the number below: comparing it with the ledger's takes one query and no import.
"""

#: The newest version in `versions/`. A test keeps the two together.
HEAD = "0019"

#: Where a ledger keeps its version. Not Alembic's usual name: Airflow may have its tables in the same database.
VERSION_TABLE = "ledger_version"
