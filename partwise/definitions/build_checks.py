"""Checks: one expectation each, by its Great Expectations name, with its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from partwise.checks.catalog import Argument, Expectation, expectations, left_out
from partwise.definitions.definitions import Check
from partwise.definitions.problems import Problem, list_of
from partwise.definitions.yaml.shape import Reporter, shown
from partwise.definitions.yaml.text import YamlNode
from partwise.spelling import did_you_mean
from partwise.sql.columns import unknown
from partwise.sql.parse import SqlProblem, parse, tokenise
from partwise.sql.references import PART_COLUMNS

_HINT = "for example - expect_column_values_to_not_be_null: {column: src}"
_WORDS = {
    "column": "the name of a column",
    "columns": "a list of columns",
    "text": "text",
    "table": "the name of a table",
    "number": "a number",
    "whole": "a whole number",
    "share": "a number from 0 to 1",
    "bound": "a number, a time or text",
    "flag": "true or false",
    "list": "a list",
    "map": "a map",
}


def checks_of(
    given: list[dict[str, Any]], node: YamlNode, report: Reporter, columns: tuple[str, ...] | None
) -> tuple[tuple[Check, ...], list[Problem]]:
    out: list[Check] = []
    problems: list[Problem] = []
    for at, item in enumerate(given):
        where = node.walk(("checks", at))[1]
        found = list(_problems(item, where, report))
        problems += found
        if found:
            continue
        name = next(key for key in item if key != "severity")
        arguments = item[name] or {}
        out.append(Check(name, arguments, item.get("severity", "error"), report.place(where.key(name) or where)))
        problems += check_columns(name, arguments, where, report, columns)
    return tuple(out), problems


def _problems(item: dict[str, Any], where: YamlNode, report: Reporter) -> Iterator[Problem]:
    names = [key for key in item if key != "severity"]
    if len(names) != 1:
        yield report(where, "bad-check", f"a check has exactly one expectation, found {len(names)}", _HINT)
        return
    name, arguments = names[0], item[names[0]]
    key = where.key(name) or where
    if item.get("severity", "error") not in ("error", "warn"):
        bad = where.get("severity") or where
        yield report(bad, "wrong-value", f"severity is {shown(item['severity'])}; expected error or warn")
    known = expectations().get(name)
    if known is None:
        reason = left_out().get(name)
        if reason is not None:
            yield report(key, "unknown-check", f"{name} cannot be checked here", reason)
        else:
            hint = did_you_mean(name, expectations(), "docs/checks.md lists all of them")
            yield report(key, "unknown-check", f"there is no expectation {shown(name)}", hint)
    elif arguments is not None and not isinstance(arguments, dict):
        yield report(where.get(name) or where, "bad-check", f"the arguments of {name} must be a map", _HINT)
    else:
        yield from _arguments(known, arguments or {}, where, report)


def _arguments(known: Expectation, given: dict[str, Any], where: YamlNode, report: Reporter) -> Iterator[Problem]:
    for argument, value in given.items():
        key, at = where.walk((known.name, argument))
        wanted = known.arguments.get(str(argument))
        if wanted is None:
            names = list(known.arguments)
            hint = did_you_mean(str(argument), names, f"its arguments are {list_of(names, 'and') or 'none'}")
            yield report(key or at, "bad-check", f"{known.name} has no argument {argument}", hint)
        elif not (value is None and not wanted.required) and not _fits(wanted, value):
            expected = _WORDS[wanted.type] if isinstance(wanted.type, str) else list_of(wanted.type)
            yield report(at, "bad-check", f"{argument} of {known.name} is {shown(value)}; expected {expected}")
    key = where.key(known.name) or where
    for argument, wanted in known.arguments.items():
        if wanted.required and argument not in given:
            yield report(key, "bad-check", f"{known.name} needs the argument {argument}")
    if known.one_of and all(given.get(argument) is None for argument in known.one_of):
        yield report(key, "bad-check", f"{known.name} needs {list_of(known.one_of)}")
    low, high = (given.get(n) for n in (known.one_of or ("", ""))[:2])
    if _is_number(low) and _is_number(high) and low > high:  # type: ignore[operator]
        yield report(where.walk((known.name, known.one_of[0]))[1], "bad-check", f"{low} is more than {high}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fits(wanted: Argument, value: Any) -> bool:
    if isinstance(wanted.type, tuple):
        return value in wanted.type
    match wanted.type:
        case "column" | "text" | "table":
            return isinstance(value, str)
        case "columns":
            return isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value)
        case "number":
            return _is_number(value)
        case "whole":
            return isinstance(value, int) and not isinstance(value, bool)
        case "share":
            return _is_number(value) and 0 <= value <= 1
        case "bound":
            return _is_number(value) or isinstance(value, str | date)
        case "flag":
            return isinstance(value, bool)
        case "list":
            return isinstance(value, list) and len(value) > 0
        case _:
            return isinstance(value, dict)


def check_columns(
    name: str, arguments: dict[str, Any], where: YamlNode, report: Reporter, columns: Iterable[str] | None
) -> Iterator[Problem]:
    """A check of a column that the table does not have, where its columns are known."""
    if columns is None:
        return
    known = list(columns)
    there = {c.lower() for c in known} | PART_COLUMNS
    for argument, wanted in expectations()[name].arguments.items():
        value = arguments.get(argument)
        one = [value] if wanted.type == "column" else value if wanted.type == "columns" else []
        for at, column in enumerate(one or []):
            if isinstance(column, str) and column.lower() not in there:
                hint = did_you_mean(column, known, f"the columns are {', '.join(known)}")
                path = (name, argument) if wanted.type == "column" else (name, argument, at)
                yield report(where.walk(path)[1], "unknown-column", f"the table has no column {column}", hint)
    if condition := arguments.get("row_condition"):
        written = where.walk((name, "row_condition"))[1]
        for problem in _condition(str(condition), tuple(known)):
            yield report(written, problem.code, f"row_condition: {problem.message}", problem.hint)


def _condition(text: str, columns: tuple[str, ...]) -> tuple[SqlProblem, ...]:
    """What is wrong with a condition on the rows of a table with these columns."""
    sql = f"SELECT 1 FROM t WHERE {text}"
    tokens = tokenise(sql)
    if tokens.problem is not None:
        return (tokens.problem,)
    tree = parse(sql, tokens.tokens)
    return tree.problems if tree.root is None else unknown(tree.root, lambda table: columns)
