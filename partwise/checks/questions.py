"""A check as SQL: aggregates over the rows of a part, and what their values mean.

All aggregates of all checks of a table go into one query, grouped by part, over the staged files. Great Expectations
would ask Spark at least once per part and expectation. The verdicts are those of Great Expectations' Spark engine,
NULLs, `mostly` and empty parts included: a test compares the two on random data.

What has no translation here returns None from `question` and is answered by Great Expectations itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partwise.checks import phrases
from partwise.checks.sql_text import all_of, any_of, between, in_list, like, literal, quoted
from partwise.checks.types import is_number, is_text, same_type, shown_type

Arguments = Mapping[str, Any]
#: Columns of a table with their types, as `partwise.storage.schema.fields` gives them.
Columns = Mapping[str, Any]


class Mismatch(Exception):
    """The check cannot be run on this column; the message is meant for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    ok: bool
    message: str
    observed: Any = None
    elements: int | None = None
    unexpected: int | None = None
    rows: tuple[str, ...] = ()  # a sample, where it is known at once


@dataclass(frozen=True)
class Question:
    """`aggregates` are asked for each part; a part without rows gives 0 for counts and None for the rest (`empty`).

    With `key` they are asked over `(part, key, n)`, n being how often the key occurs among rows that meet `where`:
    that costs a shuffle, so it is a query of its own. `failing` is true for rows to look at; with `key` rows
    whose key occurs more than once.
    """

    aggregates: tuple[str, ...]
    empty: tuple[Any, ...]
    judge: Callable[[Sequence[Any]], Answer]
    failing: str | None = None
    key: tuple[str, ...] | None = None
    where: str = "true"


def question(name: str, arguments: Arguments, columns: Columns) -> Question | None:
    """None: Great Expectations has to answer. Raises Mismatch."""
    maker = _MAKERS.get(name)
    return None if maker is None else maker(name, _Given(arguments, columns))


class _Given:
    """Arguments and columns of one check."""

    def __init__(self, arguments: Arguments, columns: Columns) -> None:
        self.arguments, self.columns = arguments, columns
        self._names = {name.lower(): name for name in columns}

    def __getitem__(self, key: str) -> Any:
        return self.arguments[key]

    def get(self, key: str, default: Any = None) -> Any:
        found = self.arguments.get(key)
        return default if found is None else found

    @property
    def only(self) -> str:
        """The rows that are looked at."""
        return f"({self.arguments['row_condition']})" if self.arguments.get("row_condition") else "true"

    def name(self, given: str) -> str:
        found = self._names.get(given.lower())
        if found is None:
            raise Mismatch(f"there is no column {given}; the columns are {', '.join(self.columns)}")
        return found

    def kind(self, given: str) -> Any:
        return self.columns[self.name(given)]

    def column(self, key: str = "column") -> str:
        return quoted(self.name(self.arguments[key]))

    def text_column(self, what: str) -> str:
        if not is_text(self.kind(self["column"])):
            raise Mismatch(f"{what} needs text, but {self['column']} is {shown_type(self.kind(self['column']))}")
        return self.column()

    def comparable(self, *bounds: Any) -> None:
        kind = self.kind(self["column"])
        for bound in bounds:
            number = isinstance(bound, int | float) and not isinstance(bound, bool)
            if bound is not None and number != is_number(kind):
                raise Mismatch(f"{self['column']} is {shown_type(kind)}, which cannot be compared with {bound!r}")


# -- each row ---------------------------------------------------------------------------------------------


def _rows(given: _Given, domain: str, expected: str, what: str, phrase: str) -> Question:
    """Rows of the domain are expected to meet a condition; `mostly` of them are enough. NULL is not against it."""
    inside, mostly = all_of([given.only, domain]), float(given.get("mostly", 1.0))
    against = f"({inside}) AND NOT ({expected})"

    def judge(values: Sequence[Any]) -> Answer:
        elements, unexpected = int(values[0]), int(values[1])
        ok = elements == 0 or (elements - unexpected) / elements >= mostly
        return Answer(ok, phrases.rows(elements, unexpected, what, phrase, mostly), None, elements, unexpected)

    return Question((f"count_if({inside})", f"count_if({against})"), (0, 0), judge, against)


