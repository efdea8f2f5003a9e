"""Where tables are. Commands that only tell it do not import delta-rs for that."""

from __future__ import annotations

from partwise.tables import table_path, versions_path

__all__ = ["table_path", "versions_path"]
