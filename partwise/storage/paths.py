"""Where tables are."""

from __future__ import annotations


def table_path(warehouse: str, table: str, generation: int) -> str:
    """A table's folder. A new generation is a new folder: readers of the old one are not disturbed."""
    return f"{warehouse.rstrip('/')}/{table}" + (f".{generation}" if generation else "")
