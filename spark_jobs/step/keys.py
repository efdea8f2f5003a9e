"""Sets of keys, and rows that have one of them. NULL is a key like any other.

Rows of a table as published are found and left out without a job of Spark: to look at a few columns with Arrow, and to
write one file again, takes less than Spark needs to start. Tables in an object store, and parts that are too large for the
memory of the driver, go through Spark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from deltalake import Schema
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from partwise import storage
from partwise.object_store import is_remote
from partwise.parts import Parts
from partwise.storage import File, Handle
from partwise.storage import schema as schemas
from partwise.storage.arrow import located
from partwise.storage.staging import write
from spark_jobs.step import small
from spark_jobs.step.digest import CHAINS, of_hashes, row_hash
from spark_jobs.step.read import in_memory

#: So many keys are written into the query, where Spark skips files by them; more are joined.
LITERALS = 100
#: With more touched keys than this a part is computed again.
MOST = 20_000


@dataclass(frozen=True)
class TouchedKeys:
    """Values of `columns` of the result, each once."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    def projected(self, columns: Sequence[str]) -> TouchedKeys:
        """What is left of them in some of the columns."""
        at = [self.columns.index(c) for c in columns]
        values = dict.fromkeys(tuple(value[p] for p in at) for value in self.values)
        return TouchedKeys(tuple(columns), tuple(self.types[p] for p in at), tuple(values))

    def may_be_in(self, file: File, by: Sequence[tuple[str, str]]) -> bool:
        """Whether a file may have a row with one of the values, by the log. `by`: columns, and SQL over the file's rows."""
        plain = [(self.columns.index(c), name) for c, sql in by if (name := _plain(sql)) is not None]
        return all(file.may_have(name, {value[at] for value in self.values}) for at, name in plain)

    @property
    def are_few(self) -> bool:
        return len(self.values) <= LITERALS

    def condition(self, expressions: Sequence[str]) -> Column:
        """Whether these expressions have one of the values; never NULL. For few keys."""
        if len(expressions) == 1:
            expression, values = F.expr(expressions[0]), [value[0] for value in self.values]
            known = expression.isin([v for v in values if v is not None])
            found = (known | expression.isNull()) if None in values else known
            return F.coalesce(found, F.lit(False))
        equal = (
            reduce(Column.__and__, (F.expr(e).eqNullSafe(F.lit(v)) for e, v in zip(expressions, value, strict=True)))
            for value in self.values
        )
        return reduce(Column.__or__, equal, F.lit(False))

    def join(self, spark: SparkSession, rows: DataFrame, expressions: Sequence[str], how: str) -> DataFrame:
        """Rows with one of the keys (`left_semi`) or without (`left_anti`)."""
        names = [f"__key{at}" for at in range(len(self.columns))]
        schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, self.types, strict=True))
        listed = F.broadcast(spark.createDataFrame(list(self.values), schema))
        on = reduce(Column.__and__, (F.expr(e).eqNullSafe(F.expr(n)) for e, n in zip(expressions, names, strict=True)))
        return rows.join(listed, on, how)


@dataclass(frozen=True)
class AnyOf:
    """Several sets joined by OR: a row is touched if it is in one of them."""

    spark: SparkSession
    sets: tuple[TouchedKeys, ...]

    def __bool__(self) -> bool:
        return any(keys.values for keys in self.sets)

    @property
    def count(self) -> int:
        return sum(len(keys.values) for keys in self.sets)

    @property
    def can_be_joined(self) -> bool:
        """Several sets only where all are few."""
        return len(self.sets) == 1 or all(keys.are_few for keys in self.sets)

    def inside(self, rows: DataFrame, by: Sequence[Sequence[tuple[str, str]]] | None = None) -> DataFrame:
        """Rows that are touched. `by`: for each set (column of it, SQL over these rows); the columns themselves by default."""
        return self._some(rows, by, "left_semi")

    def outside(self, rows: DataFrame) -> DataFrame:
        return self._some(rows, None, "left_anti")

    def _some(self, rows: DataFrame, by: Sequence[Sequence[tuple[str, str]]] | None, how: str) -> DataFrame:
        pairs = by if by is not None else [[(c, f"`{c}`") for c in keys.columns] for keys in self.sets]
        cut = [keys.projected([c for c, _ in each]) for keys, each in zip(self.sets, pairs, strict=True)]
        texts = [[sql for _, sql in each] for each in pairs]
        if all(keys.are_few for keys in cut):
            found = reduce(Column.__or__, (k.condition(t) for k, t in zip(cut, texts, strict=True)))
            return rows.where(found if how == "left_semi" else ~found)
        assert len(cut) == 1
        return cut[0].join(self.spark, rows, texts[0], how)


