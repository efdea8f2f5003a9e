"""Lifted = part by part on Spark itself: the queries that also run on DuckDB, and what only Spark does its way."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from partwise.compile.many_parts import Lifted, NotLiftable, lift, spread
from partwise.sql.references import find, splice
from tests.many_parts.queries import SPARK_ONLY, query, rows
from tests.thinned import thinned

pytestmark = pytest.mark.spark
JS = (-1, 0, 2)
BLOCKS, IN_A_BLOCK = 8, 7


def fill(spark: SparkSession, tables: dict[str, list[tuple[int | None, ...]]]) -> None:
    for name, members in tables.items():
        columns = "k bigint, v bigint" + (", part bigint" if name != "d" else "")
        spark.createDataFrame(members, columns).createOrReplaceTempView(name)


def part_by_part(spark: SparkSession, sql: str) -> DataFrame:
    def at(j: int) -> DataFrame:
        def relation(found: Any) -> str:
            if found.reference is None:
                return f"(SELECT * FROM {found.table})"
            lo, hi = found.reference.requires(j)
            return f"(SELECT k, v FROM {found.table} WHERE part BETWEEN {lo} AND {hi})"

        return spark.sql(splice(sql, relation, found=find(sql))).withColumn("__j", F.lit(j).cast("bigint"))

    first, *others = map(at, JS)
    for other in others:
        first = first.union(other)
    return first


def together(spark: SparkSession, lifted: Lifted) -> DataFrame:
    def relation(name: str) -> str:
        if name == "__js":
            return "(SELECT explode(array(" + ", ".join(f"{j}L" for j in JS) + ")) AS j)"
        given = next(i for i in lifted.inputs if i.name == name)
        if given.reference is None:
            return f"(SELECT * FROM {given.table})"
        way = spread(given.reference)
        inner = f"SELECT k, v, {way.column(str(given.column))} FROM {given.table} WHERE {way.where}"
        return f"(SELECT * FROM ({inner}) WHERE {given.column} IN ({', '.join(map(str, JS))}))"

    return spark.sql(lifted.named(relation))


def check(spark: SparkSession, sql: str) -> str:
    """`same`, or why it was not compared."""
    try:
        lifted = lift(sql)
    except NotLiftable:
        return "not lifted"
    try:
        wanted = part_by_part(spark, sql)
    except PySparkException:
        return "not for Spark"
    try:
        found = together(spark, lifted)
    except PySparkException:
        return "refused"
    assert found.dtypes == wanted.dtypes, sql
    whole = wanted.withColumn("__of", F.lit("parts")).union(found.withColumn("__of", F.lit("lifted"))).collect()
    bags = {of: Counter(repr(tuple(row)[:-1]) for row in whole if row["__of"] == of) for of in ("parts", "lifted")}
    assert bags["parts"] == bags["lifted"], f"{sql}\n{lifted.text}"
    return "same"


@pytest.mark.parametrize("block", thinned(range(BLOCKS), 4))
def test_lifted_is_part_by_part(spark: SparkSession, block: int) -> None:
    """Seven that could be compared, of at most ten."""
    found = Counter[str]()
    for at in range(10):
        sql, tables = query(10_000 + 10 * block + at)
        if at == 0:
            fill(spark, tables)
        found[check(spark, sql)] += 1
        if found["same"] == IN_A_BLOCK:
            return
    raise AssertionError(found)


@pytest.mark.parametrize("at", range(len(SPARK_ONLY)))
def test_what_spark_does_its_way(spark: SparkSession, at: int) -> None:
    fill(spark, rows(random.Random(at)))
    assert check(spark, SPARK_ONLY[at]) == "same"
