"""The columns themselves: their names, number and types. No row is looked at."""

from __future__ import annotations

from typing import Any

from partwise.checks import phrases
from partwise.checks.question import Answer, Given, Makers, Question, judged
from partwise.checks.types import same_type, shown_type


def _static(ok: bool, message: str, observed: Any) -> Question:
    return Question((), (), lambda values: Answer(ok, message, observed))


def _exists(name: str, given: Given) -> Question:
    ok = given["column"].lower() in {n.lower() for n in given.columns}
    said = "there is" if ok else f"the columns are {', '.join(given.own)}; there is no"
    return _static(ok, f"{said} column {given['column']}", given.own)


def _type(name: str, given: Given) -> Question:
    kind = given.kind(given["column"])
    wanted = given["type_list"] if "type_list" in given.arguments else [given["type_"]]
    ok = any(same_type(kind, str(w)) for w in wanted)
    found = shown_type(kind)
    return _static(ok, phrases.value(f"type of {given['column']}", found, f"{phrases.members(wanted)}"), found)


def _column_list(name: str, given: Given) -> Question:
    have = given.own
    if name.endswith("ordered_list"):
        wanted = list(given["column_list"])
        ok = have == wanted
    else:
        wanted = list(given["column_set"])
        ok = set(wanted) == set(have) if given.get("exact_match", True) else set(wanted) <= set(have)
    return _static(ok, phrases.value("columns", ", ".join(have), ", ".join(wanted)), have)


def _column_count(name: str, given: Given) -> Question:
    exact = {"min_value": given.get("value"), "max_value": given.get("value")}
    found = judged(exact if name.endswith("_equal") else given.arguments, "number of columns", len(given.own))
    return _static(found.ok, found.message, found.observed)


MAKERS: Makers = {
    "expect_column_to_exist": _exists,
    "expect_column_type_to_be": _type,
    "expect_column_values_to_be_of_type": _type,
    "expect_column_values_to_be_in_type_list": _type,
    "expect_table_columns_to_match_ordered_list": _column_list,
    "expect_table_columns_to_match_set": _column_list,
    "expect_table_column_count_to_be_between": _column_count,
    "expect_table_column_count_to_equal": _column_count,
}
