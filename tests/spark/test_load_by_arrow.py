"""Small files that Arrow reads: the rows and digests are those that Spark gives, over files with everything in them."""

from __future__ import annotations

import datetime as dt
import gzip
import math
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from partwise.definitions.definitions import Time
from partwise.sources.bounds import Bounds
from partwise.sources.files import ListedFile
from spark_jobs.ingest.files import by_arrow
from spark_jobs.ingest.files import rows as r
from spark_jobs.ingest.files.find import RefusedFile, look_into
from spark_jobs.ingest.files.layout import Layout, layout_of
from spark_jobs.ingest.files.rows import NO_CONTENT, Shape
from spark_jobs.step import small
from spark_jobs.step.digest import added
from tests.spark.landing import World

pytestmark = pytest.mark.spark

COLUMNS = {
    "at": "timestamp",
    "yes": "boolean",
    "tiny": "tinyint",
    "small": "smallint",
    "medium": "int",
    "large": "bigint",
    "single": "float",
    "double": "double",
    "price": "decimal(7,2)",
    "exact": "decimal(18,0)",
    "text": "string",
    "day": "date",
    "also": "timestamp_ntz",
}
SHAPE = Shape(COLUMNS, Time("at"), 60)
LIMITS = Bounds()
GOOD = {
    "at": "2026-10-03T10:00:00",
    "yes": "true",
    "tiny": "1",
    "small": "2",
    "medium": "3",
    "large": "4",
    "single": "0.5",
    "double": "0.25",
    "price": "1.10",
    "exact": "7",
    "text": "a",
    "day": "2026-10-03",
    "also": "2026-10-03 10:00:00",
}
TIMES = [
    "2026-10-03", "2026-10-03 10:05", "2026-10-03T10:05", "2026-10-03T10:05:06.1", "2026-10-03T10:05:06.123456",
    "2026-10-03T10:05:06.1234567", "2026-10-03T10:05:06Z", "2026-10-03T10:05Z", "2026-10-03T10:05:06+02:00", "10:05",
    "2026", "2026-02-29 00:00:00", "2024-02-29 00:00:00", "0001-01-01 00:00:00", "0000-01-01 00:00:00",
    "9999-12-31 23:59:59.999999", "1582-10-10 00:00:00", "1900-01-01 00:00:00", "2026-10-03T24:00:00",
    "2026-10-03T23:59:60", " 2026-10-03T10:05:06", "2026-10-03T10:05:06 ", "2026-1-3 1:2:3", "2026-10-03t10:05:06",
    "now", "", "1969-12-31T23:59:59.999999", "2026-10-03T10:05:06.", "2026-10-03 10:05:06 UTC", "ZZ",
]  # fmt: skip
NUMBERS = [
    "0", "-0", "+1", "007", "-007", " 1", "1 ", "127", "128", "-128", "-129", "32767", "32768", "2147483647",
    "2147483648", "9223372036854775807", "9223372036854775808", "999999999999999999", "-999999999999999999", "1.0",
    "1.5", "1.", ".5", "-.5", "1e3", "1E-3", "1e+3", "1e400", "1e99", "-1e-99", "1e38", "1e39", "1e-46", "NaN",
    "Infinity", "-Infinity", "Inf", "inf", "nan", "0x10", "1d", "1f", "1_000", "123456789012345.12345678901234567",
    "0.1", "0.30000000000000004", "2.2250738585072011e-308", "16777217", "16777217.0000001", "-0.0", "1,5",
    "99999.99", "99999.999", "100000.00", "0.005", "1.10000", "00000000001.1", "1.1e1", "\u0661", "", "null", "NULL",
]  # fmt: skip
TEXTS = [
    "", " ", "  x  ", "NULL", "null", "\\N", "a'b", "a\\b", "\\", "#c", "é中😀", "\u2028", "\u00a0", "\t", "\x01",
    "x" * 7, "x" * 8, "x" * 9, "x" * 31, "x" * 32, "x" * 33, "x" * 63, "x" * 65, "y" * 1_000, '"', '"a,b"', 'a"b"c',
    "\ufeff", "'", "`", "$", "-0.0", "true",
]  # fmt: skip
BOOLEANS = ["true", "false", "TRUE", "False", "tRuE", "t", "yes", "1", "0", " true", ""]
#: Every value once in a row whose other values are good.
NASTY = {
    "at": TIMES, "also": TIMES, "day": TIMES, "yes": BOOLEANS, "text": TEXTS,
    **dict.fromkeys(("tiny", "small", "medium", "large", "single", "double", "price", "exact"), NUMBERS),
}  # fmt: skip


