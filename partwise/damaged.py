"""Tables of the ledger whose files are not what the ledger says, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partwise.ledger.ledger import Ledger
from partwise.object_store import is_remote
from partwise.storage.files import folder
from partwise.storage.probe import FOLDER
from partwise.tables import table_path

if TYPE_CHECKING:
    from partwise.storage.damage import Damage

#: Tables that are looked at together: it is waiting, not work.
_TOGETHER = 8


@dataclass(frozen=True, slots=True)
class Damaged:
    table: str
    found: Damage

    def text(self) -> str:
        return f"{self.table}: {self.found.text()}; `partwise rebuild {self.table}` makes it again"


def damaged(
    ledger: Ledger, warehouse: str, only: Iterable[str] | None = None, most: int | None = None
) -> list[Damaged]:
    """Looks at these tables (all by default); those that are being made again are not looked at.

    `most`: tables with more files are looked at by their log alone. Raises StoreProblem where a store does not answer.
    """
    graph, again = ledger.graph(), ledger.rebuilding()
    names = [name for name in graph.order if (only is None or name in set(only)) and name not in again]
    at = {name: here for name in names if (here := ledger.current(name)).version is not None}
    if not at:
        return []
    if is_remote(warehouse):
        # Whether the store answers is known within a second; opening tables that are away takes half a minute.
        folder(warehouse).read(f"{FOLDER}/none")
    from partwise.storage.damage import damage  # needs delta-rs, which takes a while to import

    def look(name: str) -> Damage | None:
        version = at[name].version
        assert version is not None
        return damage(table_path(warehouse, name, at[name].generation), version, most)

    with ThreadPoolExecutor(_TOGETHER) as pool:
        found = dict(zip(at, pool.map(look, at), strict=True))
    return [Damaged(name, what) for name, what in found.items() if what is not None]
