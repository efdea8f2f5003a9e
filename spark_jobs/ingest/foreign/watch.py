"""What the log of a foreign Delta table says, and the rows of the files that came and went."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from partwise.ledger.records.files import Intake
from partwise.parts import Parts, Range
from partwise.sources.foreign import Difference, ForeignFile, difference, only_moved
from partwise.sql.types.declared import NUMBERS, base
from partwise.storage import log
from partwise.storage import schema as schemas
from partwise.storage.damage import missing
from partwise.storage.files import folder
from partwise.storage.handle import options
from spark_jobs.ingest.files.rows import Shape
from spark_jobs.ingest.foreign.look import Watched
from spark_jobs.paths import literal
from spark_jobs.step import read

#: More partitions than this are read through Delta itself.
_MOST_GROUPS = 100
_DAY = 86_400
#: More ranges of time than this are read as one.
_MOST_RANGES = 20


class Vacuumed(Exception):
    """The log or the files that tell what changed are gone."""


def rows_added_and_removed(
    spark: SparkSession, watched: Watched, seen: Intake
) -> tuple[DataFrame | None, DataFrame | None]:
    """Rows of the files that are live now and were not then, and the other way round. Raises Vacuumed."""
    assert seen.position is not None
    if seen.origin != watched.origin or seen.position > watched.version:
        raise Vacuumed("it is another table, or an older state of it")
    root = folder(watched.path)
    commits = []
    for version in range(seen.position + 1, watched.version + 1):
        actions = log.actions_of(root, version)
        if actions is None:
            raise Vacuumed(f"version {version} is no longer in its log")
        if not all(_same_columns(watched.path, seen.position, action) for action in actions):
            raise Vacuumed(f"its columns changed in version {version}")
        commits.append(actions)
    if only_moved(commits):
        return None, None
    found: Difference = difference(commits)
    for path in missing(root, [file.path for file in found.removed]):
        raise Vacuumed(f"{path} was vacuumed")
    return _rows(spark, watched, watched.version, found.added), _rows(spark, watched, seen.position, found.removed)


def _same_columns(path: str, position: int, action: dict[str, Any]) -> bool:
    """Whether this action leaves the columns as they were at the last look. RESTORE always writes them again."""
    new = action.get("metaData")
    if new is None:
        return True
    try:
        then = DeltaTable(path, version=position, storage_options=options(path))
        before = then.metadata()
    except Exception:
        return False
    mapping = "delta.columnMapping.mode"
    return (
        schemas.fields(new["schemaString"]) == schemas.fields(str(then.schema().to_json()))
        and list(new.get("partitionColumns") or ()) == list(before.partition_columns)
        and new.get("configuration", {}).get(mapping) == before.configuration.get(mapping)
    )


def _rows(spark: SparkSession, watched: Watched, version: int, files: Sequence[ForeignFile]) -> DataFrame | None:
    if not files:
        return None
    table = read.foreign(spark, watched.path, version)
    groups: dict[tuple[tuple[str, str | None], ...], list[str]] = {}
    for file in files:
        groups.setdefault(file.partition, []).append(f"{watched.path.rstrip('/')}/{file.path}")
    special = any(file.vector for file in files) or _mapped(watched, version)
    if special or len(groups) > _MOST_GROUPS:
        # Names of data files are unique, whatever the folder is called and however Spark writes it.
        names = [os.path.basename(file.path) for file in files]
        return table.where(F.substring_index(F.col("_metadata.file_path"), "/", -1).isin(names))
    frames = [_plain(spark, table.schema, partition, paths) for partition, paths in groups.items()]
    return read.union(frames)


def _plain(
    spark: SparkSession, schema: StructType, partition: tuple[tuple[str, str | None], ...], paths: list[str]
) -> DataFrame:
    """Parquet files as they are; the columns of their partition stand in the log alone."""
    values = dict(partition)
    stored = StructType([field for field in schema if field.name not in values])
    rows = spark.read.schema(stored).option("recursiveFileLookup", "true").parquet(*map(literal, paths))
    for name, value in values.items():
        rows = rows.withColumn(name, F.lit(value).cast(schema[name].dataType))
    return rows


def _mapped(watched: Watched, version: int) -> bool:
    try:
        configuration = (
            DeltaTable(watched.path, version=version, storage_options=options(watched.path)).metadata().configuration
        )
    except Exception:
        return True
    return configuration.get("delta.columnMapping.mode", "none") != "none"


def in_time(rows: DataFrame, shape: Shape, wanted: Parts) -> Column:
    """The condition on the event time itself, by which Delta skips files. May be wider than the parts."""
    assert shape.time is not None
    name = next(n for n in shape.columns if n.lower() == shape.time.column.lower())
    kind, column = dict(rows.dtypes)[name], f"`{name}`"
    spans = wanted.ranges if len(wanted.ranges) <= _MOST_RANGES else Parts.of((wanted.first, wanted.last)).ranges
    if kind == "timestamp" and shape.time.unit is None:
        edge = "timestamp_seconds({})"
    elif kind == "timestamp_ntz" and shape.time.unit is None:
        edge = "CAST(timestamp_seconds({}) AS timestamp_ntz)"
    elif kind == "date" and shape.time.unit is None:
        # A day belongs to the part that its midnight is in: the days around a part are enough.
        edge = "CAST(timestamp_seconds({}) AS date)"
        spans = tuple(Range(lo, hi + -(-_DAY // shape.length)) for lo, hi in spans)
    elif base(kind) in NUMBERS and shape.time.unit is not None:
        edge = "{}" if shape.time.unit == "seconds" else "{}000"
    else:
        return F.lit(True)
    return F.expr(
        " OR ".join(
            f"({column} >= {edge.format(lo * shape.length)} AND {column} < {edge.format((hi + 1) * shape.length)})"
            for lo, hi in spans
        )
    )
