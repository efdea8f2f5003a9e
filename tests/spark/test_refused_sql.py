"""What `validate` says of results, functions and names is what Spark says: see tests/definitions/test_refused_sql.py."""

from __future__ import annotations

import json
import re

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from partwise.definitions.meaning import _NOT_IN_NAMES
from partwise.definitions.names import bad_name
from partwise.sql.references import splice
from tests.definitions.test_refused_sql import FORMS, ODD, RESULTS, WORDS

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("engine")]

COLUMNS = "t timestamp, u timestamp, d date, s string, x double, n bigint"


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> str:
    spark.createDataFrame([], COLUMNS).createOrReplaceTempView("rows_of_m")
    return "rows_of_m"


def verdict(spark: SparkSession, sql: str) -> str:
    """Interval, void, decimal, other or fine, by Spark's own types."""
    try:
        kinds = json.dumps(json.loads(spark.sql(sql).schema.json()))
    except PySparkException as why:
        words = {"UNSUPPORTED_TIME_TYPE": "other", "DECIMAL": "decimal"}
        return next((told for word, told in words.items() if word in str(why).upper()), str(why))
    other = any(f'"{name}' in kinds for name in ("timestamp_ntz", "variant", "time(", 'time"'))
    return "interval" if '"interval' in kinds else "void" if '"void"' in kinds else "other" if other else "fine"


def test_spark_agrees_about_results(spark: SparkSession, rows: str) -> None:
    found = [(verdict(spark, splice(sql, lambda _: rows)), sql) for _, sql in RESULTS]
    assert found == [(told, sql) for told, sql in RESULTS]


def taken(spark: SparkSession, sql: str) -> str:
    """Whether Spark can compute it and Delta store it."""
    try:
        names = spark.sql(sql).columns
    except (PySparkException, Py4JError):
        return "refused"
    twice = len({name.lower() for name in names}) < len(names)
    return "refused" if twice or any(_NOT_IN_NAMES.search(name) for name in names) else "fine"


def test_spark_agrees_about_odd_queries(spark: SparkSession, rows: str) -> None:
    # A string without an end has no places to put names into.
    found = [(taken(spark, re.sub(r"\bm\[[^]]*\]", rows, sql)), sql) for _, sql in ODD]
    storable = [told if "COLLATE utf8_lcase" not in sql else "fine" for told, sql in ODD]  # in Delta it is not
    assert found == [(told, sql) for told, (_, sql) in zip(storable, ODD, strict=True)]


def test_spark_reads_the_tables_that_may_be_called_so(spark: SparkSession, rows: str) -> None:
    for word in WORDS:
        if bad_name(word):
            continue
        for form in FORMS:
            spark.sql(splice(form.format(name=word), lambda _: rows))