#: Files with more bytes in all are left to Spark, and so is a single one of more: it is read whole where its rows are copied.
MOST_BYTES = 512 << 20
MOST_OF_ONE = 64 << 20
#: More rows than this are not handed to Spark as values.
MOST_ROWS = 50_000


@dataclass(frozen=True)
class Gone:
    """Rows that others replace: the files that hold them, and their digests by part."""

    touched: tuple[File, ...]
    digests: dict[int, str]
    rows: Any  # pyarrow.Table, with all columns

    @property
    def count(self) -> int:
        return int(self.rows.num_rows)


def can_be_read(handle: Handle, files: Iterable[File]) -> bool:
    sizes = [file.size for file in files]
    return not is_remote(handle.path) and sum(sizes) <= MOST_BYTES and max(sizes, default=0) <= MOST_OF_ONE


def gone(spark: SparkSession, handle: Handle, parts: Parts, keys: AnyOf, leave_out: Collection[str]) -> Gone | None:
    """The rows of these parts that have one of the keys; None if that is for Spark."""
    files = tuple(file for file in handle.files_of(parts) if may_hold(file, keys))
    if not can_be_read(handle, files):
        return None
    names = list(dict.fromkeys([schemas.PART, *(c for each in keys.sets for c in each.columns)]))
    touched, found, count = [], [], 0
    for file in files:
        # Row groups by whose statistics no key can be there are not read.
        seen = _read(handle, [file], names, _may_match(parts, keys))
        here = int(_mask(seen, parts, keys).sum())
        count += here
        if count > MOST_ROWS:
            return None
        if here:
            touched.append(file)
            whole = _read(handle, [file], None, _may_match(parts, keys))
            found.append(whole.filter(pa.array(_mask(whole, parts, keys))))
    rows = pa.concat_tables(found) if found else _schema(handle).empty_table()
    return Gone(tuple(touched), _digests(spark, rows, handle.schema, leave_out), rows)


def few_rows(rows: DataFrame) -> DataFrame:
    """The same rows, computed once and kept as values if they are few."""
    found = rows.limit(MOST_ROWS + 1).toArrow()
    return rows if found.num_rows > MOST_ROWS else in_memory(rows.sparkSession, found, rows.schema)


def rows_of(handle: Handle, file: File) -> Any:
    """All rows of a file, with the columns of the table."""
    return _read(handle, [file], None, None)


def parts_with(handle: Handle, file: File, parts: Parts, keys: AnyOf) -> list[int]:
    """Those of these parts of which a file has a row with one of the keys."""
    names = list(dict.fromkeys([schemas.PART, *(c for each in keys.sets for c in each.columns)]))
    seen = _read(handle, [file], names, _may_match(parts, keys))
    held = seen.column(schemas.PART).to_numpy()[_mask(seen, parts, keys)]
    return [int(p) for p in np.unique(held)]


def copy_without(
    handle: Handle, files: Iterable[File], left_out: Sequence[tuple[Parts, AnyOf]], step: str
) -> tuple[File, ...]:
    """Stage each of these files again without rows that have one of the keys in the parts of their set.

    A file stays a file: a table that is cut by key stays so.
    """
    storage.begin(handle, step)
    staged = []
    for number, file in enumerate(files):
        rows = _read(handle, [file], None, None)
        drop = reduce(or_, (_mask(rows, parts, keys) for parts, keys in left_out))
        kept = rows.filter(pa.array(~drop))
        if kept.num_rows:
            staged.append(write(handle, step, f"part-{number:05d}.snappy.parquet", small.parquet(kept)))
    return tuple(staged)


