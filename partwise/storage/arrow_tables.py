"""Answers of `storage.query` as Arrow tables: columns keep their types, and nothing is copied row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from partwise.storage.query import BadQuery, PinnedTable, connect

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


def arrow(sql: str, tables: Mapping[str, PinnedTable]) -> pa.Table:
    """What one statement gives. Times are in UTC. Raises BadQuery, StorageError."""
    import duckdb
    import pyarrow as pa

    with connect(sql, tables) as connection:
        try:
            found = connection.sql(sql)
            return pa.table({}) if found is None else found.to_arrow_table()
        except duckdb.Error as why:
            known = ", ".join(sorted(tables)) or "none"
            raise BadQuery(f"{why}\nTables of this workspace: {known}") from why
