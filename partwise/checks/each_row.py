"""What is expected of each row, or of each value of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partwise.checks import phrases
from partwise.checks.question import Answer, Given, Makers, Question, present
from partwise.checks.sql_text import all_of, any_of, between, in_list, like, literal, quoted


def _rows(given: Given, domain: str, expected: str, what: str, phrase: str) -> Question:
    """Rows of the domain are expected to meet a condition; `mostly` of them are enough. NULL is not against it."""
    inside, mostly = all_of([given.only, domain]), float(given.get("mostly", 1.0))
    against = f"({inside}) AND NOT ({expected})"

    def judge(values: Sequence[Any]) -> Answer:
        elements, unexpected = int(values[0]), int(values[1])
        ok = elements == 0 or (elements - unexpected) / elements >= mostly
        return Answer(ok, phrases.rows(elements, unexpected, what, phrase, mostly), None, elements, unexpected)

    return Question((f"count_if({inside})", f"count_if({against})"), (0, 0), judge, against)


def _values(given: Given, expected: str, phrase: str) -> Question:
    return _rows(given, f"{given.column()} IS NOT NULL", expected, f"values of {given['column']}", phrase)


def _not_null(name: str, given: Given) -> Question:
    return _rows(given, "true", f"{given.column()} IS NOT NULL", f"values of {given['column']}", "not NULL")


def _null(name: str, given: Given) -> Question:
    return _rows(given, "true", f"{given.column()} IS NULL", f"values of {given['column']}", "NULL")


def _between(name: str, given: Given) -> Question:
    low, high = given.get("min_value"), given.get("max_value")
    given.comparable(low, high)
    expected = between(given.column(), low, high, given.get("strict_min", False), given.get("strict_max", False))
    return _values(given, expected, phrases.bounds(given.arguments))


def _in_set(name: str, given: Given) -> Question:
    found = in_list(given.column(), given["value_set"])
    said = phrases.members(given["value_set"])
    if "_not_" in name:
        return _values(given, f"NOT {found}", f"none of {said}")
    return _values(given, found, f"one of {said}")


def _regex(name: str, given: Given) -> Question:
    column = given.text_column("a regular expression")
    patterns = given["regex_list"] if name.endswith("_list") else [given["regex"]]
    found = [f"{column} RLIKE {literal(str(pattern))}" for pattern in patterns]
    return _matching(name, given, found, phrases.members(patterns))


def _like(name: str, given: Given) -> Question:
    column = given.text_column("LIKE")
    patterns = given["like_pattern_list"] if name.endswith("_list") else [given["like_pattern"]]
    found = [like(column, str(pattern), given.get("escape")) for pattern in patterns]
    return _matching(name, given, found, phrases.members(patterns))


def _matching(name: str, given: Given, found: list[str], said: str) -> Question:
    if "_not_match" in name:
        return _values(given, f"NOT ({any_of(found)})", f"not like {said}")
    every = given.get("match_on", "any") == "all"
    return _values(given, all_of(found) if every else any_of(found), f"like {said}")


def _lengths(name: str, given: Given) -> Question:
    size = f"length({given.text_column('a length')})"
    if name.endswith("_equal"):
        return _values(given, f"{size} = {literal(given['value'])}", f"of length {given['value']}")
    low, high = given.get("min_value"), given.get("max_value")
    expected = between(size, low, high, given.get("strict_min", False), given.get("strict_max", False))
    return _values(given, expected, f"of a length {phrases.bounds(given.arguments)}")


def _pairs(name: str, given: Given) -> Question:
    a, b = given.column("column_A"), given.column("column_B")
    names = f"{given['column_A']} and {given['column_B']}"
    ignore = given.get("ignore_row_if", "both_values_are_missing")
    domain = {
        "both_values_are_missing": f"NOT ({a} IS NULL AND {b} IS NULL)",
        "either_value_is_missing": f"{a} IS NOT NULL AND {b} IS NOT NULL",
        "neither": "true",
    }[ignore]
    if name.endswith("_equal"):
        expected, phrase = f"{a} <=> {b}", "equal"
    elif name.endswith("_in_set"):
        pairs = [all_of([f"{a} <=> {literal(x)}", f"{b} <=> {literal(y)}"]) for x, y in given["value_pairs_set"]]
        expected, phrase = any_of(pairs), f"one of {phrases.members(given['value_pairs_set'])}"
    elif given.get("or_equal", False):
        expected, phrase = f"{a} >= {b} OR {a} <=> {b}", "the first at least the second"
    else:
        expected, phrase = f"{a} > {b}", "the first greater than the second"
    return _rows(given, domain, expected, f"rows ({names})", phrase)


def _several(name: str, given: Given) -> Question:
    names = [given.name(n) for n in given["column_list"]]
    columns = [quoted(n) for n in names]
    domain = present(columns, given.get("ignore_row_if", "all_values_are_missing"))
    pairs = [f"{x} <=> {y}" for at, x in enumerate(columns) for y in columns[at + 1 :]]
    if "sum_to_equal" in name:
        terms = [_term(column, given.columns[n]) for n, column in zip(names, columns, strict=True)]
        expected, phrase = f"{' + '.join(terms)} = {literal(given['sum_total'])}", f"a sum of {given['sum_total']}"
    elif "unique_within_record" in name:
        expected, phrase = f"NOT ({any_of(pairs)})", "all different"
    else:
        expected, phrase = all_of(f"{columns[0]} <=> {other}" for other in columns[1:]), "all equal"
    return _rows(given, domain, expected, f"rows ({', '.join(names)})", phrase)


def _term(column: str, kind: Any) -> str:
    whole = kind in ("byte", "short", "integer", "long")
    return f"CAST(COALESCE({column}, 0) AS DECIMAL(38, 0))" if whole else f"COALESCE({column}, 0)"


MAKERS: Makers = {
    "expect_column_values_to_not_be_null": _not_null,
    "expect_column_values_to_be_null": _null,
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_not_be_in_set": _in_set,
    "expect_column_values_to_match_regex": _regex,
    "expect_column_values_to_match_regex_list": _regex,
    "expect_column_values_to_not_match_regex": _regex,
    "expect_column_values_to_not_match_regex_list": _regex,
    "expect_column_values_to_match_like_pattern": _like,
    "expect_column_values_to_match_like_pattern_list": _like,
    "expect_column_values_to_not_match_like_pattern": _like,
    "expect_column_values_to_not_match_like_pattern_list": _like,
    "expect_column_value_lengths_to_be_between": _lengths,
    "expect_column_value_lengths_to_equal": _lengths,
    "expect_column_pair_values_to_be_equal": _pairs,
    "expect_column_pair_values_to_be_in_set": _pairs,
    "expect_column_pair_values_a_to_be_greater_than_b": _pairs,
    "expect_multicolumn_sum_to_equal": _several,
    "expect_multicolumn_values_to_be_equal": _several,
    "expect_select_column_values_to_be_unique_within_record": _several,
}