def _values(given: _Given, expected: str, phrase: str) -> Question:
    return _rows(given, f"{given.column()} IS NOT NULL", expected, f"values of {given['column']}", phrase)


def _not_null(name: str, given: _Given) -> Question:
    return _rows(given, "true", f"{given.column()} IS NOT NULL", f"values of {given['column']}", "not NULL")


def _null(name: str, given: _Given) -> Question:
    return _rows(given, "true", f"{given.column()} IS NULL", f"values of {given['column']}", "NULL")


def _between(name: str, given: _Given) -> Question:
    low, high = given.get("min_value"), given.get("max_value")
    given.comparable(low, high)
    expected = between(given.column(), low, high, given.get("strict_min", False), given.get("strict_max", False))
    return _values(given, expected, phrases.bounds(given.arguments))


def _in_set(name: str, given: _Given) -> Question:
    found = in_list(given.column(), given["value_set"])
    said = phrases.members(given["value_set"])
    if "_not_" in name:
        return _values(given, f"NOT {found}", f"none of {said}")
    return _values(given, found, f"one of {said}")


def _regex(name: str, given: _Given) -> Question:
    column = given.text_column("a regular expression")
    patterns = given["regex_list"] if name.endswith("_list") else [given["regex"]]
    found = [f"{column} RLIKE {literal(str(pattern))}" for pattern in patterns]
    return _matching(name, given, found, phrases.members(patterns))


def _like(name: str, given: _Given) -> Question:
    column = given.text_column("LIKE")
    patterns = given["like_pattern_list"] if name.endswith("_list") else [given["like_pattern"]]
    found = [like(column, str(pattern), given.get("escape")) for pattern in patterns]
    return _matching(name, given, found, phrases.members(patterns))


def _matching(name: str, given: _Given, found: list[str], said: str) -> Question:
    if "_not_match" in name:
        return _values(given, f"NOT ({any_of(found)})", f"not like {said}")
    every = given.get("match_on", "any") == "all"
    return _values(given, all_of(found) if every else any_of(found), f"like {said}")


def _lengths(name: str, given: _Given) -> Question:
    size = f"length({given.text_column('a length')})"
    if name.endswith("_equal"):
        return _values(given, f"{size} = {literal(given['value'])}", f"of length {given['value']}")
    low, high = given.get("min_value"), given.get("max_value")
    expected = between(size, low, high, given.get("strict_min", False), given.get("strict_max", False))
    return _values(given, expected, f"of a length {phrases.bounds(given.arguments)}")


def _pairs(name: str, given: _Given) -> Question:
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


def _several(name: str, given: _Given) -> Question:
    names = [given.name(n) for n in given["column_list"]]
    columns = [quoted(n) for n in names]
    domain = _present(columns, given.get("ignore_row_if", "all_values_are_missing"))
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


def _present(columns: Sequence[str], ignore: str) -> str:
    if ignore == "all_values_are_missing":
        return f"NOT ({all_of(f'{c} IS NULL' for c in columns)})"
    return all_of(f"{c} IS NOT NULL" for c in columns) if ignore == "any_value_is_missing" else "true"


# -- how often values occur -------------------------------------------------------------------------------


def _unique(name: str, given: _Given) -> Question:
    if "compound" in name:
        names = [given.name(n) for n in given["column_list"]]
        columns = tuple(quoted(n) for n in names)
        where = _present(columns, given.get("ignore_row_if", "all_values_are_missing"))
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


def _distinct(name: str, given: _Given) -> Question:
    column, share = given.column(), "proportion" in name

    def judge(values: Sequence[Any]) -> Answer:
        count, total = int(values[0] or 0), int(values[1] or 0)
        found = (count / total if total else 0) if share else count
        what = f"{'share' if share else 'number'} of different values of {given['column']}"
        return _judged(given.arguments, what, found)

    where = all_of([given.only, f"{column} IS NOT NULL"])
    return Question(("count(1)", "sum(n)"), (0, 0), judge, None, (column,), where)


def _distinct_set(name: str, given: _Given) -> Question:
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


# -- one value of all rows ----------------------------------------------------------------------------------

_AGGREGATES = {
    "max": "max({c})",
    "min": "min({c})",
    "mean": "avg({c})",
    "sum": "sum({c})",
    "stdev": "stddev_samp({c})",
    "median": "percentile({c}, 0.5)",
}


