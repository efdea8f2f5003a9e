"""How far aggregates of floating point numbers may be from those that were computed in another order.

A share of the result is not enough: a sum whose terms nearly cancel, or a variance of values far from zero, keeps few
of the digits that its terms had. So the query is computed with a further column for each such result, which says by how
much it may differ.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from spark_jobs.verify.clauses import QueryCut, quoted
from spark_jobs.verify.expressions import AggregateCall
from spark_jobs.verify.sketches import filter_of, only_call, with_items

#: At the end of the name of a column that says how far another one may be off.
ERROR = "__error"
#: As a share of the terms, and of their distance from zero: some thousand times what a double is precise to.
_OF_TERMS, _OF_DISTANCE = 1e-9, 1e-12


def with_errors(text: str, query: QueryCut, names: Sequence[str], doubles: Collection[str]) -> str:
    """`text` is the query without its window. `names`: those of its results. `doubles`: the columns of the result that are floating point numbers."""
    items = []
    for item, name in zip(query.items, names, strict=True):
        call = only_call(item)
        error = _error(call) if call is not None and name in doubles else None
        if error is not None:
            items.append(f"{error} AS {quoted(name + ERROR)}")
    return with_items(text, query, items)


def _error(call: AggregateCall) -> str | None:
    rows = filter_of(call)
    if call.distinct or call.star:
        return None
    x, y = (f"CAST({call.args[at].text} AS DOUBLE)" for at in (0, -1))
    both = f"CAST(IF({x} IS NULL OR {y} IS NULL, NULL, {{}}) AS DOUBLE)"
    mean_x, mean_y = (f"ABS(AVG({both.format(each)}){rows})" for each in (x, y))
    spread_x, spread_y = (f"STDDEV_POP({both.format(each)}){rows}" for each in (x, y))
    far = f"{_OF_DISTANCE} * ABS(AVG({x}){rows})"
    if call.name == "sum":
        return f"{_OF_TERMS} * SUM(ABS({x})){rows}"
    if call.name == "avg":
        return f"{_OF_TERMS} * AVG(ABS({x})){rows}"
    if call.name in ("var_samp", "var_pop"):
        return f"{far} * STDDEV_POP({x}){rows}"
    if call.name in ("stddev_samp", "stddev_pop"):
        return far
    if call.name in ("covar_samp", "covar_pop"):
        distance = f"({mean_x} * {spread_y} + {mean_y} * {spread_x})"
        return f"2 * ({_OF_TERMS} * {spread_x} * {spread_y} + {_OF_DISTANCE} * {distance})"
    if call.name == "corr":
        distance = f"({mean_x} / NULLIF({spread_x}, 0) + {mean_y} / NULLIF({spread_y}, 0))"
        return f"{_OF_TERMS} + {_OF_DISTANCE} * {distance}"
    return None
