"""Expectations that Great Expectations answers for us, and those that it has no Spark version of."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.checks.catalog import OWN, expectations
from partwise.definitions.definitions import Check
from partwise.definitions.yaml.places import Place
from partwise.ledger.write.commit import Content
from partwise.storage import schema as schemas
from spark_jobs.checks.run import Around, check_parts
from tests.checks.test_against_great_expectations import TRANSLATED as COMPARED

pytestmark = pytest.mark.spark
SCHEMA = schemas.of({"js": "string", "d": "string", "x": "double", "k": "string"})
#: name, arguments, and whether the good part (1) and the bad part (2) pass.
CASES: list[tuple[str, dict[str, Any], bool, bool]] = [
    ("expect_column_values_to_be_json_parseable", {"column": "js"}, True, False),
    ("expect_column_values_to_be_json_parseable", {"column": "js", "mostly": 0.5}, True, True),
    ("expect_column_values_to_be_json_parseable", {"column": "js", "row_condition": "x < 4"}, True, True),
    ("expect_column_values_to_match_json_schema", {"column": "js", "json_schema": {"type": "object"}}, True, False),
    ("expect_column_values_to_match_strftime_format", {"column": "d", "strftime_format": "%Y-%m-%d"}, True, False),
    ("expect_column_values_to_be_dateutil_parseable", {"column": "d"}, True, False),
    (
        "expect_column_value_z_scores_to_be_less_than",
        {"column": "x", "threshold": 1.6, "double_sided": True},
        True,
        False,
    ),
    ("expect_column_values_to_not_be_outliers", {"column": "x", "method": "iqr", "multiplier": 1.5}, True, False),
    (
        "expect_column_quantile_values_to_be_between",
        {"column": "x", "quantile_ranges": {"quantiles": [1.0], "value_ranges": [[0, 10]]}},
        True,
        False,
    ),
    ("expect_column_most_common_value_to_be_in_set", {"column": "k", "value_set": ["a_1"]}, True, False),
    (
        "expect_column_kl_divergence_to_be_less_than",
        {"column": "k", "partition_object": {"values": ["a_1", "b_1"], "weights": [0.75, 0.25]}, "threshold": 0.1},
        True,
        False,
    ),
    ("expect_column_values_to_match_like_pattern", {"column": "k", "like_pattern": "_\\_%"}, True, False),
    ("expect_column_values_to_match_like_pattern", {"column": "k", "like_pattern": "_!_%", "escape": "!"}, True, False),
    ("expect_column_values_to_not_match_like_pattern", {"column": "k", "like_pattern": "c%"}, True, False),
    (
        "expect_column_values_to_match_like_pattern_list",
        {"column": "k", "like_pattern_list": ["a%", "b%"]},
        True,
        False,
    ),
    (
        "expect_column_values_to_match_like_pattern_list",
        {"column": "k", "like_pattern_list": ["a%", "%1"], "match_on": "all"},
        False,
        False,
    ),
    (
        "expect_column_values_to_not_match_like_pattern_list",
        {"column": "k", "like_pattern_list": ["x", "c%"]},
        True,
        False,
    ),
    ("expect_column_to_exist", {"column": "K"}, True, True),
    ("expect_column_values_to_be_between", {"column": "part", "max_value": 1}, True, False),
    ("expect_column_to_exist", {"column": "y"}, False, False),
    ("expect_column_type_to_be", {"column": "x", "type_": "double"}, True, True),
    ("expect_column_values_to_be_of_type", {"column": "x", "type_": "StringType"}, False, False),
    ("expect_column_values_to_be_in_type_list", {"column": "x", "type_list": ["FloatType", "DoubleType"]}, True, True),
    ("expect_table_column_count_to_equal", {"value": 4}, True, True),
    ("expect_table_column_count_to_be_between", {"max_value": 3}, False, False),
    ("expect_table_columns_to_match_ordered_list", {"column_list": ["js", "d", "x", "k"]}, True, True),
    ("expect_table_columns_to_match_set", {"column_set": ["k", "x"], "exact_match": False}, True, True),
    ("expect_table_columns_to_match_set", {"column_set": ["k", "x"]}, False, False),
]


def test_the_rest(spark: SparkSession) -> None:
    good = [(f'{{"a": {n}}}', f"2026-01-0{n + 1}", float(n), "b_1" if n == 3 else "a_1") for n in range(4)]
    bad = [*good[:3], ("{", "no day", 1000.0, "c1"), *[("{}", "2026-01-01", 1.0, "c1")] * 3]
    data = [(p, None, *row) for p, rows in ((1, good), (2, bad)) for row in rows]
    frame = spark.createDataFrame(
        data, "part bigint, part_timestamp timestamp, js string, d string, x double, k string"
    )
    contents = {1: Content(len(good), "1"), 2: Content(len(bad), "2")}
    checks = [Check(name, arguments, "error", Place("f", 1, 1)) for name, arguments, _, _ in CASES]
    found = check_parts(frame, SCHEMA, checks, contents, Around())
    for at, (name, arguments, first, second) in enumerate(CASES):
        for p, wanted in ((1, first), (2, second)):
            result = found[p].results[at]
            assert result.ok == wanted, (name, arguments, p, result.message)
    rest = {name for name in expectations() if name not in COMPARED} - {own.name for own in OWN}
    assert rest <= {name for name, *_ in CASES}, "an expectation that nobody has tried"


def test_an_empty_part_is_checked(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "part bigint, part_timestamp timestamp, js string, d string, x double, k string")
    names = [
        "expect_column_values_to_be_json_parseable",
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_be_unique",
    ]
    checks = [Check(name, {"column": "js"}, "error", Place("f", 1, 1)) for name in names]
    checks.append(Check("expect_column_mean_to_be_between", {"column": "x", "min_value": 0}, "error", Place("f", 1, 1)))
    found = check_parts(frame, SCHEMA, checks, {7: Content(0, "0:")}, Around())
    assert [result.ok for result in found[7].results] == [True, True, True, False]
