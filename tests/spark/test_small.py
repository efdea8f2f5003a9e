"""Small results that come as Arrow hold what Spark would have written: the same rows, types, statistics and digests."""

from __future__ import annotations

import json
import math
import random
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructType

from partwise import storage
from partwise.storage import schema as schemas
from spark_jobs.step import read, small
from spark_jobs.step.digest import digests
from spark_jobs.step.stage import stage

from .workspace import Workspace

pytestmark = pytest.mark.spark

#: How columns of all types are made of three random values a row: k (bigint), d (double), s (string).
COLUMNS = {
    "id": "id",
    "yes": "k % 2 = 0",
    "tiny": "CAST(k % 128 AS tinyint)",
    "small": "CAST(k % 32768 AS smallint)",
    "medium": "CAST(k % 2147483647 AS int)",
    "large": "k",
    "single": "CAST(d AS float)",
    "double": "d",
    "money": "CAST(k % 100000 / 100 AS decimal(7,2))",
    "price": "CAST(CAST(k % 1000000000000 AS decimal(38,0)) / 10000 AS decimal(18,4))",
    "exact": "CAST(CAST(k AS decimal(38,0)) * 12345678901234567L AS decimal(38,0))",
    "text": "s",
    "bytes": "CAST(s AS binary)",
    "broken": "CAST(unhex('ff00c3') AS string) || s",  # no UTF-8
    "day": "date_add(date'1970-01-01', CAST(k % 700000 AS int))",  # from the year 53 on
    "moment": "timestamp_micros(k % 62000000000000000)",
    "many": "IF(k % 5 = 0, NULL, array(d, NULL, -d))",
    "none": "IF(k % 7 = 0, NULL, filter(array(s, NULL), x -> k % 3 > 0))",
    "pair": "IF(k % 4 = 0, NULL, named_struct('a', IF(k % 3 = 0, NULL, d), 'b', named_struct('c', s, 't', timestamp_micros(k % 1000))))",
    "pairs": "array(named_struct('x', k, 'y', array(s)), NULL)",
    "named": "IF(k % 6 = 0, NULL, map('-', d, coalesce(s, '') || '!', NULL))",
    "deep": "map(coalesce(CAST(k % 10 AS int), 99), map_from_arrays(array(coalesce(s, '')), array(array(CAST(k % 100 AS decimal(5,1))))))",
    "fixed": "1",  # not nullable
}
NASTY = [
    "",
    " ",
    "NULL",
    "null",
    "\x00",
    "a,b\"c'd\\e",
    "line\nbreak\r\n",
    "é中😀",
    "\u2028",
    "x" * 300,
    "$.`{}",
    "-0.0",
]
DOUBLES = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1]
#: A NaN with another sign and other bits than Java's.
ODD_NAN = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
LONGS = [0, -1, 1, 2**63 - 1, -(2**63) + 1, 10**15]


def random_rows(spark: SparkSession, seed: int, count: int, parts: int) -> DataFrame:
    rng = random.Random(seed)
    rows: list[tuple[Any, ...]] = [
        (
            number,
            rng.randrange(-3, parts - 3),
            rng.choice([None, rng.choice(LONGS), rng.randrange(-(2**62), 2**62)]),
            rng.choice([None, rng.choice([*DOUBLES, ODD_NAN]), rng.uniform(-1e6, 1e6)]),
            rng.choice([None, rng.choice(NASTY), "".join(chr(rng.randrange(1, 0x2000)) for _ in range(5))]),
        )
        for number in range(count)
    ]
    made = spark.createDataFrame(rows, "id bigint, part bigint, k bigint, d double, s string")
    return made.selectExpr(
        "part", "timestamp_seconds(part * 60) AS part_timestamp", *(f"{e} AS {n}" for n, e in COLUMNS.items())
    )


def table_for(rows: DataFrame, path: Path) -> storage.Handle:
    return storage.create(str(path), schemas.normal(json.dumps(rows.schema.jsonValue())))


def stored(handle: storage.Handle, files: tuple[storage.File, ...]) -> tuple[list[str], list[tuple[str, str, str]]]:
    """The rows of files as text (as Arrow reads them), and the physical types of their columns."""
    texts, types = [], []
    for uri in handle.uris(files):
        table = pq.read_table(uri, binary_type=None)
        table = table.set_column(table.column_names.index("broken"), "broken", table["broken"].cast("binary"))
        texts += [repr(row) for row in table.to_pylist()]
        described = pq.read_metadata(uri).schema
        types = [
            (column.path, column.physical_type, str(column.logical_type))
            for column in (described.column(at) for at in range(len(described)))
        ]
    return sorted(texts), types


