"""Stage with Spark, commit without it: what is read back, by everybody."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from partwise import storage
from partwise.parts import Parts
from partwise.storage import schema as schemas
from partwise.storage.query import PinnedTable, query
from spark_jobs.step import read
from spark_jobs.step.digest import digests
from spark_jobs.step.stage import fit, stage, with_part

pytestmark = pytest.mark.spark

ALL_TYPES = """SELECT id % 3 AS part, timestamp_seconds((id % 3) * 60) AS part_timestamp, id AS n, CAST(id AS int) AS i,
    CAST(id AS smallint) AS h, CAST(id AS tinyint) AS y, CAST(id AS float) AS g, id / 7D AS f, id > 3 AS b,
    CAST(id AS decimal(20,3)) AS d, CONCAT('s', id) AS s, CAST(CONCAT('b', id) AS binary) AS raw,
    DATE '1500-03-01' + CAST(id AS int) AS day, TIMESTAMP '1583-01-01 00:00:00.123456' AS t,
    array(id, NULL) AS xs, named_struct('x', id, 'y', 'z') AS p, map('k', id) AS m, CAST(NULL AS string) AS nothing
    FROM range(12)"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def publish(spark: SparkSession, path: str, step: str, sql: str, parts: Parts) -> int:
    """What a step does, without ledger and checks."""
    rows = spark.sql(sql)
    handle = storage.create(path, rows.schema.json())
    change = storage.rewrite(handle, parts)
    if (kept := read.survivors(spark, handle, change)) is not None:
        rows = rows.unionByName(kept)
    version = storage.commit(handle, stage(rows, handle, step, expected=12), change.removed, {"step": step})
    storage.finish(path, step)
    return version


def plain(spark: SparkSession, path: str) -> list[tuple]:
    """The same columns from Spark's Delta reader, delta-rs and DuckDB; nested ones by their pieces."""
    columns = "part, unix_seconds(part_timestamp), n, i, h, y, g, f, b, d, s, xs[0], p.x, p.y, m['k'], nothing"
    spark_rows = spark.sql(f"SELECT {columns} FROM delta.`{path}` ORDER BY n").collect()
    return [tuple(row) for row in spark_rows]


def test_read_back_equal_by_spark_delta_rs_and_duckdb(spark: SparkSession, path: str) -> None:
    publish(spark, path, "one", ALL_TYPES, Parts.of((0, 2)))
    expected = plain(spark, path)
    assert len(expected) == 12
    arrow = storage.open_at(path).table.to_pyarrow_table().sort_by("n").to_pylist()
    assert [
        (r["part"], int(r["part_timestamp"].timestamp()), r["n"], r["i"], r["h"], r["y"], r["g"], r["f"], r["b"], r["d"],
         r["s"], r["xs"][0], r["p"]["x"], r["p"]["y"], dict(r["m"])["k"], r["nothing"])
        for r in arrow
    ] == expected  # fmt: skip
    sql = """SELECT part, CAST(epoch(PART_TIMESTAMP) AS BIGINT), n, i, h, y, g, f, b, d, s, xs[1], p.x, p.y, m['k'], nothing
        FROM t ORDER BY n"""
    assert query(sql, {"t": PinnedTable(path, 1)}).rows == expected
    edges = "SELECT min(day), max(day), min(t), hex(max(raw)), count(*) FROM {}"
    ours = spark.sql(edges.format(f"delta.`{path}`")).collect()[0]
    duck = query(edges.format("t"), {"t": PinnedTable(path, 1)}).rows[0]
    assert (ours[0], ours[1], ours[3], ours[4]) == (duck[0], duck[1], duck[3], duck[4])
    assert str(duck[2]) == "1583-01-01 00:00:00.123456+00:00"


def test_the_table_stays_readable_for_everybody(spark: SparkSession, path: str) -> None:
    publish(spark, path, "one", ALL_TYPES, Parts.of((0, 2)))
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0]
    assert (detail.minReaderVersion, detail.minWriterVersion, detail.partitionColumns) == (1, 2, [])
    assert [row.version for row in spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()] == [1, 0]


def test_a_pinned_read_equals_delta_at_that_version(spark: SparkSession, path: str) -> None:
    publish(spark, path, "one", ALL_TYPES, Parts.of((0, 2)))
    publish(spark, path, "two", ALL_TYPES.replace("range(12)", "range(1, 2)"), Parts.single(1))
    publish(spark, path, "none", ALL_TYPES.replace("range(12)", "range(0)"), Parts.single(2))
    assert [len(plain_at(spark, path, v)) for v in range(4)] == [0, 12, 9, 5]
    for version, wanted in ((0, None), (2, None), (2, Parts.of((0, 0), (2, 9))), (3, Parts.single(1)), (3, Parts())):
        mine = read.parts(spark, storage.open_at(path, version), wanted).drop("m")
        delta = read.foreign(spark, path, version).drop("m").where("true" if wanted is None else read.in_parts(wanted))
        assert mine.schema == delta.schema
        assert sorted(map(str, mine.collect())) == sorted(map(str, delta.collect()))


def plain_at(spark: SparkSession, path: str, version: int) -> list[int]:
    return [row.n for row in read.parts(spark, storage.open_at(path, version)).select("n").collect()]


