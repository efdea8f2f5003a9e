"""The rule of restriction on Spark itself, whose equality, NULLs and joins are what counts in the end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from partwise.relation import carried
from partwise.sql.references import splice
from spark_jobs.step.keys import AnyOf, TouchedKeys
from tests.relation.duck import Bag, Query, Row
from tests.relation.test_random import Case

pytestmark = pytest.mark.spark
COUNT = 30


def run(spark: SparkSession, query: Query, inputs: Mapping[int, DataFrame]) -> Bag:
    for n, rows in inputs.items():
        rows.createOrReplaceTempView(f"occurrence_{n}")
    at = {table.start: n for n, table in enumerate(query.found.tables)}
    text = splice(query.sql, lambda f: f"occurrence_{at[f.start]}", found=query.found)
    return Counter(tuple(row) for row in spark.sql(text).collect())


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, "k bigint, v bigint").coalesce(1)


def cases() -> list[Case]:
    """Queries that carry something."""
    found: list[Case] = []
    seed = 5_000
    while len(found) < COUNT:
        case = Case(seed)
        seed += 1
        if any(carried(case.tree).values()) and "LATERAL" not in case.sql:
            found.append(case)
    return found


def test_restriction(spark: SparkSession) -> None:
    compared = 0
    for case in cases():
        rng = random.Random(case.seed)
        found = carried(case.tree)
        columns = sorted({c for each in found.values() for c in each})
        chosen = tuple(c for c in columns if rng.random() < 0.7) or (columns[0],)
        whole_inputs = {n: frame(spark, rows) for n, rows in case.old.items()}
        try:
            whole = run(spark, case.run, whole_inputs)
        except AnalysisException:
            continue  # DuckDB understands more than Spark
        at = [case.tree.names.index(c) for c in chosen]
        present: list[Any] = sorted({tuple(row[p] for p in at) for row in whole}, key=str)
        wanted = {*present[:1], (None,) * len(at), tuple(rng.choice([0, 1, None]) for _ in at)}
        keys = AnyOf(spark, (TouchedKeys(chosen, ("bigint",) * len(chosen), tuple(sorted(wanted, key=str))),))
        filtered = dict(whole_inputs)
        for n, each in found.items():
            by = [(c, each[c]) for c in chosen if c in each]
            if by:
                filtered[n] = keys.inside(whole_inputs[n], [by])
        restricted = run(spark, case.run, filtered)
        same = [{r: n for r, n in bag.items() if tuple(r[p] for p in at) in wanted} for bag in (whole, restricted)]
        assert same[0] == same[1], (case.seed, case.sql, wanted)
        compared += bool(same[0])
    assert compared >= COUNT // 3
