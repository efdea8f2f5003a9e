"""Writes a result into the table's folder as plain Parquet that no reader sees yet.

A commit (`partwise.storage`) makes the files part of the table, or they are thrown away.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

from partwise import storage
from partwise.object_store import spark_path
from partwise.storage import File, Handle
from partwise.storage import schema as schemas
from partwise.storage.handle import ROWS_PER_CUT
from spark_jobs.step.copies import cannot_write_here, copies_for

#: One task writes about so many rows; fewer files are read quicker, more tasks write quicker.
ROWS_PER_FILE = 500_000
#: A file is cut here even if one task writes more: a late row rewrites the file that it is in.
MOST_ROWS_PER_FILE = 4_000_000


def stage(
    rows: DataFrame, handle: Handle, step: str, *, schema: str | None = None, expected: int | None = None
) -> tuple[File, ...]:
    """Stages rows for the table of this handle; returns the files, relative to the table.

    The rows get the table's columns in its order and types (or those of `schema`, when the commit will
    replace it), sorted by part within files so that statistics are narrow. `expected` is how many rows
    are about to be read or written, if known: it decides the number of files. Without it Spark does.
    `step` names this try and no other.
    """
    wanted = schema or handle.schema
    fitted = fit(rows, wanted)
    if expected is not None:
        fitted = fitted.coalesce(max(1, -(-expected // ROWS_PER_FILE)))
    keys = tuple(name for name in handle.keys if name in schemas.names(wanted))
    if schemas.PART in schemas.names(wanted):
        fitted = fitted.sortWithinPartitions(schemas.PART, *map(schemas.quoted, keys))
    folder, here = storage.begin(handle, step), copies_for(rows.sparkSession, handle)
    writer = fitted.write.option("maxRecordsPerFile", ROWS_PER_CUT if keys else MOST_ROWS_PER_FILE)
    if here is None:
        writer.parquet(spark_path(folder))
        return storage.staged(handle.path, step)
    place = here.place(handle, folder.rpartition("/")[2])
    writer.parquet(str(place))
    if not any(place.glob("*.parquet")):  # Spark writes at least one, even without rows
        cannot_write_here(rows.sparkSession)
        writer.parquet(spark_path(folder))
        return storage.staged(handle.path, step)
    files = storage.upload(handle, step, place)
    for file in files:
        here.keep_or_drop(handle, file)
    return files


def fit(rows: DataFrame, schema: str) -> DataFrame:
    """The rows with exactly these columns, in this order, cast to these types."""
    have = {field.name.lower(): field for field in rows.schema}
    wanted = schemas.fields(schema)
    missing = [name for name, _ in wanted if name.lower() not in have]
    extra = [name for name in rows.columns if name.lower() not in {n.lower() for n, _ in wanted}]
    if missing or extra:
        raise schemas.BadSchema(
            [f"column '{name}' is missing in the result" for name in missing]
            + [f"column '{name}' of the result is not in the table" for name in extra]
        )
    return rows.selectExpr(*(_fitted(have[name.lower()], name, kind) for name, kind in wanted))


def fits(rows: DataFrame, schema: str) -> bool:
    """Whether these are the columns, in whatever order."""
    have = sorted((field.name.lower(), repr(field.dataType.jsonValue())) for field in rows.schema)
    return have == sorted((name.lower(), repr(kind)) for name, kind in schemas.fields(schema))


def _fitted(have: StructField, name: str, kind: Any) -> str:
    """Cast only where it is needed: Spark takes a cast for the place of an error in what is cast."""
    found = schemas.quoted(have.name)
    if have.dataType.jsonValue() != kind:
        found = f"CAST({found} AS {schemas.sql_type(kind)})"
    return f"{found} AS {schemas.quoted(name)}"


def with_part(rows: DataFrame, part: int, seconds: int) -> DataFrame:
    """The result of one part, with the two columns that every table stores."""
    return rows.selectExpr(
        f"{part}L AS {schemas.PART}", f"timestamp_seconds({part * seconds}L) AS {schemas.PART_TIMESTAMP}", "*"
    )
