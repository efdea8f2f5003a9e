"""How often values occur: unique ones, different ones, sets of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partwise.checks import phrases
from partwise.checks.question import Answer, Given, Makers, Question, judged, present
from partwise.checks.sql_text import all_of, in_list, literal, quoted


def _unique(name: str, given: Given) -> Question:
    if "compound" in name:
        names = [given.name(n) for n in given["column_list"]]
        columns = tuple(quoted(n) for n in names)
        where = present(columns, given.get("ignore_row_if", "all_values_are_missing"))
        what = f"rows ({', '.join(names)})"
    else:
        columns, what = (given.column(),), f"values of {given['column']}"
        where = f"{columns[0]} IS NOT NULL"
    mostly = float(given.get("mostly", 1.0))

    def judge(values: Sequence[Any]) -> Answer:
        elements, unexpected = int(values[0] or 0), int(values[1] or 0)
        ok = elements == 0 or (elements - unexpected) / elements >= mostly
        return Answer(ok, phrases.rows(elements, unexpected, what, "unique", mostly), None, elements, unexpected)

    counts = ("sum(n)", "sum(IF(n > 1, n, 0))")
    return Question(counts, (0, 0), judge, "n > 1", columns, all_of([given.only, where]))


def _distinct(name: str, given: Given) -> Question:
    column, share = given.column(), "proportion" in name

    def judge(values: Sequence[Any]) -> Answer:
        count, total = int(values[0] or 0), int(values[1] or 0)
        found = (count / total if total else 0) if share else count
        what = f"{'share' if share else 'number'} of different values of {given['column']}"
        return judged(given.arguments, what, found)

    where = all_of([given.only, f"{column} IS NOT NULL"])
    return Question(("count(1)", "sum(n)"), (0, 0), judge, None, (column,), where)


def _distinct_set(name: str, given: Given) -> Question:
    column, members = given.column(), [v for v in given["value_set"] if v is not None]
    others = all_of([given.only, f"{column} IS NOT NULL", f"NOT {in_list(column, members)}"])
    there = tuple(f"count_if({given.only} AND {column} = {literal(v)})" for v in members)
    inside, every = not name.endswith("to_contain_set"), not name.endswith("to_be_in_set")

    def judge(values: Sequence[Any]) -> Answer:
        foreign = int(values[0])
        missing = [v for v, n in zip(members, values[1:], strict=True) if not n]
        ok = (not inside or foreign == 0) and (not every or not missing)
        return Answer(ok, phrases.sets(given["column"], foreign if inside else 0, missing if every else [], members))

    return Question((f"count_if({others})", *there), (0,) * (1 + len(there)), judge, others if inside else None)


MAKERS: Makers = {
    "expect_column_values_to_be_unique": _unique,
    "expect_compound_columns_to_be_unique": _unique,
    "expect_column_unique_value_count_to_be_between": _distinct,
    "expect_column_proportion_of_unique_values_to_be_between": _distinct,
    "expect_column_distinct_values_to_be_in_set": _distinct_set,
    "expect_column_distinct_values_to_contain_set": _distinct_set,
    "expect_column_distinct_values_to_equal_set": _distinct_set,
}
