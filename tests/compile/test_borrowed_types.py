"""Patterns over expressions whose types only Spark knows: every way to compute a part gives the same columns."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.compile import InputTable, QueryView, translate
from tests.compile.duck import catch_up
from tests.compile.passes import single_pass_text
from tests.compile.test_on_spark import Sparkling

pytestmark = pytest.mark.spark

KINDS = {
    "t": "timestamp", "g": "string", "x": "decimal(9,3)", "f": "double", "s": "string", "tags": "array<string>",
    "info": "struct<A:int,bB:string>",
}  # fmt: skip
VALUES = (
    "FIRST(upper(s))", "LAST(tags[0])", "FIRST(info.a)", "LAST(info.bb)", "MAX(round(f))", "MIN(date_trunc('hour', t))",
    "MIN(x + 1)", "MAX(x * x)", "MAX(x) FILTER (WHERE f > 1)", "MIN(upper(s)) FILTER (WHERE lower(s) > 'a')", "FIRST(info)",
    "LAST(info)", "FIRST(tags)", "MIN(info)", "FIRST(b.tags[0])", "LAST(b.info)", "LAST(a.info)", "FIRST(named_struct('Q', x))",
    "MAX(size(tags))", "FIRST(CASE WHEN f > 1 THEN s END)", "MIN(concat(s, tags[0]))",
)  # fmt: skip
#: These need a number whose type is known.
SUMS = (
    "SUM(round(f, 1))", "SUM(floor(x))", "AVG(round(x, 1))", "SUM(info.a)", "SUM(b.info.a)", "SUM(size(tags))", "SUM(unix_timestamp(t))",
    "SUM(hour(t)) FILTER (WHERE length(s) > 1)", "AVG(power(x, 2))",
)  # fmt: skip


def query(values: tuple[str, ...]) -> str:
    items = ", ".join(f"{value} AS r{at}" for at, value in enumerate(values))
    return f"SELECT g, COUNT(*) AS n, {items} FROM s PATTERN [a, b+] WHERE a.f > 0 AND b.x > a.x AND b.x > PREV(b.x) GROUP BY g"


def row(part: int, x: int) -> dict[str, Any]:
    time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=part)
    return {"part": part, "t": time, "g": "p", "x": Decimal(x), "f": x / 2, "s": f"s{x}", "tags": [f"t{x}"], "info": (x, f"i{x}")}  # fmt: skip


@pytest.mark.parametrize("gaps", ["break", "carry"])
@pytest.mark.parametrize("known", [True, False], ids=["source", "view"])
def test_every_way_gives_the_same_types(spark: SparkSession, known: bool, gaps: Any) -> None:
    real = InputTable("s", "source", 60, KINDS, "t")
    told = real if known else InputTable("s", "view", 60, dict.fromkeys(KINDS))
    translation = translate(QueryView("v", query((*VALUES, *SUMS) if known else VALUES), 60, gaps=gaps), {"s": told})
    helper = translation.views[0]
    runner = Sparkling(spark, translation, real, [row(p, x) for p, x in enumerate([2, 3, 5, 1, 4])])
    catch_up(runner, {"s": set(range(5))})  # a fold; it asserts that types stay
    [shown] = runner.rows("v", 2)
    assert (shown["n"], shown["r0"], shown["r1"], shown["r2"], shown["r3"]) == (3, "S2", "t5", 2, "i5")
    assert shown["r10"].asDict() == {"A": 2, "bB": "i2"}
    if known:
        sums = [shown[f"r{at}"] for at in range(len(VALUES), len(VALUES) + len(SUMS))]
        assert [*sums[:2], *sums[3:6]] == [5.0, 10, 10, 8, 3]
        assert round(sums[2], 2) == Decimal("3.33")
    types = [(f.name, f.dataType) for f in runner.kept[helper.name][0]]
    assert helper.fast_update is not None
    assert helper.unique_update is not None
    for text in (helper.fast_update, helper.unique_update):
        names, rows = runner.run_text(text, "j", 4)
        assert [(f.name, f.dataType) for f in runner.last_schema] == types
        assert [dict(zip(names, values, strict=True)) for values in rows] == runner.rows(helper.name, 4)
    passed = runner.spark.sql(single_pass_text(helper, 1, 4))
    assert [(f.name, f.dataType) for f in passed.schema][:-1] == types
    found = Counter(repr((r[-1], *r[:-1])) for r in passed.collect())
    assert found == Counter(repr((p, *r.values())) for p in range(1, 5) for r in runner.rows(helper.name, p))
