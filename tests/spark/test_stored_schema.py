"""Schemas that are made without Spark are those that Spark makes."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from partwise.sql.types.declared import SIMPLE
from partwise.storage import schema as schemas
from spark_jobs.ingest.stored import type_of

NESTED = [
    "decimal(10,2)",
    "DECIMAL( 5 , 0 )",
    "dec(38)",
    "numeric",
    "array<int>",
    "ARRAY<array<timestamp>>",
    "map<string, decimal(3,1)>",
    "struct<a: int, B: struct<c: string, d array<double>>>",
    "array<struct<x:bigint,y:map<string,date>>>",
]
LEFT_TO_SPARK = [
    "struct<`a, b`: int>",
    "decimal(39,2)",
    "decimal(2,9)",
    "timestamp_ntz",
    "variant",
    "interval day",
    "blob",
]


@pytest.mark.spark
def test_types_are_those_of_spark(spark: SparkSession) -> None:
    known = [kind for kind in (*sorted(SIMPLE), *NESTED) if type_of(kind) is not None]
    assert set(SIMPLE) - set(known) == {"timestamp_ntz", "variant"}
    assert set(NESTED) <= set(known)
    columns = ", ".join(f"CAST(NULL AS {kind}) AS c{at}" for at, kind in enumerate(known))
    found = schemas.normal(json.dumps(spark.sql(f"SELECT {columns}").schema.jsonValue()))
    fields = [{"name": f"c{at}", "type": type_of(kind), "nullable": True} for at, kind in enumerate(known)]
    assert json.loads(schemas.normal(json.dumps({"type": "struct", "fields": fields}))) == json.loads(found)


@pytest.mark.parametrize("kind", LEFT_TO_SPARK)
def test_what_only_spark_can_tell_is_left_to_it(kind: str) -> None:
    assert type_of(kind) is None
