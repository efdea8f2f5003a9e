"""Small results: Spark computes them with their row hashes in one job, and everything else happens here.

The rows come as Arrow, digests are summed up from the hashes, and one Parquet file is written, with the types and
statistics that Spark would have written. That saves the job that writes, the one that reads back for the digests, and
for a single part the literals of its part columns: Spark compiles the code of a query again for every literal in it.
Content and digests are the same by both ways.
"""

from __future__ import annotations

import io
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pyspark
from pyspark.sql import DataFrame

from partwise import storage
from partwise.storage import File, Handle
from partwise.storage import schema as schemas
from partwise.storage.staging import write
from spark_jobs.retry import message_of
from spark_jobs.step.copies import keep
from spark_jobs.step.digest import CHAINS, of_hashes, row_hash
from spark_jobs.step.stage import fit, fits

HASHES = [f"__hash{at}" for at in range(len(CHAINS))]
_PART_COLUMNS = (schemas.PART, schemas.PART_TIMESTAMP)
#: Spark reads dates before 1582 as they are from files that say that Spark wrote them; so do all other readers.
_WRITTEN_BY = {"org.apache.spark.version": pyspark.__version__}
#: How Spark says that a result does not fit into the memory of the driver.
_TOO_LARGE = ("spark.driver.maxResultSize", "OutOfMemoryError")


@dataclass(frozen=True)
class Collected:
    """Rows with the table's columns in its order, sorted by part, and their digests by part."""

    rows: Any  # pyarrow.Table
    digests: dict[int, str]


def collect(
    rows: DataFrame, schema: str, leave_out: Collection[str] = (), part: int | None = None, seconds: int = 0
) -> Collected:
    """Run the query. `part`: these rows are of this part alone, and do not have the two part columns."""
    return collected(hashed(rows, schema, leave_out, part).toArrow(), schema, part, seconds)


def hashed(rows: DataFrame, schema: str, leave_out: Collection[str], part: int | None) -> DataFrame:
    """The rows as the table stores them, with their hashes behind; of one part alone without its two columns."""
    rows, columns = to_select(rows, schema, leave_out, part)
    return rows.selectExpr(*(f"{text} AS {schemas.quoted(name)}" for name, text in columns.items()))


def to_select(
    rows: DataFrame, schema: str, leave_out: Collection[str], part: int | None
) -> tuple[DataFrame, dict[str, str]]:
    """The same before it is selected: rows, and expressions over them by the name of the column. Every query that is put
    around another one is analysed."""
    wanted = schema if part is None else schemas.without(schema, _PART_COLUMNS)
    hidden = {*_PART_COLUMNS, *leave_out}
    content = [(name, kind) for name, kind in schemas.fields(schema) if name not in hidden]
    columns = {name: schemas.quoted(name) for name in schemas.names(wanted)}
    hashes = {name: row_hash(content, salt) for name, salt in zip(HASHES, CHAINS, strict=True)}
    return rows if fits(rows, wanted) else fit(rows, wanted), columns | hashes


def collected(found: Any, schema: str, part: int | None, seconds: int) -> Collected:
    """What `hashed` gave, as Arrow."""
    if part is not None:
        found = _with_part(found, part, seconds)
    found = _sorted(found)
    parts = _numbers(found, schemas.PART)  # not every table stores them
    found = found.select([*schemas.names(schema), *HASHES])
    digests = of_hashes(parts, [_numbers(found, name) for name in HASHES])
    return Collected(found.drop_columns(HASHES), digests)


def stage(collected: Collected, handle: Handle, step: str) -> tuple[File, ...]:
    """Write the rows into the table's folder as one file that no reader sees yet; without rows there is none."""
    if not collected.rows.num_rows:
        return ()
    storage.begin(handle, step)
    rows = collected.rows
    if handle.keys:
        rows = rows.sort_by([(name, "ascending") for name in (schemas.PART, *handle.keys)])
    content = parquet(rows)
    file = write(handle, step, "part-0.snappy.parquet", content)
    keep(handle, file, content)
    return (file,)


def parquet(rows: Any) -> bytes:
    """As Spark writes it: the same physical types, with statistics."""
    out = io.BytesIO()
    pq.write_table(
        rows.replace_schema_metadata(_WRITTEN_BY),
        out,
        compression="snappy",
        coerce_timestamps="us",
        store_schema=False,
        store_decimal_as_integer=True,
    )
    return out.getvalue()


def too_large(why: Exception) -> bool:
    """Whether a result was not small at all: it is computed in the general way."""
    said = message_of(why)
    return any(word in said for word in _TOO_LARGE)


def _with_part(rows: Any, part: int, seconds: int) -> Any:
    count = rows.num_rows
    stamp = pa.scalar(part * seconds * 1_000_000, pa.timestamp("us", tz="UTC"))
    rows = rows.append_column(schemas.PART, pa.repeat(pa.scalar(part, pa.int64()), count))
    return rows.append_column(schemas.PART_TIMESTAMP, pa.repeat(stamp, count))


def _sorted(rows: Any) -> Any:
    parts = _numbers(rows, schemas.PART)
    if not len(parts) or bool((parts[1:] >= parts[:-1]).all()):
        return rows
    return rows.take(pa.array(np.argsort(parts, kind="stable")))


def _numbers(rows: Any, name: str) -> Any:
    return rows.column(name).to_numpy()
