"""Names of tables and columns: which are possible, and which Partwise keeps for itself."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Stored with every table; `_file` says which file a row of a source came from.
RESERVED = frozenset({"part", "part_timestamp", "_file"})
#: Columns that every table with parts has, and their types.
STORED = {"part": "bigint", "part_timestamp": "timestamp"}
#: DAGs of Partwise's own: in Airflow a table of this name would lose its DAG to one of them, or they theirs.
DAGS = frozenset({"partwise_backfill", "partwise_reconcile", "partwise_upkeep"})

#: Words that cannot stand behind FROM as the name of a table.
SQL_WORDS = frozenset(
    [
        "select",
        "from",
        "where",
        "having",
        "join",
        "on",
        "using",
        "union",
        "except",
        "intersect",
        "with",
        "as",
        "and",
        "or",
        "not",
        "null",
        "like",
        "between",
        "when",
        "then",
        "else",
        "distinct",
        "values",
        "inner",
        "outer",
        "cross",
        "lateral",
        "insert",
        "create",
        "drop",
        "alter",
        "true",
        "false",
        "for",
        "tablesample",
        "qualify",
        "minus",
        "current_date",
        "describe",
        "fetch",
        "any",
        "current_time",
        "current_timestamp",
        "current_user",
        "glob",
        "grant",
        "ilike",
        "into",
        "localtimestamp",
        "notnull",
        "partitioned_by",
        "regexp",
        "returning",
        "revoke",
        "rlike",
        "rollback",
        "serdeproperties",
        "uncache",
        "xor",
    ]
)


def bad_name(name: str) -> str:
    """Why a name cannot be used, or nothing."""
    if not NAME.fullmatch(name):
        return f"'{name[:60]}' is not a name: use letters, digits and underscores, and no digit first"
    if name.lower() in SQL_WORDS:
        return f"'{name}' is a word of SQL: FROM {name}[j] could not be understood; take another name"
    if name.startswith("__"):
        return f"'{name}' is not a name: two underscores at the front are kept for Partwise"
    return "" if len(name) <= 100 else f"'{name[:20]}...' is longer than 100 characters"


def is_ours(table: str) -> bool:
    """Whether a table of this name would have the DAG of another."""
    return table.lower() in DAGS


def reserved(column: str) -> bool:
    return column.lower() in RESERVED or column.startswith("__")
