"""Reading tables from programs: one SQL statement over all tables of a workspace, from one snapshot, without a JVM."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from partwise.workspace import open_workspace

if TYPE_CHECKING:
    from partwise.storage.query import Result


def read(sql: str, workspace: str | None = None, moment: float | None = None) -> Result:
    """What the statement gives. `moment` in seconds since 1970, now by default."""
    from partwise.ledger.read.as_of import readable
    from partwise.storage.paths import table_path
    from partwise.storage.query import Pin, mentioned, query

    where = open_workspace(workspace)
    ledger = where.open_ledger(time.time())
    try:
        names = list(ledger.graph().tables)
        found = readable(ledger.database, names, mentioned(sql, names), moment)
    finally:
        ledger.database.close()
    pins = {
        name: Pin(table_path(where.warehouse, name, at.version.generation), at.version.version, parts=at.parts)
        for name, at in found.items()
    }
    return query(sql, pins)
