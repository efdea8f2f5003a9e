"""Reading tables from programs: one SQL statement over all tables of a workspace, from one snapshot, without a JVM.

`partwise.open` is the public way in (partwise/api.py); DAGs use `read`. Both pin their tables here, so they keep the
promises of `partwise query`: one snapshot, only parts that exist, and no answer from what retention has removed.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from partwise.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from partwise.storage.query import PinnedTable, Result


class NotKept(Exception):
    """The snapshot is older than what retention keeps; the message is meant for people."""


def read(sql: str, workspace: str | None = None, moment: float | None = None) -> Result:
    """What the statement gives. `moment` in seconds since 1970, now by default. Raises NotKept, BadQuery."""
    from partwise.storage.query import mentioned, query

    where = open_workspace(workspace)
    return query(sql, pinned(where, lambda names: mentioned(sql, names), moment))


def pinned(where: Workspace, wanted: Wanted, moment: float | None = None) -> dict[str, PinnedTable]:
    """Every table at its version of one snapshot; of those that are `wanted` only the parts that exist. Raises NotKept."""
    from partwise.ledger.read.as_of import readable
    from partwise.storage.paths import table_path
    from partwise.storage.query import PinnedTable

    ledger = where.open_ledger(time.time())
    try:
        if moment is not None:
            _check_promise(ledger.database, moment)
        names = list(ledger.graph().tables)
        found = readable(ledger.database, names, wanted(names), moment)
    finally:
        ledger.database.close()
    return {
        name: PinnedTable(table_path(where.warehouse, name, at.version.generation), at.version.version, parts=at.parts)
        for name, at in found.items()
    }


def _check_promise(database: Database, moment: float) -> None:
    """Upkeep removes what is older than the setting `history`; half an answer would be worse than none."""
    from partwise.ledger.read.promise import promised

    with database.reading() as r:
        given = promised(r)
    if given is not None and moment < given.at:
        kept = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(given.at))
        raise NotKept(f"Reads reach back to {kept}; what was there before is not kept any longer (setting `history`).")


if TYPE_CHECKING:
    from collections.abc import Callable

    from partwise.ledger.database import Database

    Wanted = Callable[[list[str]], Collection[str]]