def line(**given: str) -> str:
    return ",".join({**GOOD, **given}.values())


HEADER = ",".join(COLUMNS)
WHOLE = [
    f"{HEADER}\n",
    HEADER,
    f"{HEADER}\n\n\n{line()}\n\n{line(text='b')}",
    f"\n\n{HEADER}\n{line()}\n",
    f"{HEADER}\n{line()}\n  \n{line()}\n",
    f"{HEADER}\r\n{line()}\r\n{line(text='')}\r\n",
    f"{HEADER}\n{line()}\r{line()}\n",
    f"{HEADER}\n{line()}\r\n{line()}\n",
    f"\ufeff{HEADER}\n{line()}\n",
    f"{HEADER}\n{line()},more\n{line()}\n",
    f"{HEADER}\n{line().rpartition(',')[0]}\n{line()}\n",
    f"{HEADER}\n{line()},\n",
    f" {HEADER.replace(',', ' , ')}\n{line()}\n",
    f"{HEADER}\n{line(text='a' + chr(0))}\n",
    f"{HEADER.upper()}\n{line()}\n",
    f"  \n{HEADER}\n{line()}\n",
]


def places(folder: Path, contents: list[bytes], ending: str) -> list[tuple[int, Any, Layout]]:
    found = []
    for number, content in enumerate(contents, 1):
        path = folder / f"{number}{ending}"
        path.write_bytes(content)
        seen = ListedFile(path.name, path.stat().st_size, path.stat().st_mtime_ns)
        try:
            file = look_into(str(path), seen)
            found.append((number, file, layout_of(file, COLUMNS, "at")))
        except RefusedFile:
            continue
    return found


