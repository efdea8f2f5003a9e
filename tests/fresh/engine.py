"""A workspace with real tables, a real ledger and real steps, and DuckDB in place of Spark.

The generated SQL itself runs: references are replaced by the pinned parts, sqlglot writes it for DuckDB, and the hash is
a function of the product that a test compares with Spark's.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import transpile

from partwise import storage
from partwise.compile.program import Runnable
from partwise.compile.sample.hashing import _SPARK, _xxhash64
from partwise.fresh.probe import compare_estimates
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.pin import Pin, Version
from partwise.ledger.write.commit import EMPTY, Content, Entry
from partwise.ledger.write.lease_holding import holding
from partwise.parts import Parts
from partwise.sql.references import splice
from partwise.storage import schema as schemas
from partwise.storage.paths import table_path
from partwise.storage.query import PinnedTable, connect
from partwise.workspace import open_workspace

_KINDS = {"VARCHAR": "string", "DOUBLE": "double", "BIGINT": "bigint", "BOOLEAN": "boolean", "INTEGER": "int"}


def xxhash64(*values: str | None) -> int:
    found = _SPARK
    for value in values:
        if value is not None:
            found = _xxhash64(value.encode(), found)
    return found - (1 << 64) if found >> 63 else found


class Engine:
    def __init__(self, folder: Path, definitions: str) -> None:
        self.folder = folder
        (folder / "view_defs").mkdir(parents=True, exist_ok=True)
        (folder / "partwise.yaml").touch()
        self.workspace = open_workspace(str(folder), {})
        self.warehouse = self.workspace.warehouse
        self.ledger: Ledger = self.workspace.open_ledger(time.time())
        self.define(definitions)

    def define(self, definitions: str) -> None:
        (self.folder / "view_defs/all.yaml").write_text(definitions)
        self.program = self.workspace.load()
        assert self.program.ok, self.program.problems
        self.workspace.take_over(self.ledger, self.program, time.time())

    def close(self) -> None:
        self.ledger.database.close()

    def load(self, name: str, columns: dict[str, str], parts: dict[int, list[tuple[Any, ...]]]) -> None:
        """From now on these parts of a source hold exactly these rows."""
        kinds = {"string": pa.string(), "double": pa.float64(), "bigint": pa.int64()}
        schema = pa.schema([(c, kinds[k]) for c, k in columns.items()])
        made = {
            p: pa.Table.from_arrays(
                [pa.array(list(v), f.type) for v, f in zip(zip(*rows, strict=True), schema, strict=True)], schema=schema
            )
            for p, rows in parts.items()
        }
        with holding(self.ledger, self.warehouse, name, time.time) as held:
            at = self.ledger.current(name)
            contents = {p: _content(rows) for p, rows in made.items()}
            entry = Entry(name, at.generation, self.ledger.graph()[name].fingerprint, None, None, contents, "arrived")
            self._publish(held, name, at, entry, made, columns)

    def run(self, *only: str) -> list[str]:
        """Everything that is ready, until nothing is."""
        done = []
        while steps := [s.table for s in self.ledger.plan(time.time()).steps if not only or s.table in only]:
            done.append(steps[0])
            assert len(done) < 100, f"it does not come to an end: {done[-5:]}"
            self._step(steps[0])
        return done

    def refresh(self) -> None:
        self.ledger.refresh_now(None, time.time())
        self.run()

    def _step(self, name: str) -> None:
        table = self.program.usable[name]
        assert isinstance(table, Runnable)
        with holding(self.ledger, self.warehouse, name, time.time) as held:
            pin = self.ledger.pin(held, time.time())
            if pin is None:
                return
            made: dict[int, pa.Table] = {}
            for j in pin.walk():
                made[j] = self._rows(table, pin, j, made)
            kinds = {f.name: _KINDS.get(k, k.lower()) for f, k in zip(made[j].schema, self._types, strict=True)}
            entry = pin.entry({j: _content(rows) for j, rows in made.items()})
            self._publish(held, name, pin.own, entry, made, kinds)
        view = self.program.views.get(name)
        if view is not None and view.sampled is not None:
            parts = Parts.single(*made)
            compare_estimates(self.ledger, self.warehouse, view, view.sampled, parts, pin.seq, time.time())

    def _rows(self, table: Runnable, pin: Pin, j: int, made: dict[int, pa.Table]) -> pa.Table:
        begins = j == pin.start and table.initialize is not None
        statement = table.initialize if begins and table.initialize is not None else table.update
        pins = {n: PinnedTable(self._path(n, at), at.version) for n, at in pin.inputs.items() if at.version is not None}
        with connect(" ".join(pins), pins) as on:
            on.create_function("hash_of_texts", lambda a: xxhash64(*a), ["VARCHAR[]"], "BIGINT")
            on.execute("CREATE MACRO try_sum(x) AS SUM(x)")
            for p, rows in made.items():
                on.register(f"own_{p}", rows)
            if pin.own.version is not None:
                own = PinnedTable(self._path(table.name, pin.own), pin.own.version)
                with connect(table.name, {table.name: own}) as other:
                    before = other.execute(f'SELECT * FROM "{table.name}" WHERE part = {j - 1}').to_arrow_table()
                if j - 1 not in made and before.num_rows:
                    on.register(f"own_{j - 1}", before.drop_columns(["part", "part_timestamp"]))

            def rows_of(found: Any) -> str:
                if found.table.lower() == table.name.lower():
                    return f"own_{j - 1}"
                spelled = next(n for n in pin.inputs if n.lower() == found.table.lower())
                lo, hi = found.reference.requires(j)
                name = f"in_{spelled}_{found.start}"
                hidden = f"SELECT * EXCLUDE (part, part_timestamp) FROM {spelled} WHERE part BETWEEN {lo} AND {hi}"
                on.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {hidden}")
                return name

            text = splice(statement.text, rows_of, found=statement.found)
            (written,) = transpile(text, read="spark", write="duckdb")
            hashed = hashes(written)
            found = on.execute(hashed)
            self._types = [str(d[1]) for d in on.execute(f"DESCRIBE {hashed}").fetchall()]
            found = on.execute(hashed)
            return found.to_arrow_table()

    def _path(self, name: str, at: Version) -> str:
        return table_path(self.warehouse, name, at.generation)

    def _publish(
        self, held: Any, name: str, at: Version, entry: Entry, parts: dict[int, pa.Table], kinds: dict[str, str]
    ) -> None:
        path = self._path(name, at)
        if at.version is None:
            storage.create(path, schemas.of(kinds))
            self.ledger.adopt(held, [(0, None)], time.time())
        handle = storage.open_at(path, self.ledger.current(name).version)
        change = storage.rewrite(handle, Parts.single(*parts))
        assert not change.mixed  # a file a part
        step = uuid.uuid4().hex[:12]
        folder = Path(storage.begin(handle, step))
        folder.mkdir()
        length = self.ledger.graph()[name].length
        for p, rows in parts.items():
            if rows.num_rows:
                stamp = pa.array([p * length * 1_000_000] * rows.num_rows, pa.timestamp("us", tz="UTC"))
                number = pa.array([p] * rows.num_rows, pa.int64())
                whole = rows.add_column(0, "part_timestamp", stamp).add_column(0, "part", number)
                pq.write_table(whole, folder / f"part-{p}.parquet")
        stored = {"kind": "step", "entry": entry.to_json()}
        version = storage.commit(handle, storage.staged(path, step), change.removed, stored)
        self.ledger.commit(held, entry, version, time.time(), keep=True)
        storage.finish(path, step)


def _content(rows: pa.Table) -> Content:
    if not rows.num_rows:
        return EMPTY
    text = str(sorted(map(str, rows.to_pylist())))
    return Content(rows.num_rows, f"{rows.num_rows}:{hashlib.sha256(text.encode()).hexdigest()[:32]}")


def hashes(text: str) -> str:
    """XXHASH64(a, b) as a function of one list."""
    out, at = [], 0
    while (found := text.upper().find("XXHASH64(", at)) >= 0:
        start = found + len("XXHASH64(")
        depth, end = 1, start
        quoted = False
        while depth:
            c = text[end]
            quoted ^= c == "'"
            depth += 0 if quoted else (c == "(") - (c == ")")
            end += 1
        out.append(text[at:found] + "hash_of_texts([" + text[start : end - 1] + "])")
        at = end
    return "".join([*out, text[at:]])
