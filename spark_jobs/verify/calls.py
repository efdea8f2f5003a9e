"""Aggregates of a window as documented, in words that Spark has.

Spark knows no ARG_MAX and no COUNTIF. Its FIRST and LAST take rows as they come, and MAX_BY and MIN_BY any row among
equal keys, where a view has one answer. Its CORR fails on a constant column, and its SUM of bigint where the total fits but
what comes before the last row does not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from spark_jobs.verify.clauses import one_line
from spark_jobs.verify.expressions import AggregateCall


def documented(text: str, calls: Sequence[AggregateCall], moment: Sequence[str], bigints: Collection[str]) -> str:
    """The text with these calls written differently. `moment`: the columns that say which row is first; `bigints`:
    expressions of that type."""
    for call in sorted(calls, key=lambda c: -c.start):  # from the end, so that places in front stay what they are
        text = text[: call.start] + _written(text, call, moment, bigints) + text[call.end :]
    return text


def _written(text: str, call: AggregateCall, moment: Sequence[str], bigints: Collection[str]) -> str:
    args = [one_line(arg.text) for arg in call.args]
    if call.name in ("first", "last"):
        ignores = call.ignore_nulls or (len(args) == 2 and args[1].upper() == "TRUE")
        function = "min_by" if call.name == "first" else "max_by"
        return _by(function, args[0], [*moment, args[0]], call, args[:1] if ignores else [])
    if call.name in ("max_by", "min_by"):
        return _by(call.name, args[0], [args[1], *moment, args[0]], call, args[1:])
    if call.name == "corr":
        x, y = args
        rows = _rows(call, args)
        return f"(COVAR_POP({x}, {y}){rows} / NULLIF(STDDEV_POP({x}){rows} * STDDEV_POP({y}){rows}, 0))"
    if call.name == "sum" and call.args[0].text in bigints:
        return f"CAST(SUM(CAST({args[0]} AS DECIMAL(38,0))){_rows(call, [])} AS BIGINT)"
    return call.name + text[text.index("(", call.start) : call.end]


def _by(function: str, value: str, order: Sequence[str], call: AggregateCall, there: Sequence[str]) -> str:
    """The value of the first or last row by key, time and tie; rows that are equal by all that go by their values."""
    return f"{function}({value}, struct({', '.join(order)})){_rows(call, there)}"


def _rows(call: AggregateCall, there: Sequence[str]) -> str:
    conditions = [f"({arg}) IS NOT NULL" for arg in there]
    conditions += [f"({one_line(call.filter.text)})"] if call.filter is not None else []
    return f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
