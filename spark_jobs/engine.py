"""What a job works with: the session, the ledger, the definitions, and where tables are.

The clock and the points at which a test may stop a job are here as well, so that nothing below
asks the world for anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError

from partwise import storage
from partwise.choose.rolling import WHEEL
from partwise.choose.settled import settled
from partwise.compile.program import Program, ProgramTable
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.pin import Version
from partwise.ledger.records.kept_states import nothing_to_choose
from partwise.ledger.records.running import Running
from partwise.ledger.records.strategies import Settlements
from partwise.ledger.write.lease_holding import SECONDS, is_dead, leased, leased_together, who
from partwise.ledger.write.leases import Fenced, Lease
from partwise.ledger.write.orphans import Foreign, adopt_orphans
from partwise.object_store import is_remote
from partwise.settings import Batch
from partwise.storage.paths import table_path, versions_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How long a lease lasts; tests of zombies shorten it.
LEASE = SECONDS
#: What a job staged is taken for a leftover after this time: a job that lives that long without its lease is lost.
LEFT_FOR = timedelta(hours=1)
#: So often a process looks for leftovers in an object store, where each look is a request.
LOOK_EVERY = 600.0


@dataclass
class Engine:
    """`definitions` are as the ledger has them; they are others once somebody has settled how a window is kept."""

    spark: SparkSession
    ledger: Ledger
    definitions: Program
    warehouse: str
    now: Callable[[], float] = time.time
    holder: str = field(default_factory=who)
    most_parts: int = 1_000  # of one step
    most_rows: int = 20_000_000  # that one query reads, as far as the ledger can tell
    batch: Batch = field(default_factory=Batch)  # which small steps share a job of Spark
    step_seconds: float = 30.0  # a step publishes what it has after about this time; the next one goes on
    small_rows: int = 100_000  # results up to about so many come as Arrow; 0: Spark writes all of them
    wheel_rows: int = WHEEL  # rolling tables of more rows have files by when rows leave
    progress: Callable[[Running], None] = lambda step: None  # whoever runs steps may show how far they are
    working: Callable[[Running], None] = lambda step: None  # every two seconds: it is still at work
    stopping: Callable[[], bool] = lambda: False  # asked to end: a step publishes what it has, and does not go on
    lot_files: int = 2_000  # of the first lot; those after it are as large as fits into `step_seconds`
    loading: Callable[[str, int, int], None] = lambda table, files, of: None  # how many files are loaded by now
    loading_since: Callable[[str, float], None] = lambda table, since: None  # every two seconds: it is still at work
    passed: Callable[[str], None] = lambda point: None  # a test may stop a job at any point
    repair_by: str | None = None  # instead of what definitions say; tests force one
    settling: bool = True  # whether windows are counted before their first part
    state_budget: int | None = None  # bytes that may be kept for repairs; None: what is kept stays as it is
    settled: set[str] = field(default_factory=set)  # windows that need not be looked at again

    def catch_up(self, known: Settlements | None = None) -> None:
        """Go on with windows kept as the ledger says now."""
        self.definitions = settled(self.definitions, self.ledger.strategies() if known is None else known)

    def review_states(self, force: bool = False) -> None:
        """Choose again what is kept for late rows, if clearly more of them have come."""
        if self.state_budget is None:
            return
        with self.ledger.database.reading() as r:
            if nothing_to_choose(r, self.state_budget):
                return
        # Imported here: nearly always there is nothing to choose.
        from partwise.choose.keeping import review

        now = self.now()
        if review(self.ledger, self.definitions, self.state_budget, now, is_dead, force):
            self.catch_up()

    def definition(self, name: str) -> ProgramTable:
        return self.definitions.usable[name]

    def path(self, table: str, generation: int) -> str:
        return table_path(self.warehouse, table, generation)

    def versions_path(self, dimension: str) -> str:
        return versions_path(self.warehouse, dimension)

    def open(self, table: str, version: Version) -> storage.Handle | None:
        """A table at a version of the ledger; None if nothing was ever committed."""
        if version.version is None:
            return None
        return storage.open_at(self.path(table, version.generation), version.version)

    @contextmanager
    def leased(self, table: str, adopting: bool = True) -> Iterator[Lease]:
        """The table's lease, renewed while the work goes on, with every orphan adopted and old leftovers gone.

        Raises Busy.
        """
        with leased(self.ledger, table, self.holder, self.now, LEASE) as held:
            self.passed("leased")
            if adopting:
                adopt(self, held)
                _sweep_at_times(self, held)
            self.passed("adopted")
            yield held

    @contextmanager
    def leased_together(self, tables: Collection[str]) -> Iterator[tuple[Lease, ...]]:
        """The leases of those of these tables that are free and sound, as `leased` gives them.

        What speaks against one of them is told by a step of its own.
        """
        with leased_together(self.ledger, tables, self.holder, self.now, LEASE) as held:
            self.passed("leased")
            sound = []
            for lease in held:
                try:
                    adopt(self, lease)
                    _sweep_at_times(self, lease)
                except (Foreign, Fenced, DeltaError, storage.StorageError, OSError):
                    continue
                sound.append(lease)
            self.passed("adopted")
            yield tuple(sound)


def adopt(engine: Engine, held: Lease) -> int:
    """Tell the ledger about commits that it does not know: their writer died in between. Returns how many."""
    return adopt_orphans(engine.ledger, held, engine.warehouse, engine.now())


def sweep(engine: Engine, held: Lease) -> int:
    """Remove what dead jobs had staged in the held table. Returns of how many."""
    path = engine.path(held.table, engine.ledger.current(held.table).generation)
    moment = datetime.fromtimestamp(engine.now(), UTC)
    try:
        found = storage.sweep(path, (), older_than=LEFT_FOR, now=moment)
    except storage.Conflict:
        return 0  # somebody without the lease commits: the next writer sweeps
    if is_remote(path):
        _looked[path] = engine.now()
    if found.version is not None:
        adopt(engine, held)  # the sweep's own commit
    return len(found.steps)


#: When this process looked last for leftovers in a table's folder in an object store.
_looked: dict[str, float] = {}


def _sweep_at_times(engine: Engine, held: Lease) -> None:
    last = _looked.get(engine.path(held.table, engine.ledger.current(held.table).generation))
    if last is None or not last <= engine.now() < last + LOOK_EVERY:
        sweep(engine, held)
