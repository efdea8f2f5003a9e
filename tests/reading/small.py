"""A workspace with real tables, a real ledger and real steps, but a few lines of Python in place of Spark.

Everything that decides what readers see is the product's own: leases, pins, staged files, commits of data and of the
ledger. Only the contents of a part are computed here, from what the pin says: `recomputed` is the oracle.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from partwise import storage
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.pin import Version
from partwise.ledger.write.commit import EMPTY, Content, Entry
from partwise.ledger.write.lease_holding import holding
from partwise.ledger.write.leases import Lease
from partwise.parts import Parts, parse_part
from partwise.storage import schema as schemas
from partwise.storage.paths import table_path
from partwise.workspace import open_workspace

#: The first part of the source.
FIRST = parse_part("2026-10-03T10:00", 60)
SCHEMA = schemas.of({"k": "string", "x": "bigint"})
#: What a part holds.
Rows = dict[str, int]

DEFINITIONS = """
source: s
part: 1 minute
time: at
columns: {{at: timestamp, k: string, x: bigint}}
files: landing/s/*.csv
---
view: a
part: 1 minute
update: SELECT k, 2 * SUM(x) AS x FROM s[j] GROUP BY k
---
view: b
part: 1 minute
update: SELECT k, 3 * SUM(x) AS x FROM s[j] GROUP BY k
---
view: c
part: 1 minute
patience: {patience}
update: SELECT a.k, 1000000 * a.x + b.x AS x FROM a[j] a JOIN b[j] b ON b.k = a.k
---
view: w
part: 1 minute
update: SELECT k, SUM(x) AS x FROM s[j-2..j] GROUP BY k
"""


def computed(view: str, j: int, read: Callable[[str, int], Rows]) -> Rows:
    """A part of a view from parts of what it reads."""
    if view == "w":
        found: Rows = {}
        for p in range(j - 2, j + 1):
            for k, x in read("s", p).items():
                found[k] = found.get(k, 0) + x
        return found
    if view == "c":
        b = read("b", j)
        return {k: 1_000_000 * x + b[k] for k, x in read("a", j).items() if k in b}
    factor = {"a": 2, "b": 3}[view]
    return {k: factor * x for k, x in read("s", j).items()}


def recomputed(view: str, j: int, source: Mapping[int, Rows]) -> Rows:
    """The same from the source alone."""
    if view == "s":
        return source.get(j, {})
    return computed(view, j, lambda table, p: recomputed(table, p, source))


class Small:
    """One process at work on the workspace. `ahead`: how far its clock is ahead of others."""

    def __init__(self, folder: Path, ledger: str | None = None, patience: str = "1 hour", ahead: float = 0.0) -> None:
        self.folder, self.ahead = folder, ahead
        if not (folder / "view_defs").exists():
            (folder / "view_defs").mkdir(parents=True)
            (folder / "view_defs/all.yaml").write_text(DEFINITIONS.format(patience=patience))
            (folder / "partwise.yaml").write_text(f"ledger: {ledger}\n" if ledger else "")
        self.workspace = open_workspace(str(folder), {})
        self.warehouse = self.workspace.warehouse
        self.ledger: Ledger = self.workspace.open_ledger(self.now())
        self.workspace.take_over(self.ledger, self.workspace.load(), self.now())
        self.between: Callable[[str], object] = lambda view: (
            None
        )  # what happens between the pin and the commit of a step

    def now(self) -> float:
        return time.time() + self.ahead

    def close(self) -> None:
        self.ledger.database.close()

    def path(self, name: str, at: Version) -> str:
        return table_path(self.warehouse, name, at.generation)

    # -- what is in a table ---------------------------------------------------------------------------

    def part(self, name: str, at: Version, p: int) -> Rows:
        if at.version is None:
            return {}
        handle = storage.open_at(self.path(name, at), at.version)
        found: Rows = {}
        for uri in handle.uris(handle.files_of(Parts.single(p))):
            for row in pq.read_table(uri, columns=["part", "k", "x"]).to_pylist():
                if row["part"] == p:
                    found[row["k"]] = row["x"]
        return found

    # -- writing --------------------------------------------------------------------------------------

    def ingest(self, parts: Mapping[int, Rows]) -> None:
        """From now on these parts of the source hold exactly this."""
        with holding(self.ledger, self.warehouse, "s", self.now) as held:
            at = self.ledger.current("s")
            contents = {p: _content(rows) for p, rows in parts.items()}
            entry = Entry("s", at.generation, self.ledger.graph()["s"].fingerprint, None, None, contents, "arrived")
            self._publish(held, at, entry, parts)

    def step(self, name: str) -> Parts:
        """One step of a view: what it changed."""
        with holding(self.ledger, self.warehouse, name, self.now) as held:
            pin = self.ledger.pin(held, self.now())
            if pin is None:
                return Parts()
            made = {j: computed(name, j, lambda t, p: self.part(t, pin.inputs[t], p)) for j in pin.walk()}
            self.between(name)
            entry = pin.entry({j: _content(rows) for j, rows in made.items()})
            changed = {j: rows for j, rows in made.items() if not pin.same(j, entry.parts[j])}
            self._publish(held, pin.own, entry, changed)
            return Parts.single(*changed)

    def run(self, *only: str) -> None:
        """Steps until nothing is left to do."""
        while steps := [s.table for s in self.ledger.plan(self.now()).steps if not only or s.table in only]:
            for name in dict.fromkeys(steps):
                self.step(name)

    def _publish(self, held: Lease, at: Version, entry: Entry, parts: Mapping[int, Rows]) -> None:
        path = self.path(entry.table, at)
        if at.version is None:
            storage.create(path, SCHEMA)
            self.ledger.adopt(held, [(0, None)], self.now())
        if not parts:
            self.ledger.commit(held, entry, None, self.now(), keep=True)
            return
        handle = storage.open_at(path, self.ledger.current(entry.table).version)
        change = storage.rewrite(handle, Parts.single(*parts))
        rows = [(p, k, x) for p, content in parts.items() for k, x in content.items()]
        for uri in handle.uris(change.mixed):
            kept = pq.read_table(uri, columns=["part", "k", "x"]).to_pylist()
            rows += [(r["part"], r["k"], r["x"]) for r in kept if r["part"] in change.surviving]
        name = uuid.uuid4().hex[:12]
        folder = Path(storage.begin(handle, name))
        if rows:
            folder.mkdir()
            pq.write_table(_arrow(rows), folder / "rows.parquet")
        stored = {"kind": "step", "entry": entry.to_json()}
        version = storage.commit(handle, storage.staged(path, name), change.removed, stored)
        self.ledger.commit(held, entry, version, self.now(), keep=True)
        storage.finish(path, name)


def _arrow(rows: list[tuple[int, str, int]]) -> pa.Table:
    stamps = pa.array([p * 60_000_000 for p, _, _ in rows], pa.timestamp("us", "UTC"))
    columns = [pa.array([r[0] for r in rows]), stamps, pa.array([r[1] for r in rows]), pa.array([r[2] for r in rows])]
    return pa.table(columns, names=["part", "part_timestamp", "k", "x"])


def _content(rows: Rows) -> Content:
    if not rows:
        return EMPTY
    return Content(len(rows), f"{len(rows)}:{hashlib.md5(repr(sorted(rows.items())).encode()).hexdigest()}")
