"""Whatever the translator says of a type is what Spark says of it."""

from __future__ import annotations

import pytest
import sqlglot
from pyspark.sql import SparkSession

from partwise.sql.types.known import type_of
from partwise.sql.types.names import normal

COLUMNS = {
    "a": "tinyint", "b": "smallint", "c": "int", "d": "bigint", "e": "float", "f": "double", "g": "decimal(8,2)",
    "h": "decimal(38,10)", "k": "decimal(20,0)", "m": "decimal(3,3)", "s": "string",
    "t": "timestamp", "day": "date", "tags": "array<string>", "costs": "map<string,decimal(7,2)>", "twice": "array<array<int>>",
    "info": "struct<A:tinyint,C:string,id:int,bB:decimal(9,2),more:struct<c:double,rest:array<bigint>>>",
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
FUNCTIONS = [
    *(f"{function}({x})" for function in ("ROUND", "FLOOR", "CEIL", "CEILING", "SQRT", "EXP", "LN", "LOG", "LOG10", "CBRT", "SIGN", "NEGATIVE") for x in "abcdefghkm"),
    *(f"ROUND({x}, {n})" for x in "abcdefghkm" for n in (-40, -5, -1, 0, 1, 2, 3, 12, 40)),
    *(f"POWER({x}, {y})" for x in "acdefg" for y in "2cg"), *(f"POW({x}, 2) / LOG(2, {x})" for x in "cfg"),
    *(f"{function}(t)" for function in ("UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP", "UNIX_SECONDS", "UNIX_MILLIS", "UNIX_MICROS")),
    *(f"{function}({x})" for x in ("t", "day") for function in ("YEAR", "MONTH", "DAY", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR", "WEEKDAY", "WEEKOFYEAR", "QUARTER", "TO_DATE", "DATE")),
    "HOUR(t)", "MINUTE(t)", "SECOND(t)", "UNIX_DATE(day)", "DATEDIFF(day, day)", "DATE_DIFF(day, t)", "DATEDIFF(HOUR, t, t)",
    "TIMESTAMPDIFF(HOUR, t, t)", "MONTHS_BETWEEN(t, day)",
    *(f"EXTRACT({what} FROM t)" for what in ("YEAR", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "HOUR", "MINUTE", "SECOND", "SECONDS")),
    "SIZE(tags)", "CARDINALITY(tags)", "ARRAY_SIZE(tags)", "SIZE(costs)", "CHAR_LENGTH(s)", "OCTET_LENGTH(s)", "BIT_LENGTH(s)",
    "INSTR(s, 'x')", "LOCATE('x', s)", "POSITION('x', s)", "ASCII(s)", "CRC32(s)", "HASH(s, c)", "XXHASH64(s)", "LEVENSHTEIN(s, 'x')",
    "FIND_IN_SET('x', s)", "REGEXP_COUNT(s, 'x')", "ARRAY_POSITION(tags, 'x')", "ARRAY_CONTAINS(tags, 'x')", "STARTSWITH(s, 'x')", "ENDSWITH(s, 'x')",
    "CONTAINS(s, 'x')", "ISNULL(s)", "ISNOTNULL(s)", "ISNAN(f)", "BIGINT(s)", "SMALLINT(s)", "TINYINT(s)", "INT(f)", "DOUBLE(c)", "FLOAT(c)", "FACTORIAL(3)",
    "BIT_COUNT(c)", "WIDTH_BUCKET(f, 0, 1, 5)", "SIN(f)", "COS(c)", "TAN(f)", "ATAN2(f, c)", "RADIANS(c)", "DEGREES(f)", "HYPOT(f, c)", "PI()", "E()", "RINT(f)",
    "info.a", "info.id", "x.info.c", "info.BB", "info.more.c", "info.more.rest[0]", "(info).more.c", "tags[0]", "costs['x']", "twice[0][1]", "x.info.a", "x.info.more.c", "x.c", "x.costs['x']",
    "ROUND(info.bb * 2, 1)", "FLOOR(g / 3) + SIZE(tags)", "ABS(g - ROUND(g))", "COALESCE(costs['x'], 0)", "ELEMENT_AT(tags, 1)", "ELEMENT_AT(costs, 'x')",
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
@pytest.mark.parametrize("texts", [EXPRESSIONS, FUNCTIONS, AGGREGATES], ids=["rows", "functions", "aggregates"])
def test_types_are_those_of_spark(spark: SparkSession, texts: list[str]) -> None:
    """Only looked at by Spark's analyser: nothing runs."""
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    items = ", ".join(f"{text} AS r{at}" for at, text in enumerate(texts))
    schema = spark.sql(f"SELECT {items} FROM (SELECT {columns}) x").schema
    wrong = {
        text: (said, field.dataType.simpleString())
        for text, field in zip(texts, schema, strict=True)
        if (said := told(text)) is not None and said != field.dataType.simpleString()
    }
    assert not wrong


def test_most_types_are_known() -> None:
    unknown = [text for text in (*EXPRESSIONS, *AGGREGATES) if told(text) is None]
    assert len(unknown) < 0.1 * len(EXPRESSIONS), unknown
    assert [text for text in FUNCTIONS if told(text) is None] == []


def test_fields_keep_their_names() -> None:
    assert normal(" struct<A:INT,bB:string> ") == "struct<A:INT,bB:string>"
    assert normal("DECIMAL( 9 )") == "decimal(9,0)"


def test_a_field_or_a_column_of_a_table() -> None:
    """`info.c` is a field, unless a table is called info."""
    assert [told(text) for text in ("info.a", "info.c", "x.info.c", "x.c")] == ["tinyint", None, "string", "int"]


def test_text_as_a_number_is_left_to_spark() -> None:
    assert [told(text) for text in ("-s", "ABS(s)", "s + 1", "s * g")] == [None] * 4