def few_of(handle: Handle, files: Sequence[File], parts: Parts | None) -> Any | None:
    """The rows of a few small files, as Arrow. None: that is for Spark."""
    if not can_be_read(handle, files) or sum(file.rows or MOST_ROWS + 1 for file in files) > MOST_ROWS:
        return None
    return _read(handle, files, None, None if parts is None else _in(parts)) if files else None


def distinct_values(rows: Any, expressions: Sequence[str]) -> list[tuple[Any, ...]] | None:
    """The distinct values of plain columns; None where something has to be computed, which is for Spark."""
    names = [_plain(sql) for sql in expressions]
    if None in names:
        return None
    return list(dict.fromkeys(zip(*(rows.column(name).to_pylist() for name in names), strict=True)))


def rows_with(
    spark: SparkSession,
    handle: Handle,
    files: Sequence[File],
    parts: Parts | None,
    keys: AnyOf,
    by: Sequence[Sequence[tuple[str, str]]],
    columns: Collection[str],
) -> DataFrame | None:
    """Rows with one of the keys, as values in memory; None if that is for Spark: they are many, or keys are computed.

    `by`: for each set its columns, and SQL over these rows. Of other columns than `columns` there are only NULLs.
    """
    pairs = [[(c, name) for c, sql in each if (name := _plain(sql)) is not None] for each in by]
    if is_remote(handle.path) or sum(file.size for file in files) > MOST_BYTES:
        return None
    if [len(each) for each in pairs] != [len(each) for each in by]:
        return None
    renamed = tuple(
        TouchedKeys(tuple(name for _, name in each), cut.types, cut.values)
        for each, given in zip(pairs, keys.sets, strict=True)
        for cut in (given.projected([c for c, _ in each]),)
    )
    schema, rows = _schema(handle), _matching(handle, files, parts, renamed, columns)
    if rows.num_rows > MOST_ROWS:
        return None
    for name in schema.names:
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, schema.field(name).type))
    stored = StructType.fromJson(json.loads(handle.schema))
    kinds = StructType([StructField(field.name, field.dataType) for field in stored])
    return in_memory(spark, rows.select(schema.names), kinds).coalesce(1)


def _matching(
    handle: Handle, files: Sequence[File], parts: Parts | None, sets: Sequence[TouchedKeys], columns: Collection[str]
) -> Any:
    """Rows of these files with one of the keys."""
    schema = _schema(handle)
    having = [_one_of(schema, each) for each in sets if each.values and each.columns]
    looked = [c for each in sets for c in each.columns]
    names = list(dict.fromkeys([*columns, *looked]))
    if not having or not files:
        return pa.schema([schema.field(name) for name in names]).empty_table()
    where = reduce(or_, having)
    if parts is not None and not all(file.only_holds(parts) for file in files):
        where = where & _in(parts)
    rows = _read(handle, files, names, where)
    if all(len(each.columns) == 1 for each in sets):
        return rows
    return rows.filter(pa.array(reduce(or_, (_having(rows, each) for each in sets))))


def _one_of(schema: Any, keys: TouchedKeys) -> Any:
    """What every row with one of the keys fulfils, and with keys of one column no other row."""
    found = []
    for at, name in enumerate(keys.columns):
        column, kind = pc.field(name), schema.field(name).type
        values = {value[at] for value in keys.values}
        there = [value for value in values if value is not None]
        if pa.types.is_integer(kind):  # a narrower column of an input is looked at by values of the result
            ends = np.iinfo(kind.to_pandas_dtype())
            there = [value for value in there if ends.min <= value <= ends.max]
        known = column == pa.scalar(there[0], kind) if len(there) == 1 else column.isin(pa.array(there, kind))
        found.append(known | column.is_null() if None in values else known)
    return reduce(and_, found)


def _plain(sql: str) -> str | None:
    """The column that an expression is, if it is nothing else."""
    return sql[1:-1] if sql.startswith("`") and sql.endswith("`") and sql.count("`") == 2 else None


def _schema(handle: Handle) -> Any:
    return pa.schema(Schema.from_json(handle.schema).to_arrow())


