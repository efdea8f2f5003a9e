"""Which times another content of a dimension with `valid_from` concerns: what was valid then has changed."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.definitions import Dimension
from partwise.parts import Range
from partwise.sources.validity import EVER, Validity, changed_ranges
from partwise.storage import schema as schemas
from spark_jobs.ingest.files.rows import NO_CONTENT

#: Of dimensions with more keys and times all times count as changed.
MOST_ROWS = 200_000
_BEFORE, _AFTER = "__before", "__after"


def changed_times(dimension: Dimension, new: DataFrame | None, old: DataFrame) -> tuple[Range, ...] | None:
    """None: it is not known, so that every time counts."""
    assert dimension.valid_from is not None
    if new is None:
        new = old.limit(0)
    names = sorted(name for name in old.columns if name not in NO_CONTENT)
    kinds = [
        frame.select(*map(schemas.quoted, names)).schema.simpleString() for frame in (old, new) if _has(frame, names)
    ]
    if len(kinds) < 2 or kinds[0] != kinds[1] or "map<" in kinds[0] or "variant" in kinds[0]:
        return None
    counts = [F.sum(name).alias(name) for name in (_BEFORE, _AFTER)]
    both = _counted(old, names, 1, 0).unionByName(_counted(new, names, 0, 1))
    counted = both.groupBy(*map(schemas.quoted, names)).agg(*counts)
    since = f"COALESCE(UNIX_MICROS(CAST({schemas.quoted(dimension.valid_from)} AS TIMESTAMP)), {EVER}L)"
    keys = ", ".join(f"CAST({schemas.quoted(name)} AS STRING)" for name in dimension.key[:-1])
    rows = counted.selectExpr(
        f"array({keys}) AS k",
        f"{since} AS s",
        f"{_BEFORE} > 0 AS b",
        f"{_AFTER} > 0 AS a",
        f"{_BEFORE} <> {_AFTER} AS d",
    )
    found = rows.groupBy("k", "s").agg(*(F.max(name).alias(name) for name in "bad")).limit(MOST_ROWS + 1).collect()
    if len(found) > MOST_ROWS:
        return None
    return changed_ranges(Validity(tuple(row.k), row.s, row.b, row.a, row.d) for row in found)


def _has(frame: DataFrame, names: list[str]) -> bool:
    return set(names) <= set(frame.columns)


def _counted(rows: DataFrame, names: list[str], before: int, after: int) -> DataFrame:
    counts = [F.lit(n).cast("long").alias(name) for n, name in ((before, _BEFORE), (after, _AFTER))]
    return rows.select(*map(schemas.quoted, names), *counts)
