"""Real tables and a real ledger without an engine: contents are made here, and written by pyarrow."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from partwise import storage
from partwise.ledger.open import open_ledger
from partwise.ledger.write.commit import Content, Entry
from partwise.ledger.write.lease_holding import holding
from partwise.parts import Parts, Reference
from partwise.storage import schema as schemas
from partwise.storage.paths import table_path
from partwise.tables import Graph, Input, Table

SCHEMA = schemas.of({"x": "bigint", "s": "string"})


def view(name: str, *inputs: tuple[str, Reference], helper_of: str | None = None) -> Table:
    found = tuple(Input(table, reference) for table, reference in inputs)
    return Table(name, "view", 60, f"{name}-1", found, found, helper_of=helper_of)


class Store:
    def __init__(self, at: Path, *tables: Table) -> None:
        self.warehouse = str(at / "warehouse")
        self.time = 1_000_000.0
        self.ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", self.time)
        self.ledger.define(Graph.of(tables), self.time)

    def now(self) -> float:
        return self.time

    def path(self, name: str) -> str:
        return table_path(self.warehouse, name, self.ledger.current(name).generation)

    def put(self, name: str, parts: Mapping[int, list[int]]) -> int:
        """These parts hold exactly these values from now on: one commit, one file."""
        ledger = self.ledger
        with holding(ledger, self.warehouse, name, self.now) as held:
            path = self.path(name)
            if not storage.exists(path):
                storage.create(path, SCHEMA)
                ledger.adopt(held, [(0, None)], self.time)
            handle = storage.open_at(path)
            change = storage.rewrite(handle, Parts.single(*parts))
            rows = [(p, x) for p, xs in parts.items() for x in xs]
            for uri in handle.uris(change.mixed):
                kept = pq.read_table(uri, columns=["part", "x"]).to_pylist()
                rows += [(r["part"], r["x"]) for r in kept if r["part"] in change.surviving]
            step = uuid.uuid4().hex[:12]
            folder = Path(storage.begin(handle, step))
            if rows:
                folder.mkdir()
                stamps = pa.array([p * 60_000_000 for p, _ in rows], pa.timestamp("us", "UTC"))
                columns = [pa.array([p for p, _ in rows]), stamps, pa.array([x for _, x in rows])]
                columns.append(pa.array([f"row {x}" for _, x in rows]))
                names = ["part", "part_timestamp", "x", "s"]
                pq.write_table(pa.table(columns, names=names), folder / "rows.parquet")
            table = ledger.graph()[name]
            with ledger.database.reading() as r:
                seq = r.seq
            pin, start = (None, None) if table.kind == "source" else (seq, min(parts))
            contents = {p: Content(len(xs), f"{len(xs)}:{sorted(xs)}") for p, xs in parts.items()}
            entry = Entry(name, held_generation(self, name), table.fingerprint, pin, start, contents, "test")
            stored = {"kind": "step", "entry": entry.to_json()}
            version = storage.commit(handle, storage.staged(path, step), change.removed, stored)
            ledger.commit(held, entry, version, self.time, keep=True)
            storage.finish(path, step)
            return version

    def rows(self, name: str, version: int | None = None) -> list[tuple[int, int]]:
        found = storage.open_at(self.path(name), version).table.to_pyarrow_table(columns=["part", "x", "s"]).to_pylist()
        assert all(row["s"] == f"row {row['x']}" for row in found)
        return sorted((row["part"], row["x"]) for row in found)

    def on_disk(self, name: str) -> set[str]:
        root = Path(self.path(name))
        return {str(file.relative_to(root)) for file in root.glob("s-*/*.parquet")}


def held_generation(store: Store, name: str) -> int:
    return store.ledger.current(name).generation
