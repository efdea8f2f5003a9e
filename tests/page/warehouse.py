"""A ledger that has been told what would have been loaded and computed. What follows from it is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from partwise.checks.results import Checked, CheckResult
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import in_memory, open_ledger
from partwise.ledger.read.snapshot import Snapshot, as_defined
from partwise.ledger.records import checks
from partwise.ledger.records.writers import Writer
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Bound, Reference
from partwise.tables import DIMENSION_PART, Graph, Input, Table

#: 2026-10-03T10:00 UTC, and its minute.
TEN = 1_791_021_600
MINUTE = TEN // 60
SAME = Reference.same()


def small() -> Graph:
    """A source by the minute and a dimension; views by the minute, over windows, by the hour, manually, with a helper."""
    minutes, nodes = Input("measurements", SAME), Input("nodes", None)
    hour = Input("measurements", Reference(Bound(60, 0, 1), Bound(60, 59, 1)))
    window = Input("worst_helper", Reference.window(-9, 0))
    return Graph.of(
        [
            Table("measurements", "source", 60, "f"),
            Table("nodes", "dimension", 1, "f"),
            Table("by_minute", "view", 60, "f", (minutes, nodes), (minutes, nodes)),
            Table("worst_helper", "view", 60, "f", (minutes,), (minutes,), helper_of="worst"),
            Table("worst", "view", 60, "f", (window,), (window,)),
            Table("by_hour", "view", 3600, "f", (hour,), (hour,)),
            Table("report", "view", 60, "f", (Input("by_minute", SAME),), (Input("by_minute", SAME),), repair="manual"),
            Table("final", "view", 60, "f", (Input("by_minute", SAME), minutes), (Input("by_minute", SAME), minutes)),
            Table("orders", "source", 86400, "f"),
            Table("revenue", "view", 86400, "f", (Input("orders", SAME),), (Input("orders", SAME),)),
        ]
    )


def chain(views: int) -> Graph:
    """So many views over four sources, in chains of four."""
    tables = [Table(f"source_{n}", "source", 60, "f") for n in range(4)]
    for n in range(views):
        above = Input(f"source_{n % 4}" if n < 4 or n % 16 < 4 else f"view_{n - 4:03}", SAME)
        tables.append(Table(f"view_{n:03}", "view", 60, "f", (above,), (above,)))
    return Graph.of(tables)


@dataclass
class Warehouse:
    ledger: Ledger
    now: float = TEN + 2 * 3600.0

    @classmethod
    def of(cls, graph: Graph, url: str | None = None) -> Warehouse:
        made = cls(in_memory() if url is None else open_ledger(url, 0.0))
        made.ledger.define(graph, made.now - 30 * 86400)  # the time of a ledger only grows
        return made

    def deliver(self, source: str, rows: Mapping[int, int], opened: Mapping[int, int] | None = None) -> None:
        """Let parts of a source hold so many rows; `opened` are not closed yet."""
        held = self.ledger.take(source, "ingest", 60, self.now)
        at = self.ledger.current(source)
        entry = Entry(
            source,
            at.generation,
            self.ledger.graph()[source].fingerprint,
            None,
            parts={p: Content(n, f"{n}") for p, n in rows.items()},
            reason="loaded",
            arrived=dict(rows),
            open={p: Content(n, f"{n}") for p, n in (opened or {}).items()},
        )
        self.ledger.commit(held, entry, 0 if at.version is None else at.version + 1, self.now)

    def written_by(self, dag: str, run: str, task: str | None = None, map_index: int = -1) -> None:
        """From now on a task of Airflow writes."""
        self.ledger.writer = Writer(dag, run, task or dag, map_index)

    def load(self, dimension: str, rows: int = 3) -> None:
        self.deliver(dimension, {DIMENSION_PART: rows})

    def build(self, *names: str, rows: Callable[[str, int], int] = lambda name, p: 3, limit: int = 1000) -> None:
        """Compute what is ready (of these tables), until nothing is. The content follows from the sequence read."""
        while True:
            ready = dict.fromkeys(s.table for s in self.ledger.plan(self.now).steps if not names or s.table in names)
            if not ready:
                return
            for name in ready:
                held = self.ledger.take(name, "a step", 60, self.now)
                pinned = self.ledger.pin(held, self.now, limit=limit)
                if pinned is None:
                    self.ledger.release(held, self.now)
                    continue
                contents = {p: Content(rows(name, p), f"{rows(name, p)}.{pinned.seq}") for p in pinned.due}
                version = (-1 if pinned.own.version is None else pinned.own.version) + 1
                self.ledger.commit(held, pinned.entry(contents), version, self.now, seconds=0.5 + len(contents) / 100)

    def fail(self, name: str, p: int, message: str = "2 of 3 rows have no src", kind: str = "check") -> None:
        held = self.ledger.take(name, "a step", 60, self.now)
        pinned = self.ledger.pin(held, self.now)
        assert pinned is not None
        self.ledger.fail(held, pinned, p, kind, message, self.now)
        if kind == "check":
            found = CheckResult(
                *("expect_column_values_to_not_be_null", {"column": "src"}, "error", False, message),
                rows=('{"loss": 7}', '{"loss": 8}'),
            )
            with self.ledger.database.writing(self.now) as w:
                checks.keep(w, name, "mark", [Checked(p, 3, "3:x", (found,))])
        self.ledger.release(held, self.now)

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        return as_defined(self.ledger, self.ledger.graph(), self.now)


def every_state(url: str | None = None) -> Warehouse:
    """Two hours of minutes in which each state of a part occurs. `now` is 12:00."""
    made = Warehouse.of(small(), url)
    minutes = range(MINUTE, MINUTE + 115)
    made.now = TEN + 6900.0 - 3 * 86400  # what was built long ago bears no mark
    made.load("nodes")
    made.deliver("measurements", {p: 3 for p in minutes if p - MINUTE not in (60, 61)}, {MINUTE + 115: 2})
    day = TEN // 86400
    made.deliver("orders", dict.fromkeys(range(day - 20, day), 5))
    made.build(rows=lambda name, p: 0 if name == "worst" and p % 7 == 0 else 3)
    made.now = TEN + 7000.0
    made.deliver("measurements", dict.fromkeys(range(MINUTE + 20, MINUTE + 25), 4))
    made.build("by_minute", "worst_helper", "worst", "by_hour", "final")
    made.now = TEN + 7100.0
    made.deliver("measurements", dict.fromkeys(range(MINUTE + 40, MINUTE + 46), 5))
    made.build("worst_helper")
    made.fail("by_minute", MINUTE + 42)
    made.ledger.take("worst", "a step", 600, made.now)
    made.now = TEN + 7200.0
    return made
