"""Processes that ingest and compute at random, and may be killed at any moment.

Tables are folders with one file per version. A commit makes the next file by a hard link, which fails
if it is there already: a compare-and-swap, as in the real thing.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger
from partwise.ledger.write.commit import Entry
from partwise.ledger.write.leases import Busy, Fenced, Lease
from tests.simulation.graphs import random_model
from tests.simulation.world import Conflict, Model, Value, compute, content

LEASE = 1.0


@dataclass(frozen=True)
class Files:
    folder: Path

    def _path(self, table: str, generation: int, version: int) -> Path:
        return self.folder / "tables" / f"{table}.{generation}" / f"{version}.json"

    def at(self, table: str, generation: int, version: int | None) -> dict[int, Value]:
        if version is None:
            return {}
        raw = json.loads(self._path(table, generation, version).read_text())
        return {int(p): value for p, value in raw["parts"].items()}

    def after(self, table: str, generation: int, version: int | None) -> list[tuple[int, Entry | None]]:
        """Commits after a version, with what they say about themselves."""
        found: list[tuple[int, Entry | None]] = []
        number = 0 if version is None else version + 1
        while (path := self._path(table, generation, number)).exists():
            found.append((number, Entry.from_json(json.loads(path.read_text())["entry"])))
            number += 1
        return found

    def commit(self, entry: Entry, expected: int | None, new: dict[int, Value]) -> int:
        number = 0 if expected is None else expected + 1
        path = self._path(entry.table, entry.generation, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = self.at(entry.table, entry.generation, expected) | new
        draft = path.with_name(f"draft-{os.getpid()}-{time.monotonic_ns()}")
        draft.write_text(json.dumps({"parts": parts, "entry": entry.to_json()}))
        try:
            os.link(draft, path)
        except FileExistsError:
            raise Conflict(entry.table) from None
        finally:
            draft.unlink()
        return number

    def land(self, source: str, part: int, value: Value) -> None:
        target = self.folder / "landing" / f"{source}.{part}"
        draft = target.with_name(f"draft-{os.getpid()}")
        draft.write_text(json.dumps(value))
        draft.replace(target)

    def landed(self, source: str) -> dict[int, Value]:
        files = (self.folder / "landing").glob(f"{source}.*")
        return {int(f.suffix[1:]): json.loads(f.read_text()) for f in files}


@dataclass
class Worker:
    ledger: Ledger
    files: Files
    model: Model
    rng: Random
    late: float = 0.0  # how far its clock is ahead: the last one does not wait for leases of the dead

    @property
    def now(self) -> float:
        return time.time() + self.late

    def pause(self) -> None:
        """Something may happen here; now and then for longer than the lease."""
        if self.rng.random() < 0.3:
            time.sleep(self.rng.choice((0.0, 0.002, 0.01, LEASE * 1.1 if self.rng.random() < 0.05 else 0.0)))

    def under_lease(self, table: str) -> bool:
        """One step of a table; whether it did anything."""
        try:
            held = self.ledger.take(table, f"pid-{os.getpid()}", LEASE, self.now)
            self.pause()
            own = self.ledger.current(table)
            self.ledger.adopt(held, self.files.after(table, own.generation, own.version), self.now)
            self.pause()
            work = self.compute if self.model.graph[table].kind == "view" else self.ingest
            return work(held)
        except (Busy, Fenced, Conflict):
            return False

    def ingest(self, held: Lease) -> bool:
        own = self.ledger.current(held.table)
        there = self.files.at(held.table, own.generation, own.version)
        new = {p: v for p, v in self.files.landed(held.table).items() if p not in there or there[p] != v}
        if not new:
            self.ledger.release(held, self.now)
            return False
        parts = {p: content(v) for p, v in new.items()}
        entry = Entry(held.table, own.generation, self.model.graph[held.table].fingerprint, None, parts=parts)
        self.pause()
        version = self.files.commit(entry, own.version, new)
        self.pause()
        self.ledger.commit(held, entry, version, self.now)
        return True

    def compute(self, held: Lease) -> bool:
        name = held.table
        pin = self.ledger.pin(held, self.now, None, self.model.graph[name].fingerprint, self.rng.choice((1, 3, 50)))
        if pin is None:
            self.ledger.release(held, self.now)
            return False
        self.pause()
        tables = {t: self.files.at(t, v.generation, v.version) for t, v in pin.inputs.items()}
        tables[name] = self.files.at(name, pin.own.generation, pin.own.version)
        starts = {t: min(parts, default=None) for t, parts in tables.items()}  # nothing is removed in this world
        done: dict[int, Value] = {}
        walk = pin.walk()
        for j in walk:
            done[j] = tables[name][j] = compute(
                pin.table, self.model.salts[name], pin.start, j, starts, lambda t, p: tables[t][p]
            )
            if not pin.same(j, content(done[j])):
                walk.changed(j)
        entry = pin.entry({j: content(v) for j, v in done.items()})
        changed = {j: v for j, v in done.items() if not pin.same(j, content(v))}
        version = self.files.commit(entry, pin.own.version, changed) if changed else None
        self.pause()
        self.ledger.commit(held, entry, version, self.now)
        return True

    def anything(self) -> None:
        sources = [t.name for t in self.model.graph.tables.values() if t.kind != "view"]
        action = self.rng.random()
        if action < 0.3:
            source = self.rng.choice(sources)
            part = 0 if self.model.graph[source].kind == "dimension" else self.rng.randrange(3, 15)
            self.files.land(source, part, self.rng.choice((None, 0, 1, 2)))
        elif action < 0.5:
            self.under_lease(self.rng.choice(sources))
        else:
            steps = self.ledger.plan(self.now).steps
            self.under_lease(self.rng.choice(steps).table if steps else self.rng.choice(sources))

    def drain(self) -> int:
        """Go on until nothing is left to do; the number of rounds."""
        for rounds in range(300):
            self.late += LEASE + 1
            busy = [n for n in self.model.graph.order if self.under_lease(n)]
            if not busy and not self.ledger.plan(self.now).steps:
                return rounds
        raise AssertionError("it does not come to an end")


def worker(url: str, folder: Path, graph: int, seed: int, late: float = 0.0) -> Worker:
    return Worker(
        open_ledger(url, time.time()), Files(folder), random_model(Random(graph), views=4), Random(seed), late
    )


def work(url: str, folder: Path, graph: int, seed: int, seconds: float) -> int:
    me, end, done = worker(url, folder, graph, seed), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        me.anything()
        done += 1
    return done
