"""Runs unit tests of views: a warehouse and a ledger of their own, real steps, then a comparison of rows."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

from partwise import storage
from partwise.compile.program import Program
from partwise.definitions import Dimension, Source
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger
from partwise.ledger.runs import existing
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Parts, part_text
from partwise.storage import schema as schemas
from partwise.tables import DIMENSION_PART
from partwise.unit import Case, difference
from spark_jobs.engine import Engine
from spark_jobs.run import run_all


@dataclass(frozen=True)
class TestOutcome:
    """How a test ended: `differences` are lines by part; none of them means that it passed."""

    case: Case
    differences: Mapping[str, Sequence[str]]

    @property
    def ok(self) -> bool:
        return not self.differences


def run_case(spark: SparkSession, definitions: Program, case: Case) -> TestOutcome:
    """Deliver, run, deliver late rows, run again, compare."""
    with TemporaryDirectory(prefix="partwise-test-") as folder:
        ledger = open_ledger(f"sqlite:///{folder}/ledger.db", 0.0)
        try:
            ledger.define(definitions.graph(), 0.0)
            # A handful of rows says nothing about how a window is best kept.
            engine = Engine(spark, ledger, definitions, str(Path(folder) / "warehouse"), settling=False)
            return _run(engine, ledger, case)
        finally:
            ledger.database.close()


def _run(engine: Engine, ledger: Ledger, case: Case) -> TestOutcome:
    graph = engine.definitions.graph()
    only = graph.upstream([case.view])
    failed: dict[tuple[str, int], str] = {}
    held: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for delivery in (case.given, case.late):
        if not delivery:
            continue
        for name, parts in delivery.items():
            mine = held.setdefault(name, {})
            for p, rows in parts.items():
                late = [dict(row) for row in rows]
                whole = isinstance(engine.definition(name), Dimension)
                mine[p] = late if whole else [*mine.get(p, []), *late]
            _write(engine, name, {p: mine[p] for p in parts})
        for report in run_all(engine, only):
            for p in report.parts:
                failed.pop((report.table, p), None)
            failed |= {(report.table, p): message for p, message in report.failed.items()}
    length = graph[case.view].length
    found: dict[str, Sequence[str]] = {}
    for (table, p), message in failed.items():
        if table != case.view or p not in case.held:
            found[f"{table}[{part_text(p, graph[table].length)}]"] = [message]
    for p in case.held:
        if (case.view, p) not in failed:
            found[f"{case.view}[{part_text(p, length)}]"] = ["it should have failed its checks, but it did not"]
    there = _rows(engine, case.view)
    for p, expected in case.expect.items():
        name = f"{case.view}[{part_text(p, length)}]"
        if p not in there:
            built = ", ".join(part_text(q, length) for q in sorted(there)) or "none"
            found.setdefault(name, [f"it was not built; there are {built}"])
        elif lines := difference(expected, there[p]):
            found[name] = lines
    return TestOutcome(case, found)


def _write(engine: Engine, name: str, parts: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
    """These parts hold exactly these rows from now on. Written without Spark, which is quicker."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    table = engine.definition(name)
    assert isinstance(table, Source | Dimension)
    dimension = isinstance(table, Dimension)
    with engine.leased(name) as held:
        path = engine.path(name, engine.ledger.current(name).generation)
        if not storage.exists(path):
            storage.create(path, schemas.of(dict(table.columns), parts=not dimension))
            engine.ledger.adopt(held, [(0, None)], engine.now())
        handle = storage.open_at(path)
        kinds = handle.table.to_pyarrow_table().schema
        rows = [_row(table, p, row, kinds) for p, members in parts.items() for row in members]
        data = pa.Table.from_pylist(rows, schema=kinds)
        removed = handle.files
        if not dimension:
            change = storage.rewrite(handle, Parts.single(*parts))
            removed = change.removed
            for uri in handle.uris(change.mixed):
                kept = pq.read_table(uri, schema=kinds)
                data = pa.concat_tables([data, kept.filter(pc.invert(pc.is_in(kept["part"], pa.array(list(parts)))))])
        step = uuid.uuid4().hex[:16]
        folder = Path(storage.begin(handle, step))
        if data.num_rows:
            folder.mkdir(parents=True)
            pq.write_table(data, folder / "rows.parquet")
        contents = {p: Content(len(members), f"{len(members)}:{uuid.uuid4().hex}") for p, members in parts.items()}
        if dimension:
            contents = {DIMENSION_PART: contents[0]}
        mark = engine.definitions.graph()[name].fingerprint
        entry = Entry(name, engine.ledger.current(name).generation, mark, None, None, contents, "given")
        version = storage.commit(
            handle, storage.staged(path, step), removed, {"kind": "ingest", "entry": entry.to_json()}
        )
        engine.ledger.commit(held, entry, version, engine.now(), keep=True)
        storage.finish(path, step)


def _row(table: Source | Dimension, p: int, row: Mapping[str, Any], kinds: Any) -> dict[str, Any]:
    """A row as it is stored: the event time is the start of the part unless it is given, what is left out is NULL."""
    import pyarrow as pa

    found = {name: _value(value, kinds.field(name).type, pa) for name, value in row.items()}
    if isinstance(table, Source):
        start = datetime.fromtimestamp(p * table.part, UTC)
        units = {"seconds": p * table.part, "milliseconds": p * table.part * 1000}
        when: Any = start if table.time.unit is None else units[table.time.unit]
        kind = kinds.field(table.time.column).type
        found.setdefault(table.time.column, start.isoformat() if pa.types.is_string(kind) else when)
        found |= {schemas.PART: p, schemas.PART_TIMESTAMP: start}
    return found


def _value(value: Any, kind: Any, pa: Any) -> Any:
    """YAML's value as one of the column's type."""
    if isinstance(value, str) and pa.types.is_timestamp(kind):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    if isinstance(value, int) and not isinstance(value, bool) and pa.types.is_floating(kind):
        return float(value)
    return str(value) if pa.types.is_string(kind) and value is not None else value


def _rows(engine: Engine, name: str) -> dict[int, list[dict[str, Any]]]:
    current = engine.ledger.current(name)
    with engine.ledger.database.reading() as r:
        found: dict[int, list[dict[str, Any]]] = {p: [] for p in existing(r, name)}
    if current.version is not None:
        table = storage.open_at(engine.path(name, current.generation), current.version).table
        for row in table.to_pyarrow_table().to_pylist():
            row.pop(schemas.PART_TIMESTAMP, None)
            found[row.pop(schemas.PART, max(found))].append(row)  # a rolling table has one part
    return found
