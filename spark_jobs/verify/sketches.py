"""What approximate aggregates may give: the exact answer, give or take the error that their sketches promise.

A query is computed with two further columns for each result that is an approximate aggregate and nothing else: the
lowest and the highest value that is right. Expressions over approximate aggregates have no such bounds; they are not
compared. A HAVING that looks at one may keep or drop a group by chance: such a view cannot be checked at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.verify.clauses import QueryCut, SelectItem, quoted
from spark_jobs.verify.expressions import AggregateCall, calls, calls_in_having

_APPROXIMATE = ("approx_count_distinct", "approx_percentile")
#: Standard error of an HLL sketch with 2^12 registers, the default.
_HLL_ERROR = 0.01625
#: Error in rank of a KLL sketch of the default size, with 99 % confidence.
_KLL_ERROR = 0.0133
#: SketchBounds are so many errors wide: a table has many groups, and verify must not cry wolf.
_WIDE = 5

LOW, HIGH = "__low", "__high"


@dataclass(frozen=True)
class SketchBounds:
    """`near`: columns with bounds in the columns LOW and HIGH beside them; `ignored`: columns that have none."""

    text: str
    near: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def approximate(self) -> bool:
        return bool(self.near or self.ignored)


def with_bounds(text: str, query: QueryCut, names: Sequence[str]) -> SketchBounds | None:
    """`text` is the query without its window, every other letter in its place; `names`: those of its results.
    None: cannot be checked."""
    if "approx" not in text.lower():
        return SketchBounds(text)
    if any(call.name in _APPROXIMATE for call in calls_in_having(query)):
        return None
    near, ignored, items = [], [], []
    for item, name in zip(query.items, names, strict=True):
        if not any(call.name in _APPROXIMATE for call in calls(item.body)):
            continue
        found = _of_item(item)
        if found is None:
            ignored.append(name)
            continue
        near.append(name)
        for sql, end in zip(found, (LOW, HIGH), strict=True):
            items.append(f"CAST({sql} AS DOUBLE) AS {quoted(name + end)}")
    if not items:
        return SketchBounds(text, (), tuple(ignored))
    return SketchBounds(with_items(text, query, items), tuple(near), tuple(ignored))


def with_items(text: str, query: QueryCut, items: list[str]) -> str:
    """The query with further columns: at the end of the list, since GROUP BY may count its items."""
    if not items:
        return text
    return f"{text[: query.from_at]}, {', '.join(items)} {text[query.from_at :]}"


def only_call(item: SelectItem) -> AggregateCall | None:
    """The aggregate that a column is, if it is nothing else."""
    found = calls(item.body)
    whole = len(found) == 1 and (found[0].start, found[0].end) == (item.body.start, item.body.end)
    return found[0] if whole else None


def _of_item(item: SelectItem) -> tuple[str, str] | None:
    call = only_call(item)
    if call is None:
        return None
    return _distinct(call) if call.name == "approx_count_distinct" else _percentile(call)


def _distinct(call: AggregateCall) -> tuple[str, str]:
    error = float(call.args[1].text) if len(call.args) == 2 else _HLL_ERROR
    exact = f"COUNT(DISTINCT {call.args[0].text}){filter_of(call)}"
    return f"{exact} * {1 - _WIDE * error} - 1", f"{exact} * {1 + _WIDE * error} + 1"


def _percentile(call: AggregateCall) -> tuple[str, str] | None:
    """Neighbours in rank: the values themselves may lie far apart."""
    try:
        share = float(call.args[1].text)
    except ValueError:
        return None
    x = call.args[0].text
    count = f"COUNT({x}){filter_of(call)}"
    error = _WIDE * (1 / int(call.args[2].text) if len(call.args) == 3 else _KLL_ERROR)
    values = f"array_sort(collect_list(CAST({x} AS DOUBLE)){filter_of(call)})"
    low = f"GREATEST(CAST(FLOOR({share - error} * {count}) AS INT) - 1, 0)"
    high = f"LEAST(CAST(CEIL({share + error} * {count}) AS INT), CAST({count} AS INT) - 1)"
    return f"get({values}, {low})", f"get({values}, {high})"


def filter_of(call: AggregateCall) -> str:
    return f" FILTER (WHERE {call.filter.text})" if call.filter is not None else ""
