"""Reads tables at pinned versions.

The log names the files of a version in milliseconds, without Spark; Spark then reads exactly those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from partwise.object_store import spark_path
from partwise.parts import Parts
from partwise.storage import File, Handle, Rewrite
from partwise.storage import schema as schemas
from spark_jobs.paths import literal
from spark_jobs.step.copies import copies_for

#: So many bytes of files are read by one task.
ONE_TASK = 1 << 20


def parts(
    spark: SparkSession,
    handle: Handle,
    wanted: Parts | None = None,
    may_matter: Callable[[File], bool] = lambda file: True,
) -> DataFrame:
    """The rows of these parts (all by default) in the version of the handle, for tables that we write. `may_matter`: files
    that nobody wants anything of are left out."""
    chosen = [file for file in (handle.files if wanted is None else handle.files_of(wanted)) if may_matter(file)]
    found = files(spark, handle, chosen)
    # No condition where there is nothing to leave out: with the part's number in it, Spark would compile the query again
    # for every part.
    if wanted is not None and not all(file.only_holds(wanted) for file in chosen):
        found = found.where(in_parts(wanted))
    return _together(found, chosen)


def survivors(spark: SparkSession, handle: Handle, change: Rewrite) -> DataFrame | None:
    """The rows that must be written again because their files go; None where there are none."""
    if not change.mixed:
        return None
    return files(spark, handle, change.mixed).where(in_parts(change.surviving))


def files(spark: SparkSession, handle: Handle, chosen: Iterable[File]) -> DataFrame:
    """The rows of these files, with the table's schema; no files, no rows."""
    return _read(spark, handle.schema, uris(spark, handle, chosen))


def staged(spark: SparkSession, handle: Handle, chosen: Iterable[File], schema: str | None = None) -> DataFrame:
    """What was staged, as it will be seen once committed (checks and digests look at this)."""
    found = list(chosen)
    return _together(_read(spark, schema or handle.schema, uris(spark, handle, found)), found)


def uris(spark: SparkSession, handle: Handle, chosen: Iterable[File]) -> list[str]:
    """Where Spark reads these files of a table."""
    here = copies_for(spark, handle)
    return handle.uris(chosen) if here is None else [here.uri(handle, file) for file in chosen]


def foreign(spark: SparkSession, path: str, version: int) -> DataFrame:
    """A table that others write, which may use any feature that Delta has."""
    return spark.read.format("delta").option("versionAsOf", version).load(spark_path(path))


def from_arrow(spark: SparkSession, tables: Sequence[Any]) -> DataFrame:
    """Rows that are in memory, with the columns of the tables."""
    import pyarrow as pa  # type: ignore[import-untyped]

    return in_memory(spark, pa.concat_tables(tables)).coalesce(1)


def in_memory(spark: SparkSession, rows: Any, schema: StructType | None = None) -> DataFrame:
    """Rows of an Arrow table. All such tables go this way: of one with an empty chunk between others, Spark 4.2 loses what
    comes behind it without a word."""
    whole = rows.combine_chunks()
    return spark.createDataFrame(whole) if schema is None else spark.createDataFrame(whole, schema)


def in_parts(wanted: Parts, column: str = schemas.PART) -> Column:
    """The condition on `part`; ranges, because Spark skips files and row groups by them."""
    spans = [f"{column} = {lo}L" if lo == hi else f"{column} BETWEEN {lo}L AND {hi}L" for lo, hi in wanted.ranges]
    return F.expr(" OR ".join(spans) or "false")


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All of their rows; columns by name."""
    first, *others = frames
    for other in others:
        first = first.unionByName(other)
    return first


def _together(rows: DataFrame, chosen: Iterable[File]) -> DataFrame:
    """Little data in one partition: it need not be shuffled to be grouped or joined, which is most of the work."""
    return rows.coalesce(1) if sum(file.size for file in chosen) <= ONE_TASK else rows


def _read(spark: SparkSession, schema: str, uris: list[str]) -> DataFrame:
    if not uris:
        empty = (f"CAST(NULL AS {schemas.sql_type(k)}) AS {schemas.quoted(n)}" for n, k in schemas.fields(schema))
        return spark.sql(f"SELECT {', '.join(empty)} WHERE false")
    columns = StructType.fromJson(json.loads(schema))
    # No listing, no guessing: the schema is the table's, and nothing in a path means anything.
    return spark.read.schema(columns).option("recursiveFileLookup", "true").parquet(*map(literal, uris))
