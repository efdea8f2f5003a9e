"""The ledger in one class: every transaction that the rest of the product needs, by name.

Time is an argument everywhere (`now`, seconds since 1970). The order of a step is

    take -> adopt -> pin -> (read, compute, check, commit the data) -> commit

and every writer follows it: views, ingest, compaction and retention alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import bindparam, insert, select

from partwise.ledger.catalog import Catalog, settled
from partwise.ledger.database import Database, Reading, Writing
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.read.as_of import sequence_at, versions_at
from partwise.ledger.read.audit import audit, rebuild
from partwise.ledger.read.pin import DefinitionChanged, Pin, Version, pin, version_of
from partwise.ledger.records import kept_states, refreshes, repairs, strategies
from partwise.ledger.records.kept_states import KeptChoice
from partwise.ledger.records.strategies import Settlement, Settlements
from partwise.ledger.records.writers import Writer, note
from partwise.ledger.runs import due_rows
from partwise.ledger.schema import failure, step
from partwise.ledger.write import define as definitions
from partwise.ledger.write import leases, rebuilding
from partwise.ledger.write.commit import FAILURE_DROP, Entry, Recorded, known_version, record
from partwise.ledger.write.leases import Lease
from partwise.ledger.write.repin import repin
from partwise.ledger.write.sample_starts import follow_start
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.model import Plan
from partwise.plan.planner import look_around, make_plan
from partwise.plan.retention import expirable
from partwise.tables import Graph, Table

_FAILURE = select(failure.c.attempts, failure.c.pin).where(
    failure.c.table == bindparam("t"), failure.c.part == bindparam("p")
)

#: Tries of a query that fails, and seconds between them. A failed check is not tried again by itself.
ATTEMPTS = 3
BACKOFF = (5.0, 30.0)


class Ledger:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.writer: Writer | None = None  # in whose name it is written to
        self._catalog = Catalog()

    # -- definitions ------------------------------------------------------------------------------

    def define(
        self,
        graph: Graph,
        now: float,
        broken: Collection[str] = (),
        made_with: Settlements | None = None,
        record: Collection[Settlement] = (),
        covers: Mapping[str, str] | None = None,
    ) -> definitions.Changes:
        """Take over definitions; does nothing, and takes no sequence, if the ledger has them already.

        `made_with` are the strategies that the definitions were made with: raises SettledMeanwhile if they are others
        by now. `record` are those that become known with these definitions, `covers` the panes that views read from now on
        because they hold what they need.
        """
        with self.database.reading() as r:
            if not definitions.changes(r, graph, broken) and not record and not covers:
                return definitions.Changes()
        with self._defining(now) as w:
            now_known = strategies.settlements(w, self._catalog.graph(w))
            if made_with is not None and not strategies.same(now_known, made_with):
                raise strategies.SettledMeanwhile
            for item in record:
                strategies.write(w, item)
            found = definitions.define(w, graph, self._catalog, broken)
            strategies.cover_views(w, covers or {}, self._catalog.graph(w))
            return found

    def settle(
        self,
        item: Settlement,
        before: Mapping[str, Table],
        after: Mapping[str, Table],
        now: float,
        still: Callable[[Reading], bool] = lambda r: True,
        dead: Callable[[str], bool] = lambda holder: False,
        covered: bool = True,
    ) -> bool:
        """Settle how a window is kept, if `still` nothing speaks against it. Returns whether it was done; raises Busy.

        Unless it is `covered`, it reads no panes that hold more than it needs.
        """
        with self._defining(now) as w:
            done = still(w) and strategies.settle(w, self._catalog, item, before, after, dead)
            if done and not covered:
                strategies.uncover(w, item.view)
            return done

    def keep_states(
        self,
        wanted: Mapping[str, KeptChoice | None],
        after: Mapping[str, Table],
        names: Collection[str],
        now: float,
        dead: Callable[[str], bool] = lambda holder: False,
    ) -> None:
        """Change what of views is kept. Raises Busy, DefinitionChanged."""
        with self._defining(now) as w:
            kept_states.keep(w, self._catalog, wanted, after, names, dead)

    def strategies(self) -> Settlements:
        """How windows are kept, by view, as far as it is settled."""
        with self.database.reading() as r:
            return strategies.settlements(r, self._catalog.graph(r))

    @contextmanager
    def _defining(self, now: float) -> Iterator[Writing]:
        try:
            with self.database.writing(now) as w:
                yield w
        except BaseException:
            self._catalog.forget()  # its sequence is free again, for other definitions perhaps
            raise

    def graph(self) -> Graph:
        with self.database.reading() as r:
            return self._catalog.graph(r)

    def graph_at(self, r: Reading) -> Graph:
        return self._catalog.graph(r)

    # -- planning ---------------------------------------------------------------------------------

    def plan(self, now: float, only: Collection[str] | None = None) -> Plan:
        with self.database.reading() as r:
            return make_plan(self._catalog.graph(r), LedgerFacts(r), now, only)

    def request(self, table: str, parts: Parts, now: float) -> Parts:
        with self.database.writing(now) as w:
            return definitions.request(w, self._catalog.graph(w), table, parts)

    def repin(self, dimension: str, span: Range, version: int | None, who: str, now: float) -> dict[str, Parts]:
        """Another version of a forward dimension counts for what came to exist with source parts of a time range."""
        with self.database.writing(now) as w:
            return repin(w, self._catalog.graph(w), dimension, span, version, who)

    def move_start(self, table: str, start: int, now: float) -> None:
        with self.database.writing(now) as w:
            graph = self._catalog.graph(w)
            definitions.move_start(w, graph, table, start)
            follow_start(w, graph, table)

    # -- a step -----------------------------------------------------------------------------------

    def take(self, table: str, holder: str, seconds: float, now: float, dead: str | None = None) -> Lease:
        """Take the table's lease. Raises Busy while someone else's has not expired; `dead` is no one."""
        with self.database.writing(now) as w:
            return leases.take(w, table, holder, seconds, dead)

    def take_free(
        self, tables: Iterable[str], holder: str, seconds: float, now: float, dead: Callable[[str], bool]
    ) -> tuple[Lease, ...]:
        """Take the leases of these tables in the order of their names; those that somebody who lives has are left out."""
        with self.database.writing(now) as w:
            return leases.take_free(w, tables, holder, seconds, dead)

    def renew_each(self, held: Iterable[Lease], seconds: float, now: float) -> None:
        """Renew what is not lost."""
        with self.database.writing(now) as w:
            for lease in leases.not_lost(w, held):
                leases.renew(w, lease, seconds)

    def release_each(self, held: Iterable[Lease], now: float) -> None:
        """Give back what is not lost."""
        with self.database.writing(now) as w:
            for lease in leases.not_lost(w, held):
                leases.release(w, lease)

    def renew(self, held: Lease, seconds: float, now: float) -> None:
        with self.database.writing(now) as w:
            leases.renew(w, held, seconds)

    def release(self, held: Lease, now: float) -> None:
        with self.database.writing(now) as w:
            leases.release(w, held)

    def rebuild(self, held: Lease, now: float) -> None:
        """Begin a new generation of the table with the same parts: its result has other columns now."""
        with self.database.writing(now) as w:
            leases.check(w, held)
            definitions.rebuild_table(w, self._catalog.graph(w), held.table)

    def rebuild_again(self, held: Lease, now: float) -> Parts:
        """Begin to make the table again from what it was made from; returns the parts that will come back."""
        with self.database.writing(now) as w:
            leases.check(w, held)
            return rebuilding.begin(w, self._catalog.graph(w), held.table)

    def rebuilding(self) -> dict[str, Parts]:
        """Parts that are being made again, by table."""
        with self.database.reading() as r:
            return LedgerFacts(r).all_lost()

    def current(self, table: str) -> Version:
        """The last version of a table that the ledger knows."""
        with self.database.reading() as r:
            return version_of(r, table)

    def adopt(self, held: Lease, orphans: Iterable[tuple[int, Entry | None]], now: float) -> list[Recorded]:
        """Record Delta commits that the ledger does not know, in order, each with its own sequence.

        An entry of None is a commit that changed no data (OPTIMIZE): a version without revisions. A merge into another
        version than the one before is not believed: its parts are due at once.
        """
        done = []
        for new_version, entry in orphans:
            with self.database.writing(now) as w:
                leases.check(w, held)
                generation = settled(w, held.table).generation
                last = known_version(w, held.table, generation)
                if last is not None and new_version <= last:
                    continue
                used = entry or Entry(held.table, generation, "", None)
                used = used if used.follows(new_version) else used.refused()
                done.append(record(w, self._catalog, used, new_version))
        return done

    def pin(
        self,
        held: Lease,
        now: float,
        asked: Parts | None = None,
        fingerprint: str | None = None,
        limit: int = 1000,
        beside: Collection[str] = (),
    ) -> Pin | None:
        with self.database.reading() as r:
            graph = self._catalog.graph(r)
            if held.table not in graph.tables or graph[held.table].refresh is None:
                return pin(r, self._catalog, held, now, asked, fingerprint, limit, beside)
        self._fire(held, now)
        with self.database.reading() as r:
            return pin(r, self._catalog, held, now, asked, fingerprint, limit, beside)

    def pin_each(
        self,
        held: Iterable[Lease],
        now: float,
        asked: Mapping[str, Parts] | None,
        fingerprints: Mapping[str, str],
        limit: int = 1000,
    ) -> dict[str, Pin]:
        """The pins of several steps, of one snapshot: all of them read the same sequence.

        Tables with nothing to do are left out, and those whose definition or lease is another by now.
        """
        held = tuple(held)
        with self.database.reading() as r:
            tables = self._catalog.graph(r).tables
        for lease in held:
            if lease.table in tables and tables[lease.table].refresh is not None:
                self._fire(lease, now)
        found = {}
        with self.database.reading() as r:
            facts = LedgerFacts(r, keep=True)
            sound, graph = tuple(leases.not_lost(r, held)), self._catalog.graph(r)
            looks = look_around(graph, facts, now, {lease.table for lease in sound} & graph.tables.keys())
            for lease in sound:
                wanted = None if asked is None else asked.get(lease.table, Parts())
                mark = fingerprints[lease.table]
                try:
                    one = pin(r, self._catalog, lease, now, wanted, mark, limit, facts=facts, looks=looks)
                except DefinitionChanged:
                    continue
                if one is not None:
                    found[lease.table] = one
        return found

    def _fire(self, held: Lease, now: float) -> None:
        """Record that the refresh policy of a table releases what waits for it, where it does."""
        with self.database.reading() as r:
            look = look_around(self._catalog.graph(r), LedgerFacts(r), now, {held.table}).get(held.table)
        if look is not None and look.fires is not None:
            with self.database.writing(now) as w:
                leases.check(w, held)
                refreshes.fire(w, look.table.family, look.fires)

    def refresh_now(self, views: Collection[str] | None, now: float) -> None:
        """Release everything that waits for refresh policies: of these views and what they read, or of all."""
        with self.database.writing(now) as w:
            graph = self._catalog.graph(w)
            names = graph.tables if views is None else graph.upstream(views)
            for view in sorted({graph[name].family for name in names if graph[name].refresh is not None}):
                refreshes.fire(w, view, "run --now")

    def commit(
        self,
        held: Lease,
        entry: Entry,
        new_version: int | None,
        now: float,
        keep: bool = False,
        seconds: float | None = None,
        repair: repairs.RecordedRepair | None = None,
        from_kept: int | None = None,
    ) -> Recorded:
        """Record a step, or refuse it if the lease was lost. Releases the lease unless told to keep it.

        `seconds`: how long it took; what later ones will take is estimated from that. `repair`: how stale parts were
        repaired, if that was worth a choice. `from_kept`: how many parts were computed from kept outputs.
        """
        with self.database.writing(now) as w:
            leases.check(w, held)
            done = record(w, self._catalog, entry, new_version)
            if entry.parts:
                note(w, entry.table, self.writer)
            if seconds is not None and entry.parts:
                rows = sum(content.rows for content in entry.parts.values())
                took = {"table": entry.table, "seq": w.seq, "parts": len(entry.parts), "rows": rows}
                w.on.execute(insert(step), took | {"seconds": seconds, "at": w.at, "from_kept": from_kept})
            if repair is not None:
                repairs.note(w, entry.table, repair)
            if not keep:
                leases.release(w, held)
            return done

    def fail(
        self, held: Lease, at_pin: Pin, j: int, kind: str, message: str, now: float, certain: bool = False
    ) -> None:
        """Record that a part could not be computed or did not pass its checks.

        `certain`: it would fail in the same way each time, so it is not tried again until something changes.
        """
        with self.database.writing(now) as w:
            leases.check(w, held)
            before = w.on.execute(_FAILURE, {"t": held.table, "p": j}).one_or_none()
            # Tries count for one cause: after a newer one they begin again.
            newer = before and any(row.seq > before.pin for row in due_rows(w, held.table, j, j))
            attempts = 1 + (before.attempts if before and not newer else 0)
            again = kind != "check" and not certain and attempts < ATTEMPTS
            retry_at = now + BACKOFF[min(attempts, len(BACKOFF)) - 1] if again else None
            w.on.execute(FAILURE_DROP, {"t": held.table, "p": j})
            row = {"table": held.table, "part": j, "kind": kind, "pin": at_pin.seq, "attempts": attempts}
            w.on.execute(insert(failure), row | {"retry_at": retry_at, "at": w.at, "message": message})
            note(w, held.table, self.writer)

    # -- upkeep -----------------------------------------------------------------------------------

    def may_expire(self, table: str, now: float) -> int:
        """The highest floor for which nothing that is pending or not built yet loses a part it requires."""
        with self.database.reading() as r:
            graph, facts = self._catalog.graph(r), LedgerFacts(r)
            if facts.all_lost():
                return -FOREVER  # what is being made again may need anything
            return expirable(graph, facts, now, table) if table in graph.tables else -FOREVER

    def audit(self, repair: bool = False, now: float = 0.0) -> dict[str, tuple[Parts, Parts]]:
        """Compare `due` with the as-of formula over all parts; empty means they agree."""
        with self.database.reading() as r:
            different = audit(r, self._catalog.graph(r))
        if repair and different:
            with self.database.writing(now) as w:
                graph = self._catalog.graph(w)
                for name in different:
                    rebuild(w, graph, graph[name])
        return different

    # -- reading ----------------------------------------------------------------------------------

    def sequence_at(self, moment: float) -> int:
        """The last sequence recorded at or before a moment."""
        with self.database.reading() as r:
            return sequence_at(r, moment)

    def versions_at(self, seq: int) -> dict[str, Version]:
        """The content of every table as of one sequence."""
        with self.database.reading() as r:
            return versions_at(r, seq)
