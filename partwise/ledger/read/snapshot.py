"""Reading the ledger as if it had taken over today's definitions already; nothing is written.

What people ask (status, plan, why) is about the files in front of them. If the ledger has these definitions
this is an ordinary snapshot, else a transaction that is rolled back in the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from partwise.ledger.catalog import Catalog
from partwise.ledger.database import Reading
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.strategies import cover_views
from partwise.ledger.write.define import Changes, changes, define
from partwise.ledger.write.due_painting import frozen_below
from partwise.plan.planner import Look, look_around
from partwise.tables import Graph


@dataclass(frozen=True)
class Snapshot:
    """The ledger at one time, with the definitions that hold in it. `changes`: what is not taken over yet."""

    r: Reading
    graph: Graph
    now: float
    changes: Changes

    @cached_property
    def facts(self) -> LedgerFacts:
        return LedgerFacts(self.r)

    @cached_property
    def looks(self) -> dict[str, Look]:
        return look_around(self.graph, self.facts, self.now)

    def lowest(self, table: str) -> int:
        """Parts below it are frozen."""
        return frozen_below(self.r, self.graph[table], self.facts.settled(table))


@contextmanager
def as_defined(
    ledger: Ledger, graph: Graph, now: float, broken: Collection[str] = (), covers: Mapping[str, str] | None = None
) -> Iterator[Snapshot]:
    with ledger.database.reading() as r:
        found = changes(r, graph, broken)
        if not found:
            yield Snapshot(r, Catalog().graph(r), now, found)
            return
    with ledger.database.trying(now) as w:
        store = Catalog()
        found = define(w, graph, store, broken)
        cover_views(w, covers or {}, store.graph(w))
        yield Snapshot(w, store.graph(w), now, found)
