"""What a change does: how many rows it adds, takes out and changes, and which parts another dimension can matter for.

Keys of rows of a dimension that came or went are looked up in the tables that views join with it, as the ledger knows
them at one sequence. Files whose statistics rule them out are not opened; of the others only the key columns are read,
without Spark where the table is local. What cannot be looked up counts as joined everywhere: then all parts are
computed again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.read.pin import version_of
from partwise.ledger.records.dimension_changes import Met
from partwise.parts import FOREVER, Parts
from partwise.sql.types.names import INTEGERS
from partwise.storage import File, Handle, StorageError
from partwise.storage import schema as schemas
from partwise.tables import Keyed
from spark_jobs.engine import Engine
from spark_jobs.ingest.files.rows import NO_CONTENT
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure, message_of
from spark_jobs.step import keys, read
from spark_jobs.step.by_keys import columns_of
from spark_jobs.step.keys import MOST, MOST_ROWS, AnyOf, TouchedKeys


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


log = logging.getLogger("partwise.ingest")

_ALL = Parts.of((-FOREVER, FOREVER))
#: Ranges of parts that one commit and the ledger keep of a change.
MOST_RANGES = 1_000
Values = tuple[tuple[Any, ...], ...]


def look_up(engine: Engine, dimension: str, handle: Handle, new: tuple[File, ...]) -> tuple[Met, ...]:
    """The parts that meet a changed row, once these files are the whole content of the dimension."""
    try:
        return tuple(_look_up(engine, dimension, handle, new))
    except (*SPARK_ERRORS, StorageError, OSError, pa.ArrowException) as why:
        if is_infrastructure(why):
            raise
        log.info("%s: changed keys are not looked up: %s", dimension, message_of(why).partition("\n")[0])
        return ()


def _look_up(engine: Engine, dimension: str, handle: Handle, new: tuple[File, ...]) -> Iterator[Met]:
    graph = engine.ledger.graph()
    items = {item for name in graph.consumers.get(dimension, ()) for item in graph[name].keyed_by(dimension)}
    found: dict[tuple[str, ...], Values | None] = {}
    seen: dict[str, Met] = {}
    for item in sorted(items, key=lambda item: (item.table, item.columns, item.own)):
        if item.own not in found:
            found[item.own] = _changed(engine, handle, new, item.own)
        values = found[item.own]
        if values is not None and (met := _held(engine, item, values, columns_of(handle))) is not None:
            seen[met.by] = met
    yield from seen.values()


def _changed(engine: Engine, handle: Handle, new: tuple[File, ...], own: tuple[str, ...]) -> Values | None:
    """What rows that came or went held in these columns; None if that is too much."""
    names = [_named(columns_of(handle), name) for name in own]
    if None in names:
        return None
    columns = [str(name) for name in names]
    files = (*new, *handle.files)
    if keys.can_be_read(handle, files) and sum(f.rows if f.rows is not None else MOST_ROWS for f in files) <= MOST_ROWS:
        values: Iterable[tuple[Any, ...]] = _differing(_rows(handle, new), _rows(handle, handle.files), columns)
    else:
        spark = engine.spark
        came, went = (read.files(spark, handle, some).drop(*NO_CONTENT) for some in (new, handle.files))
        rows = came.exceptAll(went).unionAll(went.exceptAll(came)).select(*map(schemas.quoted, columns))
        values = [tuple(row) for row in rows.distinct().limit(MOST + 1).collect()]
    distinct = tuple(dict.fromkeys(values))
    return distinct if len(distinct) <= MOST else None


def _rows(handle: Handle, files: Iterable[File]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for file in files:
        rows += (
            keys.rows_of(handle, file)
            .drop_columns([n for n in NO_CONTENT if n in schemas.names(handle.schema)])
            .to_pylist()
        )
    return rows


def _differing(new: list[dict[str, Any]], old: list[dict[str, Any]], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """By their text: rows may hold lists. What is the same and looks different counts as changed."""
    counts = Counter(map(repr, new))
    counts.subtract(map(repr, old))
    for row in (*new, *old):
        if counts[repr(row)]:
            yield tuple(row[name] for name in columns)


def _held(engine: Engine, item: Keyed, values: Values, own: Mapping[str, str]) -> Met | None:
    """The parts of a table that hold one of the values, as of now; None where they cannot be compared."""
    with engine.ledger.database.reading() as r:
        seen, at, lost = r.seq, version_of(r, item.table), LedgerParts(r).lost(item.table)
    if lost:
        return None  # it is being made again: what it holds is not what it will hold
    handle = engine.open(item.table, at)
    if handle is None or not values:
        return Met(item.own, item.table, item.columns, Parts(), seen)
    stored = columns_of(handle)
    names = [_named(stored, name) for name in item.columns]
    types = [stored[name] for name in names if name is not None]
    wanted = [own[name] for name in (_named(own, given) for given in item.own) if name is not None]
    if len(types) < len(names) or not all(map(_alike, types, wanted)):
        return None
    touched = AnyOf(engine.spark, (TouchedKeys(tuple(n for n in names if n is not None), tuple(types), values),))
    return Met(item.own, item.table, item.columns, coarse(_parts_with(engine, handle, touched)), seen)


def _parts_with(engine: Engine, handle: Handle, touched: AnyOf) -> Parts:
    files = [file for file in handle.files if keys.may_hold(file, touched)]
    if keys.can_be_read(handle, files):
        found: set[int] = set()
        for file in files:
            found |= set(keys.parts_with(handle, file, _ALL, touched))
        return Parts.single(*found)
    rows = touched.inside(read.files(engine.spark, handle, files)).select(schemas.PART).distinct()
    return Parts.single(*(row[0] for row in rows.collect()))


def coarse(parts: Parts, most: int = MOST_RANGES) -> Parts:
    """These parts, and others in the smallest gaps between them where they are too many ranges: those are computed in vain."""
    ranges = parts.ranges
    if len(ranges) <= most:
        return parts
    widest = sorted(range(1, len(ranges)), key=lambda n: ranges[n - 1].hi - ranges[n].lo)[: most - 1]
    ends = [0, *sorted(widest), len(ranges)]
    return Parts.of(*((ranges[a].lo, ranges[b - 1].hi) for a, b in pairwise(ends)))


def _alike(one: str, other: str) -> bool:
    return one == other or {one, other} <= INTEGERS


def _named(columns: Iterable[str], name: str) -> str | None:
    return next((column for column in columns if column.lower() == name.lower()), None)