def _read(handle: Handle, files: Sequence[File], names: list[str] | None, where: Any) -> Any:
    system, base = located(handle.path)
    schema, paths = _schema(handle), [f"{base}/{file.path}" for file in files]
    rows = pq.read_table(paths, schema=schema, columns=names, filters=where, filesystem=system, partitioning=None)
    return rows.cast(schema if names is None else pa.schema([schema.field(name) for name in names]))


def _in(parts: Parts) -> Any:
    part = pc.field(schemas.PART)
    return reduce(or_, ((part >= lo) & (part <= hi) for lo, hi in parts.ranges))


def _may_match(parts: Parts, keys: AnyOf) -> Any:
    """What every row with a key fulfils, as far as it helps to skip: the column of single keys lies between the ends."""
    found = _in(parts)
    if len(keys.sets) != 1:
        return found
    (only,) = keys.sets
    for at, column in enumerate(only.columns):
        values = [value[at] for value in only.values]
        there = [value for value in values if value is not None]
        if len(there) == len(values) and values and not isinstance(values[0], bool):
            found = found & (pc.field(column) >= min(there)) & (pc.field(column) <= max(there))
    return found


def may_hold(file: File, keys: AnyOf) -> bool:
    """Whether a file may have a row with one of the keys, by the log."""
    return any(
        all(file.may_have(column, {value[at] for value in each.values}) for at, column in enumerate(each.columns))
        for each in keys.sets
        if each.values
    )


def _mask(rows: Any, parts: Parts, keys: AnyOf) -> Any:
    """Which rows are of these parts and have one of the keys. NULL is a key like any other."""
    part = rows.column(schemas.PART).to_numpy()
    inside = reduce(or_, ((part >= lo) & (part <= hi) for lo, hi in parts.ranges), np.zeros(len(part), dtype=bool))
    return inside & reduce(or_, (_having(rows, each) for each in keys.sets), np.zeros(len(part), dtype=bool))


def _having(rows: Any, keys: TouchedKeys) -> Any:
    if not keys.columns or not keys.values:
        return np.zeros(rows.num_rows, dtype=bool)
    code, wanted = np.zeros(rows.num_rows, dtype=np.int64), np.zeros(len(keys.values), dtype=np.int64)
    known = np.ones(rows.num_rows, dtype=bool)
    for at, name in enumerate(keys.columns):
        column = rows.column(name)
        if pa.types.is_integer(column.type):
            column = column.cast(pa.int64())  # a narrower column of an input is looked at by values of the result
        values = pa.array([value[at] for value in keys.values], type=column.type)
        distinct = pc.unique(values)
        places = pc.index_in(column, value_set=distinct).combine_chunks()
        known &= pc.is_valid(places).to_numpy(zero_copy_only=False)
        code = code * len(distinct) + pc.fill_null(places, 0).to_numpy(zero_copy_only=False)
        wanted = wanted * len(distinct) + pc.index_in(values, value_set=distinct).to_numpy(zero_copy_only=False)
        # Codes stay small: at most as many as there are keys.
        numbers = np.unique(wanted)
        spot = np.minimum(np.searchsorted(numbers, code), len(numbers) - 1)
        known &= numbers[spot] == code
        code, wanted = spot, np.searchsorted(numbers, wanted)
    return known


def _digests(spark: SparkSession, rows: Any, schema: str, leave_out: Collection[str]) -> dict[int, str]:
    """As Spark hashes them. Of values in memory it needs no job for that."""
    if not rows.num_rows:
        return {}
    hidden = {schemas.PART, schemas.PART_TIMESTAMP, *leave_out}
    content = [(name, kind) for name, kind in schemas.fields(schema) if name not in hidden]
    hashes = [f"{row_hash(content, salt)} AS h{at}" for at, salt in enumerate(CHAINS)]
    found = in_memory(spark, rows).selectExpr(schemas.PART, *hashes).collect()
    found.sort(key=lambda row: row[0])
    parts = np.array([row[0] for row in found], dtype=np.int64)
    return of_hashes(parts, [np.array([row[1 + at] for row in found], dtype=np.int64) for at in range(len(CHAINS))])
