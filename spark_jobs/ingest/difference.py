"""How many rows a change adds, takes out and changes: what people want to know of a correction."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.storage import schema as schemas
from spark_jobs.ingest.files.rows import NO_CONTENT


@dataclass(frozen=True, slots=True)
class RowChange:
    """Of a part that loses some rows and gets others, as many of them count as changed as there are of both."""

    added: int = 0
    removed: int = 0
    changed: int = 0


def row_change(new: DataFrame | None, old: DataFrame | None) -> RowChange:
    """Compares rows by their content, wherever they came from. Without old rows it costs a count."""
    if old is None:
        return RowChange(added=new.count() if new is not None else 0)
    frames = [_marked(frame, sign) for frame, sign in ((new, 1), (old, -1)) if frame is not None]
    both = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    rows = both.groupBy("p", "h").agg(F.sum("n").alias("n"))
    parts = rows.groupBy("p").agg(
        F.sum(F.greatest("n", F.lit(0))).alias("came"), F.sum(F.greatest(-F.col("n"), F.lit(0))).alias("went")
    )
    less = F.least("came", "went")
    found = parts.agg(F.sum(F.col("came") - less), F.sum(F.col("went") - less), F.sum(less)).collect()[0]
    return RowChange(*(int(value or 0) for value in found))


def _marked(rows: DataFrame, sign: int) -> DataFrame:
    columns = [name for name in sorted(rows.columns) if name not in (*NO_CONTENT, schemas.PART, schemas.PART_TIMESTAMP)]
    content = F.struct(*(F.col(schemas.quoted(name)) for name in columns))
    part = F.col(schemas.PART) if schemas.PART in rows.columns else F.lit(0).cast("long")
    return rows.select(part.alias("p"), F.xxhash64(F.to_json(content)).alias("h"), F.lit(sign).cast("long").alias("n"))
