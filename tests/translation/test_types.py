"""Whatever the translator says of a type is what Spark says of it."""

from __future__ import annotations

import pytest
import sqlglot
from pyspark.sql import SparkSession

from partwise.translation.types import normal, type_of

COLUMNS = {
    "a": "tinyint", "b": "smallint", "c": "int", "d": "bigint", "e": "float", "f": "double", "g": "decimal(8,2)",
    "h": "decimal(38,10)", "k": "decimal(20,0)", "m": "decimal(3,3)", "s": "string",
}  # fmt: skip
NUMBERS = [*"abcdefghkm", "0", "7", "-7", "(-100)", "3000000000", "1.5", "0.05", "-2.50", ".5", "1e3", "00.10"]
EXPRESSIONS = [
    *(f"{x} {op} {y}" for op in ("+", "-", "*", "/", "%") for x in NUMBERS for y in NUMBERS),
    *(f"COALESCE({x}, {y})" for x in NUMBERS for y in NUMBERS),
    *(f"CASE WHEN s = '' THEN {x} WHEN s = 'x' THEN NULL ELSE {y} END" for x in NUMBERS for y in "acefgh7"),
    *(f"{function}({x}, {y}, {z})" for function in ("GREATEST", "LEAST") for x in "acdg" for y in "efghk" for z in "cm"),
    *(f"IF(s = '', {x}, {y})" for x in "abcdefgh" for y in "cfgk"),
    *(f"{x} DIV {y}" for x in "abcdgk" for y in "acdg"),
    *(f"{function}({x})" for function in ("ABS", "-", "NULLIF(1, 2) + ") for x in NUMBERS),
    "NULLIF(g, 0)", "g IS NULL", "g BETWEEN 1 AND 2", "s LIKE 'x'", "LENGTH(s)", "'x'", "TRUE", "NOT (c > 1)",
    *(f"CAST({x} AS {kind})" for x in "cfs" for kind in ("DECIMAL", "DECIMAL(9)", "decimal(9, 3)", "LONG", "STRING", "REAL")),
    "g * (1 - m) * 100", "(g + 1) / 3", "g * 2 + c * 1.25 - f", "-g * -2", "- (7) * g", "c / 2", "12L * g", "CAST(12 AS BIGINT) * g",
]  # fmt: skip
AGGREGATES = [
    *(f"{function}({x})" for function in ("SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "COUNT", "STDDEV", "VAR_POP") for x in "abcdefghkm"),
    "COUNT(*)", "COUNT(DISTINCT c)", "COUNT_IF(c > 1)", "SUM(g) FILTER (WHERE c > 1)", "LAST(g) IGNORE NULLS", "MAX(s)",
    "MAX_BY(g, c)", "MIN_BY(s, c)", "BOOL_AND(c > 1)", "BOOL_OR(c > 1)", "COVAR_SAMP(c, f)", "CORR(c, f)", "SUM(g) / COUNT(*)",
    "SUM(c) * 1.5", "AVG(g * 2)", "COALESCE(SUM(g), 0)", "APPROX_COUNT_DISTINCT(c)", "SUM(c) / SUM(d)", "MAX(g) - MIN(g)",
    "STDDEV_SAMP(g)", "VARIANCE(c)", "STDDEV_POP(f)", "COVAR_POP(f, f)", "SUM(DISTINCT g)", "MEDIAN(c)", "PERCENTILE(c, 0.5)",
]  # fmt: skip


def told(text: str) -> str | None:
    return type_of(sqlglot.parse_one(text, dialect="spark"), COLUMNS)


@pytest.mark.spark
@pytest.mark.parametrize("texts", [EXPRESSIONS, AGGREGATES], ids=["rows", "aggregates"])
def test_types_are_those_of_spark(spark: SparkSession, texts: list[str]) -> None:
    """Only looked at by Spark's analyser: nothing runs."""
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    items = ", ".join(f"{text} AS r{at}" for at, text in enumerate(texts))
    schema = spark.sql(f"SELECT {items} FROM (SELECT {columns})").schema
    wrong = {
        text: (said, field.dataType.simpleString())
        for text, field in zip(texts, schema, strict=True)
        if (said := told(text)) is not None and said != field.dataType.simpleString()
    }
    assert not wrong


def test_most_types_are_known() -> None:
    unknown = [text for text in (*EXPRESSIONS, *AGGREGATES) if told(text) is None]
    assert len(unknown) < 0.1 * len(EXPRESSIONS), unknown


def test_fields_keep_their_names() -> None:
    assert normal(" struct<A:INT,bB:string> ") == "struct<A:INT,bB:string>"
    assert normal("DECIMAL( 9 )") == "decimal(9,0)"


def test_text_as_a_number_is_left_to_spark() -> None:
    assert [told(text) for text in ("-s", "ABS(s)", "s + 1", "s * g")] == [None] * 4