def written(rows: pa.Table) -> list[str]:
    """Times as numbers: Python knows fewer years than tables do."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_date32(field.type) or pa.types.is_timestamp(field.type):
            plain = pa.int32() if pa.types.is_date32(field.type) else pa.int64()
            rows = rows.set_column(at, field.name, rows.column(at).cast(plain))
    return [repr(row) for row in rows.to_pylist()]


def by_spark(spark: SparkSession, files: list[tuple[int, Any, Layout]], schema: str) -> dict[int, Any]:
    """File → its rows as text and their digest, or None if one of them cannot be placed or is rounded."""
    found: dict[int, Any] = {}
    layouts: dict[Layout, list[tuple[int, Any]]] = {}
    for number, file, layout in files:
        layouts.setdefault(layout, []).append((number, file))
    for layout, group in layouts.items():
        read = r.placed(r.read(spark, layout, [file.path for _, file in group], SHAPE), SHAPE, LIMITS).cache()
        bad = {row[0] for row in read.where(f"{r.WHY} <> 0 OR {r.ROUNDED} <> 0").select(r.FILE).distinct().collect()}
        good = read.where(~F.col(r.FILE).isin(*bad)) if bad else read
        # Each file's rows are a part of their own for the digests.
        alone = good.withColumn("part", F.col(r.FILE).cast("long")).drop(r.WHY, r.WHEN, r.ROUNDED)
        own = small.collect(alone, schema, NO_CONTENT)
        rows = small.collect(good.drop(r.WHY, r.WHEN, r.ROUNDED), schema, NO_CONTENT).rows
        texts: dict[int, list[str]] = {}
        for row, text in zip(rows[r.FILE].to_pylist(), written(rows), strict=True):
            texts.setdefault(row, []).append(text)
        for number, _ in group:
            found[number] = None if number in bad else (sorted(texts.get(number, [])), own.digests.get(number))
        read.unpersist()
    return found


def compared(spark: SparkSession, files: list[tuple[int, Any, Layout]]) -> set[int]:
    """The files that Arrow reads; each as Spark does."""
    schema = r.stored_schema(spark, COLUMNS, parts=True)
    expected, taken, wrong = by_spark(spark, files, schema), set(), []
    for number, file, layout in files:
        try:
            found = by_arrow.read([(number, file, layout)], SHAPE, schema, LIMITS, None)
        except by_arrow.SparkDecides:
            continue
        taken.add(number)
        theirs = expected[number]  # None: Spark quarantines a row, or rounds a value
        if theirs != (sorted(written(found.rows)), added(found.digests.values())):
            wrong.append((Path(file.path).read_bytes()[-200:], theirs, written(found.rows)))
    assert wrong == []
    return taken


def test_text_is_read_as_spark_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    contents = [
        f"{HEADER}\n{line()}\n{line(**{name: value})}\n".encode() for name, values in NASTY.items() for value in values
    ]
    taken = compared(spark, places(tmp_path, contents, ".csv"))
    assert len(taken) > 200, len(taken)


def test_files_are_cut_into_lines_as_spark_cuts_them(spark: SparkSession, tmp_path: Path) -> None:
    files = places(tmp_path, [text.encode() for text in WHOLE], ".csv")
    taken = compared(spark, files)
    assert {3, 4, 6, 9} <= taken
    packed = tmp_path / "packed"
    packed.mkdir()
    assert compared(spark, places(packed, [gzip.compress(WHOLE[2].encode())], ".csv.gz")) == {1}


def test_random_rows_of_text(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random("rows")

    def some(name: str) -> str:
        fine = {
            "at": TIMES[3:5],
            "also": TIMES[3:5],
            "day": ["2026-10-03", ""],
            "yes": BOOLEANS[:5],
            "text": TEXTS[:20],
        }
        if rng.random() < 0.2:
            return "" if name != "at" else GOOD["at"]
        if name in fine:
            return rng.choice(fine[name])
        most = {"tiny": 127, "small": 32_767, "medium": 2**31 - 1, "large": 10**17}.get(name)
        if most is not None:
            return str(rng.randint(-most, most))
        if name in ("single", "double"):
            return rng.choice([repr(rng.uniform(-1e6, 1e6))[:17], f"{rng.randint(0, 99)}e{rng.randint(-20, 20)}"])
        return f"{rng.randint(-9999, 9999)}" + ("" if name == "exact" else f".{rng.randint(0, 99)}")

    contents = [
        "\n".join([HEADER, *(line(**{n: some(n) for n in COLUMNS}) for _ in range(rng.choice([1, 5, 300])))]).encode()
        for _ in range(10)
    ]
    assert len(compared(spark, places(tmp_path, contents, ".csv"))) >= 8


UTC = dt.UTC
MOMENTS = [dt.datetime(2026, 10, 3, 10, 5, 6, 123_456, UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)]


def parquet(folder: Path, number: int, given: dict[str, pa.Array]) -> bytes:
    columns: dict[str, Any] = {
        "at": pa.array(MOMENTS, pa.timestamp("us", tz="UTC")),
        "yes": pa.array([True, None]),
        "tiny": pa.array([-128, None], pa.int8()),
        "small": pa.array([1, 2], pa.int16()),
        "medium": pa.array([1, -2], pa.int32()),
        "large": pa.array([2**63 - 1, -(2**63)], pa.int64()),
        "single": pa.array([0.1, -0.0], pa.float32()),
        "double": pa.array([math.nan, -0.0], pa.float64()),
        "price": pa.array([Decimal("-1.10"), None], pa.decimal128(7, 2)),
        "exact": pa.array([Decimal(10**18 - 1), Decimal(-5)], pa.decimal128(18, 0)),
        "text": pa.array(["", "é中😀" * 20]),
        "day": pa.array([dt.date(1, 1, 1), None]),
        "also": pa.array([None, dt.datetime(9999, 12, 31, tzinfo=UTC)], pa.timestamp("us")),
    }
    path = folder / f"made-{number}"
    pq.write_table(pa.table({**columns, **given}), path)
    return path.read_bytes()


def test_parquet_is_read_as_spark_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    nanos = pa.array([1_759_485_906_123_456_789, -1], pa.timestamp("ns", tz="UTC"))
    others: list[dict[str, Any]] = [
        {},
        {"at": pa.array([MOMENTS[0].replace(tzinfo=None), MOMENTS[1].replace(tzinfo=None)], pa.timestamp("us"))},
        {"at": pa.array([1_759_485_906_123, -1], pa.timestamp("ms", tz="Europe/Berlin"))},
        {"at": nanos},
        {"at": nanos.cast(pa.int64()).cast(pa.timestamp("ns")), "also": pa.array([None, -1001], pa.timestamp("ns"))},
        {"at": pa.array(MOMENTS, pa.timestamp("us", tz="UTC")), "double": pa.array([math.inf, -math.inf])},
        {"tiny": pa.array([1, 127], pa.int64()), "large": pa.array([1, -1], pa.int8())},
        {"tiny": pa.array([1, 128], pa.int64())},
        {"medium": pa.array([1.0, 2.5])},
        {"double": pa.array([1.0, 2.5], pa.float32())},
        {"text": pa.array(["a", None], pa.large_string())},
        {"text": pa.array(["a", "b"]).dictionary_encode()},
        {"text": pa.array([1, 2])},
        {"price": pa.array([Decimal("1.1"), None], pa.decimal128(5, 1))},
        {"price": pa.array([Decimal("1.123"), None], pa.decimal128(9, 3))},
        {"medium": pa.array([1, 2], pa.uint32())},
        {"yes": pa.nulls(2)},
        {"day": pa.array(MOMENTS, pa.timestamp("us", tz="UTC"))},
        {"at": pa.array([MOMENTS[0], None], pa.timestamp("us", tz="UTC"))},
        {"at": pa.array(["2026-10-03T10:05:06", "2026-10-03T10:05:07"])},
        {"at": pa.array([dt.date(2026, 10, 3), dt.date(1969, 12, 31)])},
    ]
    contents = [parquet(tmp_path, number, given) for number, given in enumerate(others)]
    taken = compared(spark, places(tmp_path, contents, ".parquet"))
    assert {1, 2, 3, 4, 5, 6, 7, 11} <= taken


def test_what_comes_in_is_the_same_with_and_without(spark: SparkSession, tmp_path: Path) -> None:
    """Two workspaces over the same deliveries, late and wrong rows among them; one of them loads all of it by Spark."""
    worlds = [World(spark, tmp_path / name).define(_BOUNDED) for name in ("arrow", "spark")]
    deliveries = [
        "event_time,src,loss\n2026-10-03T03:00:00,a,1\n2026-10-03T03:59:00,b,2.5\n",
        "event_time,src,loss\n2026-10-03T03:58:30,a,3\n2026-10-03T02:00:00,late,4\n",
        "event_time,src,loss\n2026-10-03T03:59:30,c,5\nsoon,d,6\n",
        "event_time,src,loss\n2026-10-03T09:00:00,ahead,5\n",
        'event_time,src,loss\n2026-10-03T03:59:40,"e,f",7\n',
        "event_time,src,loss\n",
    ]
    for at, content in enumerate(deliveries):
        told = []
        for world, rows in zip(worlds, (100_000, 0), strict=True):
            world.put(f"m/{at}.csv", content)
            world.engine = replace(world.engine, small_rows=rows)
            done = world.ingest()
            told.append((done.rows, done.late_rows, done.quarantined, list(done.closed), list(done.changed)))
        assert told[0] == told[1], content
    assert worlds[0].rows() == worlds[1].rows()
    assert sorted(worlds[0].aside()) == sorted(worlds[1].aside())
    assert worlds[0].revisions() == worlds[1].revisions()
    for world in worlds:
        world.check()


_BOUNDED = """
source: m
part: 1 minute
time: event_time
columns: {event_time: timestamp, src: string, loss: double}
files: landing/m/*
late: {accept: 1 hour, future: 1 hour}
"""