def _aggregate(name: str, given: _Given) -> Question:
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


def _non_null_share(name: str, given: _Given) -> Question:
    def judge(values: Sequence[Any]) -> Answer:
        total, there = int(values[0]), int(values[1])
        return _judged(given.arguments, f"share of values of {given['column']} that are not NULL", _share(there, total))

    there = f"count_if({given.only} AND {given.column()} IS NOT NULL)"
    return Question((f"count_if({given.only})", there), (0, 0), judge)


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0


def _row_count(name: str, given: _Given) -> Question:
    def judge(values: Sequence[Any]) -> Answer:
        if name.endswith("_equal"):
            exact = {"min_value": given["value"], "max_value": given["value"]}
            return _judged(exact, "number of rows", int(values[0]))
        return _judged(given.arguments, "number of rows", int(values[0]))

    return Question((f"count_if({given.only})",), (0,), judge)


def _judged(bounds: Arguments, what: str, found: float) -> Answer:
    low, high = bounds.get("min_value"), bounds.get("max_value")
    ok = (low is None or (found > low if bounds.get("strict_min") else found >= low)) and (
        high is None or (found < high if bounds.get("strict_max") else found <= high)
    )
    return Answer(ok, phrases.value(what, found, phrases.bounds(bounds)), found)


# -- the columns themselves -----------------------------------------------------------------------------------


def _static(ok: bool, message: str, observed: Any) -> Question:
    return Question((), (), lambda values: Answer(ok, message, observed))


def _exists(name: str, given: _Given) -> Question:
    ok = given["column"].lower() in {n.lower() for n in given.columns}
    said = "there is" if ok else f"the columns are {', '.join(given.columns)}; there is no"
    return _static(ok, f"{said} column {given['column']}", list(given.columns))


def _type(name: str, given: _Given) -> Question:
    kind = given.kind(given["column"])
    wanted = given["type_list"] if "type_list" in given.arguments else [given["type_"]]
    ok = any(same_type(kind, str(w)) for w in wanted)
    found = shown_type(kind)
    return _static(ok, phrases.value(f"type of {given['column']}", found, f"{phrases.members(wanted)}"), found)


def _column_list(name: str, given: _Given) -> Question:
    have = list(given.columns)
    if name.endswith("ordered_list"):
        wanted = list(given["column_list"])
        ok = have == wanted
    else:
        wanted = list(given["column_set"])
        ok = set(wanted) == set(have) if given.get("exact_match", True) else set(wanted) <= set(have)
    return _static(ok, phrases.value("columns", ", ".join(have), ", ".join(wanted)), have)


def _column_count(name: str, given: _Given) -> Question:
    exact = {"min_value": given.get("value"), "max_value": given.get("value")}
    found = _judged(exact if name.endswith("_equal") else given.arguments, "number of columns", len(given.columns))
    return _static(found.ok, found.message, found.observed)


_MAKERS: dict[str, Callable[[str, _Given], Question]] = {
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
    "expect_column_values_to_be_unique": _unique,
    "expect_compound_columns_to_be_unique": _unique,
    "expect_column_unique_value_count_to_be_between": _distinct,
    "expect_column_proportion_of_unique_values_to_be_between": _distinct,
    "expect_column_distinct_values_to_be_in_set": _distinct_set,
    "expect_column_distinct_values_to_contain_set": _distinct_set,
    "expect_column_distinct_values_to_equal_set": _distinct_set,
    "expect_column_proportion_of_non_null_values_to_be_between": _non_null_share,
    "expect_table_row_count_to_be_between": _row_count,
    "expect_table_row_count_to_equal": _row_count,
    "expect_column_to_exist": _exists,
    "expect_column_type_to_be": _type,
    "expect_column_values_to_be_of_type": _type,
    "expect_column_values_to_be_in_type_list": _type,
    "expect_table_columns_to_match_ordered_list": _column_list,
    "expect_table_columns_to_match_set": _column_list,
    "expect_table_column_count_to_be_between": _column_count,
    "expect_table_column_count_to_equal": _column_count,
    **{f"expect_column_{which}_to_be_between": _aggregate for which in _AGGREGATES},
}

#: Names of expectations that need no Great Expectations to be answered.
TRANSLATED = frozenset(_MAKERS)
