"""Adoption: commits of data that the ledger does not know, because their writer died in between.

Every writer does this first, under the table's lease; the entry in each commit's metadata says what it did.
"""

from __future__ import annotations

from partwise.ledger.ledger import Ledger
from partwise.ledger.write.commit import Entry
from partwise.ledger.write.leases import Lease
from partwise.object_store import is_remote


class Foreign(Exception):
    """A commit by others to a table of ours; the message is meant for people."""


def adopt_orphans(ledger: Ledger, held: Lease, warehouse: str, now: float) -> int:
    """Tell the ledger about commits to the held table that it does not know. Returns how many."""
    from partwise import storage  # delta-rs: only writers pay for it
    from partwise.storage.paths import table_path

    known = ledger.current(held.table)
    path = table_path(warehouse, held.table, known.generation)
    # In an object store, looking is a request; of a table that was committed to, the log alone tells enough.
    if (known.version is None or not is_remote(path)) and not storage.exists(path):
        return 0
    orphans: list[tuple[int, Entry | None]] = []
    for found in storage.unknown(path, known.version):
        raw = (found.entry or {}).get("entry")
        if raw is None and found.data_change:
            raise Foreign(
                f"Version {found.version} of {path} was not written by Partwise, so the ledger cannot know what it "
                "changed. Restore the version before it, or move the folder away and backfill the table."
            )
        orphans.append((found.version, None if raw is None else Entry.from_json(raw)))
    ledger.adopt(held, orphans, now)
    return len(orphans)
