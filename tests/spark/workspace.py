"""A small workspace on real Spark and Delta: definitions as text, rows straight into source tables."""

from __future__ import annotations

import io
import math
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from partwise import storage
from partwise.choose.covering import with_covers
from partwise.choose.settled import settled as settled_as
from partwise.choose.settled import too_late_to_share
from partwise.compile.load import load
from partwise.compile.program import Program
from partwise.definitions import Dimension, Source
from partwise.ledger.catalog import settled
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger
from partwise.ledger.runs import existing
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts
from partwise.storage import schema as schemas
from partwise.storage.files import folder
from partwise.storage.staging import write
from partwise.workspace import open_workspace
from spark_jobs.engine import Engine
from spark_jobs.ingest.difference import look_up
from spark_jobs.run import run_all
from spark_jobs.step.run_step import Report

Row = Mapping[str, Any]


class Workspace:
    """`at`: the folder. Opened again (by another process, too) it goes on where it was."""

    def __init__(self, spark: SparkSession, at: Path, text: str | None = None, **engine: Any) -> None:
        self.spark, self.at = spark, at
        # How many steps there are must not depend on how slow the machine is.
        self.given = {"step_seconds": math.inf, **engine}
        at.mkdir(exist_ok=True)
        # Tables are beside it, unless its settings put them into an object store.
        told = (at / "partwise.yaml").exists()
        self.warehouse = open_workspace(str(at), {}).warehouse if told else str(at / "warehouse")
        self.ledger: Ledger = open_ledger(f"sqlite:///{at / 'ledger.db'}", 0.0)
        if text is not None:
            self.define(text)
        else:
            self.load()

    def define(self, text: str) -> None:
        (self.at / "view_defs").mkdir(exist_ok=True)
        (self.at / "view_defs" / "all.yaml").write_text(text)
        self.load()

    def load(self) -> None:
        written = settled_as(load(str(self.at / "view_defs")), self.ledger.strategies())
        with self.ledger.database.reading() as r:
            graph = self.ledger.graph_at(r)
            written, covers = with_covers(graph, written)
            alone = too_late_to_share(r, graph, written)
        self.definitions: Program = written.with_own(written.owning | alone)
        assert self.definitions.ok, [str(p) for p in self.definitions.problems]
        self.ledger.define(self.definitions.graph(), time.time(), covers=covers)
        self.engine = Engine(self.spark, self.ledger, self.definitions, self.warehouse, **self.given)

    def with_engine(self, **given: Any) -> Engine:
        return Engine(self.spark, self.ledger, self.definitions, self.warehouse, **{**self.given, **given})

    # -- arrivals: written without Spark, which is quicker and shares less with what is tested ----------

    def replace(self, name: str, parts: Mapping[int, Sequence[Row]]) -> Parts:
        """These parts of a source hold exactly these rows from now on. Returns what changed."""
        source = self.definitions.usable[name]
        assert isinstance(source, Source)
        stamp = {p: datetime.fromtimestamp(p * source.part, UTC) for p in parts}
        rows = [{**row, "part": p, "part_timestamp": stamp[p]} for p, members in parts.items() for row in members]
        contents = {p: _content(members) for p, members in parts.items()}
        return self._write(name, rows, contents, Parts.single(*parts), schemas.of(dict(source.columns)))

    def deliver(self, name: str, parts: Mapping[int, Sequence[Row]]) -> Parts:
        """More rows for these parts."""
        before = self.rows(name)
        return self.replace(name, {p: [*before.get(p, []), *rows] for p, rows in parts.items()})

    def dimension(self, name: str, rows: Sequence[Row]) -> Parts:
        given = self.definitions.usable[name]
        assert isinstance(given, Dimension)
        return self._write(name, rows, {0: _content(rows)}, None, schemas.of(dict(given.columns), parts=False))

    def _write(
        self, name: str, rows: Sequence[Row], contents: dict[int, Content], parts: Parts | None, schema: str
    ) -> Parts:
        engine = self.engine
        with engine.leased(name) as held:
            generation = self.ledger.current(name).generation
            path = engine.path(name, generation)
            if not storage.exists(path):
                storage.create(path, schema)
                self.ledger.adopt(held, [(0, None)], engine.now())
            handle = storage.open_at(path)
            step = uuid.uuid4().hex[:12]
            kinds = handle.table.to_pyarrow_table().schema  # as stored, so that every file has the same types
            table = pa.Table.from_pylist(list(rows), schema=kinds)
            removed = handle.files
            if parts is not None:
                change = storage.rewrite(handle, parts)
                removed = change.removed
                for file in change.mixed:
                    content = folder(path).read(file.path)
                    kept = pq.read_table(io.BytesIO(content or b""), schema=kinds)
                    table = pa.concat_tables([table, kept.filter(pc.invert(pc.is_in(kept["part"], pa.array(parts))))])
            storage.begin(handle, step)
            if table.num_rows:
                made = io.BytesIO()
                pq.write_table(table, made)
                write(handle, step, "rows.parquet", made.getvalue())
            files = storage.staged(path, step)
            mark = self.definitions.graph()[name].fingerprint
            entry = Entry(name, generation, mark, None, None, contents, "arrival")
            if parts is None and handle.version:
                entry = replace(entry, met=look_up(engine, name, handle, files))
            version = storage.commit(handle, files, removed, {"kind": "ingest", "entry": entry.to_json()})
            done = self.ledger.commit(held, entry, version, engine.now(), keep=True)
            storage.finish(path, step)
            return done.changed

    # -- work and looking ---------------------------------------------------------------------------

    def run(self, **given: Any) -> list[Report]:
        reports = run_all(self.with_engine(**given) if given else self.engine)
        failed = {(r.table, p): why for r in reports for p, why in r.failed.items()}
        assert not failed, failed
        return reports

    def parts(self, name: str) -> Parts:
        with self.ledger.database.reading() as r:
            return existing(r, name)

    def start(self, name: str) -> int | None:
        with self.ledger.database.reading() as r:
            return settled(r, name).start

    def rows(self, name: str) -> dict[int, list[dict[str, Any]]]:
        """Every existing part with its rows, read from Delta by pyarrow at the ledger's version: no Spark."""
        current = self.ledger.current(name)
        found: dict[int, list[dict[str, Any]]] = {p: [] for p in self.parts(name)}
        if current.version is None:
            return found
        table = storage.open_at(self.engine.path(name, current.generation), current.version).table
        for row in table.to_pyarrow_table().to_pylist():
            part = row.pop("part", max(found, default=0))  # a rolling table holds one part and does not say which
            row.pop("part_timestamp", None)
            assert part in found, f"{name} has rows of {part}, which does not exist"
            found[part].append(row)
        return found


def same_rows(a: Iterable[Row], b: Iterable[Row]) -> bool:
    """Whether these are the same rows, as often; floats to nine digits."""
    return Counter(map(_key, a)) == Counter(map(_key, b))


def _key(row: Row) -> tuple[Any, ...]:
    return tuple((name, _rounded(value)) for name, value in sorted(row.items()))


def _rounded(value: Any) -> Any:
    if not isinstance(value, float) or not math.isfinite(value):
        return repr(value) if isinstance(value, float) else value
    return float(f"{value:.9g}") + 0.0


def assert_same(got: Mapping[int, Sequence[Row]], wanted: Mapping[int, Sequence[Row]], what: str) -> None:
    assert sorted(got) == sorted(wanted), f"{what}: parts {sorted(got)}, expected {sorted(wanted)}"
    for part in wanted:
        assert same_rows(got[part], wanted[part]), f"{what}[{part}]: {got[part]}, expected {wanted[part]}"


def _content(rows: Sequence[Row]) -> Content:
    """The digest of a source part can be anything that tells contents apart."""
    text = str(sorted(repr(sorted(row.items())) for row in rows))
    return Content(len(rows), f"{len(rows)}:{uuid.uuid5(uuid.NAMESPACE_OID, text).hex}")
