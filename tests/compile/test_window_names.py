"""Columns that are called as the fields of generated structs."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.compile import InputTable, QueryView, translate
from tests.compile.duck import catch_up
from tests.compile.test_on_spark import Sparkling

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("strategy", ["merge", "recompute"])
@pytest.mark.parametrize(("time", "tie"), [("t", "value"), ("value", "key"), ("key", "moment"), ("tie", "moment")])
def test_fields_do_not_collide(spark: SparkSession, time: str, tie: str, strategy: Any) -> None:
    table = InputTable("s", "source", 60, {"g": "string", time: "bigint", tie: "int", "x": "int"}, time, tie)
    query = (
        f"SELECT g, FIRST(x) AS a, LAST(x) AS b, MAX_BY(x, g) AS c, MIN_BY({tie}, g) AS d, MAX_BY({time}, {tie}) AS e "
        "FROM s [WINDOW 2 minutes] GROUP BY g"
    )
    translation = translate(QueryView("v", query, 60, strategy=strategy), {"s": table})
    rows = [{"part": p, "g": "p", time: p, tie: n, "x": 10 * p + n} for p in (0, 1) for n in (2, 1, 3)]
    runner = Sparkling(spark, translation, table, rows)
    catch_up(runner, {"s": {0, 1}})
    assert runner.rows("v", 1) == [{"g": "p", "a": 1, "b": 13, "c": 13, "d": 1, "e": 1}]
