"""Digests: equal for equal multisets of rows, different for different ones, whatever is in them.

Hypothesis draws a few hundred multisets at a time; each becomes a part, and one Spark job digests all.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from partwise.storage import schema as schemas
from spark_jobs.step.digest import EMPTY, digests, row_count, row_hash, text

pytestmark = pytest.mark.spark

DDL = """part bigint, a int, b int, s string, t string, f double, d decimal(9,2), raw binary,
    xs array<int>, ys array<int>, p struct<x:int, y:int>, ps array<struct<x:int, y:double>>,
    m map<string,int>, mm map<int,map<int,double>>"""

# Few values each, with the ones that are easily confused: what differs, differs in little.
INTS = st.sampled_from([None, 0, 1, 2])
TEXTS = st.sampled_from([None, "", "a", "ab", "b"])
FLOATS = st.sampled_from([None, 0.0, -0.0, 1.0, math.nan, math.inf])
LISTS = st.none() | st.lists(INTS, max_size=3)
PAIRS = st.none() | st.tuples(INTS, INTS)
ROWS = st.tuples(
    INTS,
    INTS,
    TEXTS,
    TEXTS,
    FLOATS,
    st.sampled_from([None, Decimal("0.00"), Decimal("1.10")]),
    st.sampled_from([None, b"", b"a"]),
    LISTS,
    LISTS,
    PAIRS,
    st.none() | st.lists(st.none() | st.tuples(INTS, FLOATS), max_size=2),
    st.none() | st.dictionaries(st.sampled_from(["a", "b", "ab"]), INTS, max_size=3),
    st.none() | st.dictionaries(st.sampled_from([1, 2]), st.none() | st.dictionaries(st.just(1), FLOATS), max_size=2),
)
Row = tuple[Any, ...]


def same(value: Any) -> Any:
    """Equal for values that SQL does not tell apart."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return frozenset((same(k), same(v)) for k, v in value.items())
    return tuple(map(same, value)) if isinstance(value, list | tuple) else value


def variants(rows: list[Row], chance: random.Random) -> list[list[Row]]:
    """The multiset, and others that are equal to it or nearly so."""
    shuffled = chance.sample(rows, len(rows))
    found = [rows, shuffled, rows + rows, rows[:-1], rows + rows[:1], rows + rows[:1] * 2]
    found += [[(*row[:at], row[at + 1], row[at], *row[at + 2 :]) for row in rows] for at in (0, 2, 7)]
    swapped = [(value, *row[1:]) for value, row in zip([r[0] for r in shuffled], rows, strict=True)]
    return [*found, swapped, [tuple(reverse(v) for v in row) for row in rows]]


def reverse(value: Any) -> Any:
    return dict(reversed(value.items())) if isinstance(value, dict) else value


@settings(max_examples=3, phases=[Phase.generate])  # looking for a smaller failure would take minutes
@given(st.lists(st.lists(ROWS, min_size=1, max_size=4), min_size=15, max_size=25), st.randoms(use_true_random=False))
def test_digests_are_equal_exactly_for_equal_multisets(
    spark: SparkSession, drawn: list[list[Row]], chance: random.Random
) -> None:
    parts = [multiset for rows in drawn for multiset in variants(rows, chance)]
    frame = spark.createDataFrame([(at, *row) for at, rows in enumerate(parts) for row in rows], DDL)
    found = digests(frame, schemas.normal(frame.schema.json()))
    contents: dict[str, Any] = {}
    by_content: dict[Any, str] = {}
    for at, rows in enumerate(parts):
        digest = found.get(at, EMPTY)
        content = frozenset(Counter(map(same, rows)).items())
        assert row_count(digest) == len(rows)
        assert contents.setdefault(digest, content) == content, "two contents, one digest"
        assert by_content.setdefault(content, digest) == digest, "one content, two digests"
    assert len(contents) >= 3  # the drawn rows, twice as many, and none


def test_the_text_of_a_digest_never_changes(spark: SparkSession) -> None:
    """Digests are kept for years: other numbers here would make every part of every table count as changed."""
    frame = spark.sql(
        "SELECT 7L AS part, timestamp_seconds(0) AS part_timestamp, 1 AS n, 'a' AS s, map('k', array(1.5D, NULL)) AS m "
        "UNION ALL SELECT 7L, timestamp_seconds(0), NULL, '', NULL"
    )
    assert digests(frame, schemas.normal(frame.schema.json())) == {7: "2:3cba7ba5bb6c0f27a51bf29f7c7ad455"}
    assert EMPTY == "0:" + "0" * 32


def test_what_is_no_content_stays_out(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT id % 2 AS part, timestamp_seconds(id) AS part_timestamp, 1 AS n, id AS file FROM range(4)"
    )
    schema = schemas.normal(frame.schema.json())
    left_out = digests(frame, schema, leave_out={"file"})
    assert left_out[0] == left_out[1]
    taken_in = digests(frame, schema)
    assert taken_in[0] != taken_in[1]


def test_sums_wrap_instead_of_overflowing() -> None:
    assert text(3, (-1, 2**32 - 1, 2**62, 5)) == "3:" + "f" * 16 + f"{((2**62) * 2**32 + 5) % 2**64:016x}"


def test_a_variant_is_refused_by_name() -> None:
    with pytest.raises(schemas.BadSchema, match="`v` is a VARIANT"):
        row_hash([("v", "variant")], 1)
