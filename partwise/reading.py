"""Reading tables from programs: one SQL statement over all tables of a workspace, as of one moment, without a JVM."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from partwise.workspace import open_workspace

if TYPE_CHECKING:
    from partwise.storage.query import Result


def read(sql: str, workspace: str | None = None, moment: float | None = None, sequence: int | None = None) -> Result:
    """What the statement gives, and the sequence as of which it was read.

    `moment` in seconds since 1970, or a `sequence` of the ledger; the newest by default.
    """
    from partwise.ledger.read.as_of import readable
    from partwise.ledger.records.readers import reading
    from partwise.ledger.write.lease_holding import who
    from partwise.storage.paths import table_path
    from partwise.storage.query import Pin, mentioned, query

    where = open_workspace(workspace)
    ledger = where.open_ledger(time.time())
    try:
        with reading(ledger.database, time.time, who(), sequence, moment) as as_of:
            names = list(ledger.graph().tables)
            found = readable(ledger.database, names, mentioned(sql, names), as_of.seq)
            pins = {
                name: Pin(table_path(where.warehouse, name, at.version.generation), at.version.version, parts=at.parts)
                for name, at in found.items()
            }
            return replace(query(sql, pins), sequence=as_of.seq)
    finally:
        ledger.database.close()