def test_a_change_in_a_compacted_file_keeps_the_other_parts(spark: SparkSession, path: str) -> None:
    publish(spark, path, "one", ALL_TYPES, Parts.of((0, 2)))
    before = digests(read.parts(spark, storage.open_at(path)), storage.open_at(path).schema)
    assert len(storage.open_at(path).files) == 1
    publish(spark, path, "two", ALL_TYPES.replace("range(12)", "range(1, 2)"), Parts.single(1))
    handle = storage.open_at(path)
    after = digests(read.parts(spark, handle), handle.schema)
    assert (before[0], before[2]) == (after[0], after[2])
    assert after[1].startswith("1:")


def test_files_are_few_and_sorted_by_part(spark: SparkSession, path: str) -> None:
    rows = spark.range(0, 1000, 1, 4).selectExpr(
        "pmod(hash(id), 50) AS part", "timestamp_seconds(0) AS part_timestamp", "id"
    )
    handle = storage.create(path, rows.selectExpr("CAST(part AS bigint) AS part", "part_timestamp", "id").schema.json())
    files = stage(rows, handle, "one", expected=1000)
    assert len(files) == 1
    parts = pq.read_table(f"{path}/{files[0].path}")["part"].to_pylist()
    assert parts == sorted(parts)
    assert len(parts) == 1000
    assert len(stage(rows, handle, "two", expected=1_600_000)) == 4


def test_a_result_is_fitted_to_the_table(spark: SparkSession) -> None:
    schema = schemas.of({"n": "bigint", "s": "string"})
    rows = with_part(spark.sql("SELECT 'x' AS S, 1 AS N"), 7, 60)
    fitted = fit(rows, schema)
    assert schemas.normal(fitted.schema.json()) == schema
    assert fitted.selectExpr("part", "unix_seconds(part_timestamp)", "n", "s").collect() == [(7, 420, 1, "x")]
    with pytest.raises(schemas.BadSchema) as caught:
        fit(rows.withColumnRenamed("N", "count"), schema)
    assert caught.value.problems == (
        "column 'n' is missing in the result",
        "column 'count' of the result is not in the table",
    )


def test_parts_before_1970_and_beyond_the_calendar(spark: SparkSession, path: str) -> None:
    sql = "SELECT {0}L AS part, timestamp_seconds({0}L * 3600) AS part_timestamp, 1 AS n"
    for step, part in (("a", -1), ("b", -17_259_889), ("c", 70_000_000), ("d", 100_000_000)):
        publish(spark, path, step, sql.format(part), Parts.single(part))
    handle = storage.open_at(path)
    assert sorted(f.lo for f in handle.files if f.lo is not None) == [-17_259_889, -1, 70_000_000, 100_000_000]
    assert read.parts(spark, handle, Parts.single(100_000_000)).count() == 1
    assert spark.sql(
        f"SELECT part FROM delta.`{path}` WHERE part_timestamp < TIMESTAMP '1970-01-01' ORDER BY 1"
    ).collect() == [
        (-17_259_889,),
        (-1,),
    ]


def test_another_schema_replaces_the_table_in_one_commit(spark: SparkSession, path: str) -> None:
    publish(spark, path, "one", ALL_TYPES, Parts.of((0, 2)))
    rows = spark.sql("SELECT 5L AS part, timestamp_seconds(300) AS part_timestamp, 'text now' AS n")
    handle, wanted = storage.open_at(path), schemas.normal(rows.schema.json())
    assert storage.replace(handle, wanted, stage(rows, handle, "two", schema=wanted, expected=1), {}) == 2
    assert spark.sql(f"SELECT part, n FROM delta.`{path}`").collect() == [(5, "text now")]
    assert read.parts(spark, storage.open_at(path), Parts.single(5)).select("n").collect() == [("text now",)]
    assert spark.sql(f"SELECT sum(n) FROM delta.`{path}` VERSION AS OF 1").collect() == [(66,)]


def test_vacuum_beside_a_staged_write_is_safe(spark: SparkSession, path: str) -> None:
    """VACUUM takes staged files for rubbish; the commit then refuses, and the table stays whole."""
    publish(spark, path, "one", ALL_TYPES, Parts.of((0, 2)))
    rows = spark.sql(ALL_TYPES)
    handle = storage.open_at(path)
    files = stage(rows, handle, "staged", expected=12)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert not (Path(path) / files[0].path).exists()
    assert (Path(path) / "_staged" / "staged").exists()  # the note survives, so the sweep finds it
    with pytest.raises(storage.StorageError):
        storage.commit(handle, files, handle.files, {})
    fresh = storage.open_at(path)  # VACUUM may have committed; a new handle does not help the lost files
    with pytest.raises(storage.CommitRefused, match="is missing"):
        storage.commit(fresh, files, fresh.files, {})
    assert all(not logged.data_change for logged in storage.entries(path, 1))
    assert len(plain(spark, path)) == 12


def test_optimize_by_spark_is_no_change_of_data(spark: SparkSession, path: str) -> None:
    for part in range(3):
        publish(
            spark, path, f"p{part}", ALL_TYPES.replace("range(12)", f"range({part}, {part + 1})"), Parts.single(part)
        )
    spark.sql(f"OPTIMIZE delta.`{path}`")
    found = storage.entries(path, 3)
    assert [(logged.entry, logged.data_change) for logged in found] == [(None, False)]
    handle = storage.open_at(path)
    assert [(f.rows, f.lo, f.hi) for f in handle.files] == [(3, 0, 2)]
    publish(spark, path, "again", ALL_TYPES.replace("range(12)", "range(4, 5)"), Parts.single(1))
    assert sorted(plain_at(spark, path, 5)) == [0, 2, 4]
