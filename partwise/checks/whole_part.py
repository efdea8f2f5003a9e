"""One value of all rows of a part: an aggregate of a column, or the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partwise.checks import phrases
from partwise.checks.question import Answer, Given, Makers, Mismatch, Question, judged
from partwise.checks.sql_text import between
from partwise.checks.types import is_number, shown_type

_AGGREGATES = {
    "max": "max({c})",
    "min": "min({c})",
    "mean": "avg({c})",
    "sum": "sum({c})",
    "stdev": "stddev_samp({c})",
    "median": "percentile({c}, 0.5)",
}


def _aggregate(name: str, given: Given) -> Question:
    which = name.removeprefix("expect_column_").removesuffix("_to_be_between")
    low, high = given.get("min_value"), given.get("max_value")
    given.comparable(low, high)
    if which not in ("max", "min") and not is_number(given.kind(given["column"])):
        raise Mismatch(f"{given['column']} is {shown_type(given.kind(given['column']))}, which has no {which}")
    value = _AGGREGATES[which].format(c=given.column())
    asked = f"{value} FILTER (WHERE {given.only})"
    # Bounds may be times or text: Spark compares, so that every type is compared as it should be.
    inside = between(asked, low, high, given.get("strict_min", False), given.get("strict_max", False))

    def judge(values: Sequence[Any]) -> Answer:
        observed, ok = values[0], bool(values[1])
        what = f"{which} of {given['column']}"
        return Answer(ok, phrases.value(what, observed, phrases.bounds(given.arguments)), phrases.plain(observed))

    return Question((asked, inside), (None, None), judge)


def _non_null_share(name: str, given: Given) -> Question:
    def judge(values: Sequence[Any]) -> Answer:
        total, there = int(values[0]), int(values[1])
        return judged(given.arguments, f"share of values of {given['column']} that are not NULL", _share(there, total))

    there = f"count_if({given.only} AND {given.column()} IS NOT NULL)"
    return Question((f"count_if({given.only})", there), (0, 0), judge)


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0


def _row_count(name: str, given: Given) -> Question:
    def judge(values: Sequence[Any]) -> Answer:
        if name.endswith("_equal"):
            exact = {"min_value": given["value"], "max_value": given["value"]}
            return judged(exact, "number of rows", int(values[0]))
        return judged(given.arguments, "number of rows", int(values[0]))

    return Question((f"count_if({given.only})",), (0,), judge)


MAKERS: Makers = {
    "expect_column_proportion_of_non_null_values_to_be_between": _non_null_share,
    "expect_table_row_count_to_be_between": _row_count,
    "expect_table_row_count_to_equal": _row_count,
    **{f"expect_column_{which}_to_be_between": _aggregate for which in _AGGREGATES},
}
