"""Reading tables from programs: one SQL statement over all tables of a workspace, from one snapshot, without a JVM.

`partwise.open` is the public way in (partwise/api.py); DAGs use `read`. Both pin their tables here, so they keep the
promises of `partwise query`: one snapshot, only parts that exist, and no answer from what retention has removed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from partwise.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from partwise.storage.query import PinnedTable, Result


class NotKept(Exception):
    """The snapshot is older than what retention keeps; the message is meant for people."""


def read(sql: str, workspace: str | None = None, moment: float | None = None, sequence: int | None = None) -> Result:
    """What the statement gives, and the sequence as of which it was read.

    `moment` in seconds since 1970, or a `sequence` of the ledger; the newest by default. Raises NotKept, BadQuery.
    """
    from partwise.storage.query import mentioned, query

    where = open_workspace(workspace)
    with pinned(where, lambda names: mentioned(sql, names), moment, sequence) as (pins, seq):
        return replace(query(sql, pins), sequence=seq)


@contextmanager
def pinned(
    where: Workspace, wanted: Wanted, moment: float | None = None, sequence: int | None = None
) -> Iterator[tuple[dict[str, PinnedTable], int]]:
    """Every table at its version of one snapshot, and its sequence; upkeep spares what is read until this ends.

    Of the tables that are `wanted` only the parts that exist. Raises NotKept.
    """
    from partwise.ledger.read.as_of import readable
    from partwise.ledger.records.readers import NotYet, TooOld, reading
    from partwise.ledger.write.lease_holding import who
    from partwise.storage.paths import table_path
    from partwise.storage.query import PinnedTable

    ledger = where.open_ledger(time.time())
    try:
        with reading(ledger.database, time.time, who(), sequence, moment) as as_of:
            names = list(ledger.graph().tables)
            found = readable(ledger.database, names, wanted(names), as_of.seq)
            yield (
                {
                    name: PinnedTable(
                        table_path(where.warehouse, name, at.version.generation), at.version.version, parts=at.parts
                    )
                    for name, at in found.items()
                },
                as_of.seq,
            )
    except TooOld as why:
        kept = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(why.given.at))
        raise NotKept(
            f"Reads reach back to {kept}; what was there before is not kept any longer (setting `history`)."
        ) from why
    except NotYet as why:
        raise NotKept(f"This lies in the future: {why}.") from why
    finally:
        ledger.database.close()


if TYPE_CHECKING:
    from collections.abc import Callable

    Wanted = Callable[[list[str]], Collection[str]]
