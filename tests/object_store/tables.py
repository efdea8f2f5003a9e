"""Small tables in the store: pyarrow writes what Spark would have staged."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from partwise import storage
from partwise.storage.query import PinnedTable, query
from partwise.storage.remote import Bucket
from tests.storage.tables import ARROW, SCHEMA, Row

__all__ = ["SCHEMA", "rows", "stage", "write"]


def stage(handle: storage.Handle, step: str, *files: list[Row]) -> tuple[storage.File, ...]:
    """Each list of (part, src, loss) becomes one staged file."""
    folder = Bucket(storage.begin(handle, step))
    for number, rows in enumerate(files):
        values = [(part, part * 60_000_000, src, loss) for part, src, loss in rows]
        columns = list(zip(*values, strict=True)) if values else [()] * len(ARROW)
        arrays = [pa.array(list(c), type=f.type) for c, f in zip(columns, ARROW, strict=True)]
        file = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(arrays, schema=ARROW), file)
        folder.put(f"part-{number:05d}.parquet", file.getvalue())
    return storage.staged(handle.path, step)


def write(path: str, step: str, *rows: Row) -> int:
    """One step from the beginning to the end; the version it made."""
    handle = storage.open_at(path)
    version = storage.commit(handle, stage(handle, step, list(rows)), (), {"step": step})
    storage.finish(path, step)
    return version


def rows(path: str, version: int | None = None) -> list[Row]:
    found = storage.open_at(path, version)
    answer = query("SELECT part, src, loss FROM t ORDER BY ALL", {"t": PinnedTable(path, found.version)})
    return [(row[0], row[1], row[2]) for row in answer.rows]