@pytest.mark.parametrize("seed", range(3))
def test_both_ways_store_the_same(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rows = random_rows(spark, seed, 150, 6).localCheckpoint()
    handle = table_for(rows, tmp_path / "t")
    by_spark = stage(rows, handle, "spark")
    collected = small.collect(rows, handle.schema)
    by_arrow = small.stage(collected, handle, "arrow")
    expected = digests(read.staged(spark, handle, by_spark), handle.schema)
    assert collected.digests == expected
    assert digests(read.staged(spark, handle, by_arrow), handle.schema) == expected
    assert stored(handle, by_arrow) == stored(handle, by_spark)
    # Delta takes both, with the same statistics.
    version = storage.commit(handle, by_arrow, (), {})
    again = storage.open_at(handle.path, version)
    (file,) = again.files
    assert (file.rows, file.lo, file.hi) == (150, -3, 2)
    assert list(pq.read_table(again.uris()[0], columns=["part"])["part"].to_pylist()) == sorted(
        p for p, digest in expected.items() for _ in range(int(digest.split(":")[0]))
    )


@pytest.mark.parametrize("part", [-2, 29_849_760])
def test_a_single_part_gets_its_columns_outside_of_the_query(spark: SparkSession, tmp_path: Path, part: int) -> None:
    rows = (
        random_rows(spark, 7, 60, 1)
        .selectExpr(
            f"{part}L AS part",
            f"timestamp_seconds({part * 3600}L) AS part_timestamp",
            "* EXCEPT (part, part_timestamp)",
        )
        .localCheckpoint()
    )
    handle = table_for(rows, tmp_path / "t")
    by_spark = stage(rows, handle, "spark")
    bare = rows.drop("part", "part_timestamp")
    collected = small.collect(bare, handle.schema, (), part, 3600)
    by_arrow = small.stage(collected, handle, "arrow")
    assert collected.digests == digests(read.staged(spark, handle, by_spark), handle.schema)
    assert stored(handle, by_arrow) == stored(handle, by_spark)


def test_columns_that_are_no_content_are_stored_and_not_hashed(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql("SELECT 1L AS part, timestamp_seconds(60) AS part_timestamp, 5 AS a, 6 AS sketch")
    handle = table_for(rows, tmp_path / "t")
    one, other = (
        small.collect(rows.selectExpr("part", "part_timestamp", "a", f"{n} AS sketch"), handle.schema, ["sketch"])
        for n in (6, 7)
    )
    assert one.digests == other.digests
    assert [table.rows["sketch"].to_pylist() for table in (one, other)] == [[6], [7]]


def test_no_rows_make_no_file(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql("SELECT 1L AS part, timestamp_seconds(60) AS part_timestamp, 5 AS a WHERE false")
    handle = table_for(rows, tmp_path / "t")
    collected = small.collect(rows, handle.schema)
    assert (collected.digests, small.stage(collected, handle, "x")) == ({}, ())
    storage.finish(handle.path, "x")
    storage.discard(handle.path, "x")


def test_no_code_is_compiled_anew_for_a_new_part(spark: SparkSession, tmp_path: Path) -> None:
    """The number of a part is a literal: in a condition or in the result, Spark would compile the query for each part."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        pytest.skip("what the driver compiles cannot be seen from here")
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()  # type: ignore[union-attr]
    definitions = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: bigint}
files: landing/*.csv
---
view: v
part: 1 minute
update: SELECT g, SUM(x) AS x, MAX(x) AS top FROM m[j] WHERE x > 0 GROUP BY g
"""
    workspace = Workspace(spark, tmp_path / "w", definitions)
    counts = []
    for part in range(5):
        workspace.replace("m", {part: [{"t": None, "g": f"g{n % 3}", "x": n + part} for n in range(20)]})
        workspace.run()
        counts.append(compiled.getCount())
    assert counts[2:] == 3 * [counts[2]]


@pytest.mark.parametrize("chunks", [[[1], [], [2, 3]], [[], [1], [], [], [2]], [[]], []])
def test_no_row_behind_an_empty_chunk_is_lost(spark: SparkSession, chunks: list[list[int]]) -> None:
    """Files without a touched key, and partitions without a row, leave empty chunks between the others."""
    table = pa.table({"x": pa.chunked_array(chunks, pa.int64())})
    values = [x for chunk in chunks for x in chunk]
    assert [row.x for row in read.in_memory(spark, table, StructType().add("x", LongType())).collect()] == values
    if values:
        assert [row.x for row in read.from_arrow(spark, [table, table.slice(0, 0), table]).collect()] == values * 2
