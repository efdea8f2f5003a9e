"""Our one pass gives the verdicts of Great Expectations' own Spark engine, on random rows and arguments."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.checks.catalog import OWN, expectations
from partwise.checks.questions import question
from partwise.definitions.definitions import Check
from partwise.definitions.yaml.places import Place
from partwise.ledger.write.commit import Content
from partwise.storage import schema as schemas
from spark_jobs.checks.run import Around, check_parts

pytestmark = pytest.mark.spark
COLUMNS = {"a": "bigint", "b": "bigint", "x": "double", "g": "string", "t": "timestamp"}
SCHEMA = schemas.of(COLUMNS)
Row = tuple[Any, ...]


def rows_of(chance: random.Random, many: int) -> list[Row]:
    from datetime import UTC, datetime, timedelta

    none = chance.choice([0.0, 0.2, 1.0 if chance.random() < 0.1 else 0.5])

    def maybe(value: Any) -> Any:
        return None if chance.random() < none else value

    start = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        (
            maybe(chance.randint(0, 6)),
            maybe(chance.randint(0, 6)),
            maybe(chance.choice([0.0, 0.5, 2.0, 2.5, -1.0, 7.25])),
            maybe(chance.choice(["", "a", "ab", "abc", "b1", "k-9", "A%"])),
            maybe(start + timedelta(days=chance.randint(0, 5))),
        )
        for _ in range(many)
    ]


def arguments_of(name: str, chance: random.Random) -> dict[str, Any]:
    """Random arguments, most of them near the border between passing and failing."""
    bounds = sorted(chance.choice([0, 1, 2, 3, 5, 6]) for _ in range(2))
    strict = {key: True for key in ("strict_min", "strict_max") if chance.random() < 0.3}
    low_high: dict[str, Any] = {"min_value": bounds[0], "max_value": bounds[1]}
    if chance.random() < 0.5:
        del low_high[chance.choice(["min_value", "max_value"])]
    shares = {"min_value": chance.choice([0.0, 0.3, 0.5, 1.0])}
    days = {"min_value": f"2026-01-0{chance.randint(1, 6)}"}
    column = chance.choice(["a", "x"])
    pair = {"column_A": "a", "column_B": "b"}
    ignore = (
        {}
        if chance.random() < 0.5
        else {"ignore_row_if": chance.choice(["both_values_are_missing", "either_value_is_missing", "neither"])}
    )
    several = (
        {}
        if chance.random() < 0.5
        else {"ignore_row_if": chance.choice(["all_values_are_missing", "any_value_is_missing", "never"])}
    )
    words = chance.sample(["", "a", "ab", "abc", "b1", "k-9", "A%", "zz"], chance.randint(1, 7))
    pattern = chance.choice(["^a", "b", r"\d", "^$", "a|b", "."])
    known = expectations()[name].arguments
    found: dict[str, Any]
    if name == "expect_column_values_to_be_between" and chance.random() < 0.3:
        found = {"column": "t", **days}
    elif "lengths_to_be_between" in name:
        found = {"column": "g", **low_high, **strict}
    elif "lengths_to_equal" in name:
        found = {"column": "g", "value": chance.randint(0, 3)}
    elif "regex_list" in name:
        found = {"column": "g", "regex_list": [pattern, "b"]} | (
            {"match_on": chance.choice(["any", "all"])} if "_not_" not in name else {}
        )
    elif "regex" in name:
        found = {"column": "g", "regex": pattern}
    elif "value_pairs_set" in known:
        found = {**pair, "value_pairs_set": [[0, 0], [1, 2], [3, 3]], **ignore}
    elif "column_A" in known:
        found = {**pair, **ignore} | ({"or_equal": chance.random() < 0.5} if "or_equal" in known else {})
    elif "sum_total" in known:
        found = {"column_list": ["a", "b"], "sum_total": chance.randint(3, 9), **several}
    elif "column_list" in known and "_table_" not in name:
        found = {"column_list": ["a", "b"], **several}
    elif "value_set" in known:
        found = (
            {"column": "g", "value_set": words}
            if chance.random() < 0.5
            else {"column": "a", "value_set": [0, 1, 2, 3, 4, 5, 6][: chance.randint(1, 7)]}
        )
    elif "proportion" in name:
        found = {"column": chance.choice(list("abxg")), **shares, **strict}
    elif "row_count_to_equal" in name:
        found = {"value": chance.randint(0, 8)}
    elif "row_count" in name:
        found = {**low_high, **strict}
    elif "min_value" in known:
        found = {"column": column, **low_high, **strict}
    else:
        found = {"column": chance.choice(list("abxg"))}
    if "mostly" in known and chance.random() < 0.5:
        found["mostly"] = chance.choice([0.0, 0.3, 0.5, 0.75, 1.0])
    return found


def _is_translated(name: str) -> bool:
    kinds = dict(schemas.fields(SCHEMA))
    return question(name, arguments_of(name, random.Random(1)), kinds) is not None


TRANSLATED = [
    name
    for name in expectations()
    if name not in {own.name for own in OWN}
    and "like" not in name  # Great Expectations has none for Spark
    and "_type" not in name  # about columns, not rows
    and not name.startswith(("expect_table_column", "expect_column_to_exist"))
    and _is_translated(name)
]


def by_great_expectations(checks: list[Check], frame: Any) -> dict[str, bool]:
    """The verdicts of its Spark engine, by name; one suite, so that it asks for several metrics at once."""
    from spark_jobs.checks.expectations import great_expectations

    gx, kinds = great_expectations()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_spark(name="spark", persist=False).add_dataframe_asset(name="rows")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(name="all", expectations=[kinds[c.name](**c.arguments) for c in checks])
    verdicts = {}
    # Only the verdict: for samples of rows it would ask Spark several times more.
    for found in batch.validate(suite, result_format="BOOLEAN_ONLY").results:
        info = found.exception_info or {}
        # What Great Expectations cannot compute of no rows, such as a mean, counts as failed with us.
        raised = [item for item in (info, *info.values()) if isinstance(item, dict)]
        broken = any(item.get("raised_exception") for item in raised)
        verdicts[found.expectation_config.type] = bool(found.success) and not broken
    return verdicts


def test_verdicts_are_the_same(spark: SparkSession) -> None:
    """All parts at once for us, part by part for Great Expectations."""
    chance = random.Random(8)
    parts = {1: rows_of(chance, 8), 2: rows_of(chance, 3), 3: []}
    frame = spark.createDataFrame(
        [(p, None, *row) for p, rows in parts.items() for row in rows],
        "part bigint, part_timestamp timestamp, a bigint, b bigint, x double, g string, t timestamp",
    )
    contents = {p: Content(len(rows), f"{len(rows)}:x") for p, rows in parts.items()}
    checks = [Check(name, arguments_of(name, chance), "error", Place("f", 1, 1)) for name in TRANSLATED]
    ours = check_parts(frame, SCHEMA, checks, contents, Around())
    wrong, seen = [], {True: 0, False: 0}
    for p, rows in parts.items():
        mine = spark.createDataFrame(rows, frame.drop("part", "part_timestamp").schema)
        theirs = by_great_expectations(checks, mine)
        for check, result in zip(checks, ours[p].results, strict=True):
            seen[theirs[check.name]] += 1
            if result.ok != theirs[check.name]:
                wrong.append(
                    f"{check.name} {check.arguments}, theirs: {theirs[check.name]}, ours: {result.message} {rows}"
                )
    assert not wrong, "\n".join(wrong)
    assert min(seen.values()) > 15  # both verdicts were there
