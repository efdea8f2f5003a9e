"""From the bytes of files to rows that know their part, or why they have none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from partwise.definitions.definitions import Time
from partwise.sources import bounds as b
from partwise.sources.bounds import Bounds
from partwise.sources.closing import MICROS
from partwise.sql.types.declared import NUMBERS, base, scale_of
from partwise.sql.types.names import DECIMALS
from partwise.storage import schema as schemas
from spark_jobs.ingest.files.find import NANOS
from spark_jobs.ingest.files.layout import TIMES, Layout
from spark_jobs.ingest.stored import FILE as FILE
from spark_jobs.ingest.stored import plain_schema, stored_type
from spark_jobs.paths import literal

BAD, WHY, WHEN, TEXT, LAYOUT, LINE = "__bad", "__why", "__when", "__text", "__layout", "__line"
#: How many values of a row its declared decimals round.
ROUNDED = "__rounded"
RAW = "__raw"
#: Columns of the table that say where a row came from: no content.
NO_CONTENT = (FILE,)
_CSV = {"header": "true", "escape": '"', "columnPruning": "false", "columnNameOfCorruptRecord": BAD}
_JSON = {"columnNameOfCorruptRecord": BAD}
#: A date at the front: without it a cast takes `10:05` for today, and `2026` for the first of January.
_DATED = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_AS_JSON = "map('timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSXXX')"


@dataclass(frozen=True)
class Shape:
    """What rows of a source or dimension look like: declared columns, the event time, the length of parts."""

    columns: Mapping[str, str]
    time: Time | None
    length: int

    def kind(self, name: str) -> str | None:
        return next((kind for n, kind in self.columns.items() if n.lower() == name.lower()), None)


def stored_schema(spark: SparkSession, columns: Mapping[str, str], parts: bool) -> str:
    """The schema of the table. Raises BadSchema."""
    if (found := plain_schema(columns, parts)) is not None:
        return found
    named = {**(dict(schemas.PART_FIELDS) if parts else {}), **columns, FILE: "int"}
    types = ", ".join(
        f"CAST(NULL AS {schemas.sql_type(stored_type(kind))}) AS {schemas.quoted(n)}" for n, kind in named.items()
    )
    return schemas.normal(json.dumps(spark.sql(f"SELECT {types}").schema.jsonValue()))


def read(spark: SparkSession, layout: Layout, paths: Sequence[str], shape: Shape, numbered: bool = False) -> DataFrame:
    """The rows of files of one layout, as they are: declared columns (times as text), the file's id, `__bad`.

    `numbered`: with the number of the row, where Spark knows it.
    """
    safe = [literal(path) for path in paths]
    if layout.format == "parquet":
        rows = _parquet(spark, layout, safe)
    elif layout.format == "csv":
        rows = spark.read.schema(read_schema(shape, layout)).options(**_CSV, multiLine=layout.broken).csv(safe)
    else:
        rows = spark.read.schema(read_schema(shape, layout)).options(**_JSON).json(safe)
    header = json.dumps([name for name, _ in layout.columns]) if layout.format == "csv" else None
    return _known(rows, shape).select(
        "*",
        F.expr("cast(substring_index(_metadata.file_name, '.', 1) as int)").alias(FILE),
        F.lit(header).cast("string").alias(LAYOUT),
        F.expr("_metadata.row_index + 1" if numbered and layout.format == "parquet" else "NULL")
        .cast("long")
        .alias(LINE),
    )


def _parquet(spark: SparkSession, layout: Layout, paths: Sequence[str]) -> DataFrame:
    """Columns as stored, but for two: nanoseconds come as numbers (see `session.MEANING`), and nothing at all as int."""
    changed = {}
    for name, kind in layout.columns:
        column = schemas.quoted(name)
        if kind.startswith(NANOS):
            changed[name] = F.expr(f"timestamp_micros(({column} - pmod({column}, 1000L)) div 1000L)")
        elif kind == "null":
            changed[name] = F.lit(None)
    rows = spark.read.option("recursiveFileLookup", "true").parquet(*paths)
    return rows.withColumns({**changed, BAD: F.lit(None).cast("string")})


def again(rows: DataFrame, layout: str | None, shape: Shape) -> DataFrame:
    """Quarantined rows (text, file and line) read like the files that they came from."""
    if layout is None:
        found = F.from_json(TEXT, read_schema(shape, Layout("json", ())), {**_JSON, "mode": "PERMISSIVE"})
    else:
        kind = Layout("csv", tuple((name, "string") for name in json.loads(layout)))
        found = F.from_csv(TEXT, read_schema(shape, kind), {**_CSV, "mode": "PERMISSIVE"})
    parsed = rows.select(found.alias("__row"), TEXT, FILE, LINE)
    known = _known(parsed.select("__row.*", TEXT, FILE, LINE), shape, TEXT, FILE, LINE)
    return known.withColumn(LAYOUT, F.lit(layout).cast("string"))


def _known(rows: DataFrame, shape: Shape, *more: str) -> DataFrame:
    """The declared columns. Rows that were quarantined before a column was declared do not have it."""
    have = {name.lower(): F.col(schemas.quoted(name)) for name in rows.columns}
    chosen = [have.get(name.lower(), F.lit(None)).alias(name) for name in shape.columns]
    return rows.select(*chosen, BAD, *more) if more else rows.select(*chosen, BAD, "_metadata")


def read_schema(shape: Shape, layout: Layout) -> str:
    names = [name for name, _ in layout.columns] if layout.format == "csv" else list(shape.columns)
    types = [(name, _read_type(shape.kind(name))) for name in names]
    return ", ".join(f"{schemas.quoted(name)} {kind}" for name, kind in [*types, (BAD, "string")])


def _read_type(declared: str | None) -> str:
    """Decimals are read as text as well: what their type rounds is seen only there."""
    as_text = declared is None or base(declared) in TIMES or base(declared) in DECIMALS
    return "string" if as_text or declared is None else stored_type(declared)


def telling(shape: Shape) -> list[str]:
    """Columns that decide, of rows that Spark can read, which have a part: those read as text, and the event time."""
    time = shape.time.column.lower() if shape.time else None
    return [n for n, kind in shape.columns.items() if _read_type(kind) == "string" or n.lower() == time]


def placed(rows: DataFrame, shape: Shape, limits: Bounds, text: bool = False) -> DataFrame:
    """Rows with the table's columns, why they cannot be placed (0: they can), and their event time.

    `text` adds the row as it is kept in quarantine.
    """
    raw = dict(rows.dtypes)
    stored = {name: _typed(schemas.quoted(name), raw[name], stored_type(kind)) for name, kind in shape.columns.items()}
    time = next((n for n in shape.columns if shape.time and n.lower() == shape.time.column.lower()), None)
    wrong = [f"{BAD} IS NOT NULL"]
    wrong += [
        f"({_given(schemas.quoted(name), raw[name])} AND ({cast}) IS NULL)"
        for name, cast in stored.items()
        if cast != schemas.quoted(name) and name != time
    ]
    if time is None:
        when, why = "CAST(NULL AS bigint)", f"CASE WHEN {' OR '.join(wrong)} THEN {b.UNREADABLE} ELSE 0 END"
    else:
        assert shape.time is not None
        when = _micros(schemas.quoted(time), raw[time], shape.time)
        why = _why(wrong, _given(schemas.quoted(time), raw[time]), limits, shape.length)
    columns = [f"{value} AS {schemas.quoted(name)}" for name, value in stored.items()]
    columns.append(f"{_rounded(shape, raw)} AS {ROUNDED}")
    if TEXT in raw:
        kept = [TEXT, LAYOUT, LINE, f"true AS {RAW}"]  # it was in quarantine before, and stays as it is
    else:
        text_ = f"coalesce({BAD}, {_as_json(rows, shape)}) AS {TEXT}"
        kept = [text_, f"CASE WHEN {BAD} IS NOT NULL THEN {LAYOUT} END AS {LAYOUT}", LINE]
        kept.append(f"{BAD} IS NOT NULL AS {RAW}")
    # The event time is computed once, below the columns that use it.
    timed = rows.selectExpr("*", f"{when} AS {WHEN}")
    found = timed.selectExpr(f"{why} AS {WHY}", WHEN, *columns, FILE, *(kept if text else ()))
    if time is None:
        return found
    size = shape.length * MICROS
    return found.selectExpr(
        f"CASE WHEN {WHY} = 0 THEN ({WHEN} - pmod({WHEN}, {size}L)) div {size}L END AS {schemas.PART}",
        f"CASE WHEN {WHY} = 0 THEN timestamp_micros({WHEN} - pmod({WHEN}, {size}L)) END AS {schemas.PART_TIMESTAMP}",
        "*",
    )


def _given(column: str, raw: str) -> str:
    return f"({column} IS NOT NULL AND trim({column}) <> '')" if raw == "string" else f"{column} IS NOT NULL"


def _typed(column: str, raw: str, kind: str) -> str:
    if base(kind) in TIMES and raw == "string":
        return f"CASE WHEN trim({column}) RLIKE '{_DATED}' THEN try_cast(trim({column}) AS {kind}) END"
    if base(kind) in DECIMALS and raw == "string":
        column = f"replace({column}, ',', '')"  # thousands: as Spark's reader of CSV takes them
    same = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint", "real": "float"}
    plain = "".join(kind.lower().split())
    return column if raw == same.get(plain, plain) else f"try_cast({column} AS {kind})"


def _rounded(shape: Shape, raw: Mapping[str, str]) -> str:
    """How many decimals of a row have digits that their type does not keep."""
    found = []
    for name, kind in shape.columns.items():
        if base(kind) not in DECIMALS:
            continue
        column, of = schemas.quoted(name), raw[name]
        typed, scale = _typed(column, of, kind), scale_of(kind)
        if of == "string":
            more = f"{column} RLIKE '[.][0-9]{{{scale}}}[0-9]*[1-9][0-9]* *$'"
            power = f"{column} RLIKE '[eE]' AND CAST({typed} AS double) <> try_cast({column} AS double)"
            found.append(f"CASE WHEN ({typed}) IS NOT NULL AND ({more} OR {power}) THEN 1 ELSE 0 END")
        elif typed != column:
            found.append(f"CASE WHEN CAST({typed} AS {of}) <> {column} THEN 1 ELSE 0 END")
    return " + ".join(found) or "0"


def _micros(column: str, raw: str, time: Time) -> str:
    """Microseconds since 1970; NULL where there is no such time."""
    if time.unit is None:
        moment = _typed(column, raw, "timestamp") if raw == "string" else f"CAST({column} AS timestamp)"
        return f"unix_micros({moment})"
    factor = MICROS if time.unit == "seconds" else 1000
    kind = base(raw)
    if kind in ("double", "float"):
        return f"CASE WHEN NOT isnan({column}) THEN try_cast({column} * {factor}D AS bigint) END"
    if kind in NUMBERS and kind != "decimal":
        return f"try_multiply(CAST({column} AS bigint), {factor}L)"
    return f"try_cast(floor(try_multiply(try_cast({column} AS decimal(28,6)), {factor}L)) AS bigint)"


def _why(wrong: list[str], given: str, limits: Bounds, length: int) -> str:
    cases = [
        (" OR ".join(wrong), b.UNREADABLE),
        (f"NOT {given}", b.NO_TIME),
        (f"{WHEN} IS NULL", b.BAD_TIME),
        (f"{WHEN} NOT BETWEEN {b.FIRST_MICROS}L AND {b.LAST_MICROS}L", b.NO_CALENDAR),
    ]
    if limits.oldest is not None:
        cases.append((f"{WHEN} < {limits.oldest}L", b.TOO_OLD))
    if limits.newest is not None:
        cases.append((f"{WHEN} > {limits.newest}L", b.TOO_NEW))
    if limits.floor is not None:
        cases.append((f"{WHEN} < {limits.floor * length * MICROS}L", b.EXPIRED))
    return "CASE " + " ".join(f"WHEN {condition} THEN {code}" for condition, code in cases) + " ELSE 0 END"


def _as_json(rows: DataFrame, shape: Shape) -> str:
    fields = ", ".join(schemas.quoted(name) for name in shape.columns)
    return f"to_json(struct({fields}), {_AS_JSON})"
