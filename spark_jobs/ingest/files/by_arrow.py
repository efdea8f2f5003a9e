"""Small files whose values Arrow reads as Spark does: loaded without a job of Spark, and without starting it.

Only what is beyond doubt is read here: values written in the one way that both read alike, rows that all have a
place. Whatever else a file holds (quotation marks, times with a zone, numbers with blanks, a row for quarantine), Spark
reads the files, as if nobody had looked at them before.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv as arrow_csv  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from partwise.sources import bounds as b
from partwise.sources.bounds import Bounds
from partwise.sources.closing import MICROS
from partwise.sql.types.names import decimal_of
from partwise.storage import schema as schemas
from spark_jobs.ingest.files.find import FoundFile
from spark_jobs.ingest.files.layout import Layout
from spark_jobs.ingest.files.row_hashes import TooLong, row_hashes
from spark_jobs.ingest.files.rows import Shape
from spark_jobs.ingest.stored import FILE, stored_type, type_of
from spark_jobs.step.digest import CHAINS, of_hashes

_DAY = 86_400 * MICROS
_MOMENT = pa.timestamp("us", tz="UTC")
_TYPES = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": _MOMENT,
}
_WHOLE = ("byte", "short", "integer", "long")
_REAL = "^-?[0-9]{1,15}([.][0-9]{1,17})?([eE][+-]?[0-9]{1,2})?$"
#: How values must be written in text, so that there is only one way to read them.
_WRITTEN = {
    "boolean": "^(?i:true|false)$",
    **dict.fromkeys(_WHOLE, "^-?[0-9]{1,18}$"),
    "float": _REAL,
    "double": _REAL,
    "date": "^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$",
    "timestamp": "^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?Z?)?$",
}


class SparkDecides(Exception):
    """Something that Spark may read in another way, or that is to be quarantined."""


@dataclass(frozen=True)
class ReadRows:
    """Rows as the table stores them, sorted by part; their digests, and the newest event time (None without rows)."""

    rows: Any  # pyarrow.Table
    digests: dict[int, str]
    newest: int | None


def read(
    files: Iterable[tuple[int, FoundFile, Layout]],
    shape: Shape,
    schema: str,
    limits: Bounds,
    watermark: int | None,
    part: int | None = None,
) -> ReadRows:
    """All rows of these files, with the columns of `schema`. `part`: they are of this part, which is not stored.

    Raises SparkDecides.
    """
    try:
        read = [_file(number, found, layout, shape) for number, found, layout in files if layout.has_rows]
        if not read:
            raise SparkDecides("no rows")
        rows = pa.concat_tables(read)
        if part is None:
            rows, parts, newest = _placed(rows, shape, limits, watermark)
        else:
            parts, newest = np.full(rows.num_rows, part), None
        rows = rows.select(schemas.names(schema))
        wanted = pa.schema([(name, _arrow(kind)) for name, kind in schemas.fields(schema)])
        if rows.schema.types != wanted.types:
            raise SparkDecides("the table has other types")
        hidden = {schemas.PART, schemas.PART_TIMESTAMP, FILE}
        content = [name for name in schemas.names(schema) if name not in hidden]
        digests = of_hashes(parts, [row_hashes(rows, content, salt) for salt in CHAINS])
    except (pa.ArrowException, TooLong, OSError, KeyError, ValueError, EOFError) as why:
        raise SparkDecides(str(why)) from why
    return ReadRows(rows, digests, newest)


def _arrow(kind: Any) -> Any:
    if isinstance(kind, str) and kind in _TYPES:
        return _TYPES[kind]
    digits = decimal_of(kind) if isinstance(kind, str) else None
    if digits is None or digits[0] > 18:
        raise SparkDecides(f"a column of type {kind}")
    return pa.decimal128(*digits)


def _file(number: int, found: FoundFile, layout: Layout, shape: Shape) -> Any:
    kinds = {name: _stored(kind) for name, kind in shape.columns.items()}
    places = {name.lower(): name for name, _ in layout.columns}
    names = {name: places[name.lower()] for name in kinds}
    if layout.format == "parquet":
        columns = _parquet(found, layout, names, kinds)
    elif layout.format == "csv" and not layout.broken and len(layout.columns) > 1:
        columns = _csv(found, layout, names, kinds)
    else:
        raise SparkDecides(f"{found.name} is {layout.format}")
    rows = pa.table(columns)
    return rows.append_column(FILE, pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows))


def _stored(kind: str) -> Any:
    return type_of(stored_type(kind))


# -- text


def _csv(found: FoundFile, layout: Layout, names: dict[str, str], kinds: dict[str, Any]) -> dict[str, Any]:
    with open(found.path, "rb") as file:
        content = file.read()
    if found.name.lower().endswith(".gz"):
        content = gzip.decompress(content)
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content.count(b"\r") != content.count(b"\r\n"):
        raise SparkDecides("carriage returns")
    if b'"' in content or b"\0" in content:
        raise SparkDecides("quotation marks")
    content = content.replace(b"\r\n", b"\n").lstrip(b"\n")
    header, _, body = content.partition(b"\n")
    there = [name for name, _ in layout.columns]
    if [name.strip() for name in header.decode().split(",")] != there:
        raise SparkDecides("another header")
    if not body.strip(b"\n"):
        return {name: pa.array([], _arrow(kind)) for name, kind in kinds.items()}
    read = arrow_csv.read_csv(
        io.BytesIO(body),
        read_options=arrow_csv.ReadOptions(column_names=there, use_threads=False, block_size=len(body) + 1),
        parse_options=arrow_csv.ParseOptions(quote_char=False, escape_char=False, ignore_empty_lines=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(there, pa.string()), null_values=[""], strings_can_be_null=True
        ),
    )
    return {name: _parsed(read.column(names[name]), kind) for name, kind in kinds.items()}


def _parsed(column: Any, kind: Any) -> Any:
    wanted = _arrow(kind)
    if kind == "string":
        return column
    pattern = _WRITTEN.get(kind) or _written_decimal(wanted)
    if pc.all(pc.match_substring_regex(column, pattern)).as_py() is False:
        raise SparkDecides(f"values of type {kind}")
    if kind == "boolean":
        return pc.equal(pc.ascii_lower(column), "true")
    if kind == "timestamp":
        return pc.cast(pc.replace_substring(column, "Z", ""), pa.timestamp("us")).cast(_MOMENT)
    found = pc.cast(column, wanted)
    if kind in ("float", "double") and pc.all(pc.is_finite(found)).as_py() is False:
        raise SparkDecides("a number too large")
    return found


def _written_decimal(wanted: Any) -> str:
    """No digit more than the type keeps."""
    before = wanted.precision - wanted.scale
    if before < 1:
        raise SparkDecides("decimals below one")
    return f"^-?[0-9]{{1,{before}}}" + (f"([.][0-9]{{1,{wanted.scale}}})?$" if wanted.scale else "$")


# -- Parquet


def _parquet(found: FoundFile, layout: Layout, names: dict[str, str], kinds: dict[str, Any]) -> dict[str, Any]:
    stored = dict(layout.columns)
    if any(stored[name].startswith("timestamp[int96") for name in names.values()):
        raise SparkDecides("times of 96 bits")
    with pq.ParquetFile(found.path) as file:
        if _other_calendar(file.metadata.metadata or {}):
            raise SparkDecides("dates of another calendar")
        read = file.read(columns=list(names.values()), use_threads=False)
    return {name: _fitting(read.column(names[name]), kind) for name, kind in kinds.items()}


def _other_calendar(said: dict[bytes, bytes]) -> bool:
    """Spark reads dates before 1582 in another way from files of its own that are old, or say so."""
    version = said.get(b"org.apache.spark.version")
    return b"org.apache.spark.legacyDateTime" in said or (version is not None and int(version.split(b".")[0]) < 3)


def _fitting(column: Any, kind: Any) -> Any:
    """What is stored as what was declared, or as narrower whole numbers."""
    wanted, have = _arrow(kind), column.type
    if have == wanted:
        return column
    if kind == "timestamp" and pa.types.is_timestamp(have):
        if have.unit == "ns":
            numbers = column.cast(pa.timestamp("ns")).cast(pa.int64())
            return _floor(numbers, 1000).cast(pa.timestamp("us")).cast(_MOMENT)
        return column.cast(pa.timestamp(have.unit)).cast(pa.timestamp("us")).cast(_MOMENT)
    whole = pa.types.is_signed_integer(have) and kind in _WHOLE
    if whole or (kind == "string" and pa.types.is_large_string(have)):
        return column.cast(wanted)
    raise SparkDecides(f"{have} where {kind} is declared")


def _floor(numbers: Any, by: int) -> Any:
    whole = pa.concat_arrays(numbers.chunks) if numbers.num_chunks else pa.array([], pa.int64())
    found = np.floor_divide(pc.fill_null(whole, 0).to_numpy(zero_copy_only=False), by)
    return pa.array(found, pa.int64(), mask=np.asarray(whole.is_null()))


# -- parts


def _placed(rows: Any, shape: Shape, limits: Bounds, watermark: int | None) -> tuple[Any, Any, int | None]:
    """The rows with their part columns, sorted by part; the parts, and the newest event time."""
    if not rows.num_rows:
        raise SparkDecides("no rows")
    when = _event_times(rows, shape)
    newest, oldest = int(when.max()), int(when.min())
    length = shape.length * MICROS
    floor = None if limits.floor is None else limits.floor * length
    if oldest < max(bound for bound in (b.FIRST_MICROS, limits.oldest, floor) if bound is not None):
        raise SparkDecides("times that are too old")
    if newest > min(bound for bound in (b.LAST_MICROS, limits.newest) if bound is not None):
        raise SparkDecides("times that are too new")
    if limits.oldest is None and limits.accept is not None:
        # As long as nothing is too old for the newest row, it does not matter which row lateness counts from.
        bound = b.too_old(b.newest_known(watermark, newest, None, limits.accept), limits.accept)
        if bound is not None and oldest < bound:
            raise SparkDecides("late rows")
    parts = np.floor_divide(when, length)
    order = np.argsort(parts, kind="stable")
    parts, rows = parts[order], rows.take(pa.array(order))
    rows = rows.append_column(schemas.PART, pa.array(parts, pa.int64()))
    stamps = pa.array(parts * length, pa.int64()).cast(pa.timestamp("us")).cast(_MOMENT)
    return rows.append_column(schemas.PART_TIMESTAMP, stamps), parts, newest


def _event_times(rows: Any, shape: Shape) -> Any:
    """Microseconds since 1970."""
    assert shape.time is not None
    name = next(n for n in rows.column_names if n.lower() == shape.time.column.lower())
    column = rows.column(name)
    if column.null_count:
        raise SparkDecides("rows without a time")
    kind = column.type
    if shape.time.unit is None and pa.types.is_timestamp(kind):
        return column.cast(pa.int64()).to_numpy()
    if shape.time.unit is None and pa.types.is_date32(kind):
        return column.cast(pa.int32()).to_numpy().astype(np.int64) * _DAY
    if shape.time.unit is not None and pa.types.is_signed_integer(kind):
        factor = MICROS if shape.time.unit == "seconds" else 1000
        numbers = column.cast(pa.int64()).to_numpy()
        if numbers.size and max(abs(int(numbers.min())), abs(int(numbers.max()))) > (1 << 62) // factor:
            raise SparkDecides("times beyond the calendar")
        return numbers * factor
    raise SparkDecides(f"a time of type {kind}")
