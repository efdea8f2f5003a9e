"""Small real tables for the tests of storage: pyarrow writes what Spark would have staged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from partwise import storage
from partwise.storage import schema as schemas

COLUMNS = {"src": "string", "loss": "double"}
SCHEMA = schemas.of(COLUMNS)
ARROW = pa.schema(
    [("part", pa.int64()), ("part_timestamp", pa.timestamp("us", "UTC")), ("src", pa.string()), ("loss", pa.float64())]
)

Row = tuple[int, str, float]


def stage(handle: storage.Handle, step: str, *files: list[Row], arrow: pa.Schema = ARROW) -> tuple[storage.File, ...]:
    """Each list of (part, src, loss) becomes one staged file."""
    folder = Path(storage.begin(handle, step))
    folder.mkdir()
    for number, rows in enumerate(files):
        values = [(part, part * 60_000_000, src, loss) for part, src, loss in rows]
        columns = list(zip(*values, strict=True)) if values else [()] * len(arrow)
        arrays = [pa.array(list(c), type=f.type) for c, f in zip(columns, arrow, strict=True)]
        pq.write_table(pa.Table.from_arrays(arrays, schema=arrow), folder / f"part-{number:05d}.parquet")
    return storage.staged(handle.path, step)


def rows(path: str, version: int | None = None) -> list[Row]:
    """What delta-rs reads back."""
    found = storage.open_at(path, version).table.to_pyarrow_table(columns=["part", "src", "loss"]).to_pylist()
    return sorted((r["part"], r["src"], r["loss"]) for r in found)
