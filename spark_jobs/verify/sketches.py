"""What approximate aggregates may give: the exact answer, give or take the error that their sketches promise.

A query is computed with two further columns for each result that is an approximate aggregate and nothing else: the
lowest and the highest value that is right. Expressions over approximate aggregates have no such bounds; they are not
compared. A HAVING that looks at one may keep or drop a group by chance: such a view cannot be checked at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from partwise.compile.parse import Query
from partwise.compile.select import Selection, SelectOutput, select
from partwise.sql.calls import Call
from partwise.sql.text import plain, quoted

_APPROXIMATE = ("approx_count_distinct", "approx_percentile")
#: Standard error of an HLL sketch with 2^12 registers, the default.
_HLL_ERROR = 0.01625
#: Error in rank of a KLL sketch of the default size, with 99 % confidence.
_KLL_ERROR = 0.0133
#: Bounds are so many errors wide: a table has many groups, and verify must not cry wolf.
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


def with_bounds(text: str, query: Query) -> SketchBounds | None:
    """`text` is the query without its window, every other letter in its place. None: cannot be checked."""
    if "approx" not in text.lower():
        return SketchBounds(text)
    selection = selection_of(text, query)
    if selection.having is not None and any(c.name in _APPROXIMATE for c in selection.having.all_calls()):
        return None
    near, ignored, items = [], [], []
    for output in selection.outputs:
        if not any(call.name in _APPROXIMATE for call in output.formula.all_calls()):
            continue
        found = _of_output(output)
        if found is None:
            ignored.append(output.name)
            continue
        near.append(output.name)
        for sql, end in zip(found, (LOW, HIGH), strict=True):
            items.append(f"CAST({sql} AS DOUBLE) AS {quoted(output.name + end)}")
    if not items:
        return SketchBounds(text, (), tuple(ignored))
    return SketchBounds(with_items(text, query, items), tuple(near), tuple(ignored))


def selection_of(text: str, query: Query) -> Selection:
    return select(query, {plain(name) for name in re.findall(r"([\w`]+)\.", text)}, None)


def with_items(text: str, query: Query, items: list[str]) -> str:
    """The query with further columns: at the end of the list, since GROUP BY may count its items."""
    if not items:
        return text
    at = [match.start() for match in re.finditer(r"\bFROM\b", text[: query.table_offset], re.IGNORECASE)][-1]
    return f"{text[:at]}, {', '.join(items)} {text[at:]}"


def only_call(output: SelectOutput) -> Call | None:
    """The aggregate that a column is, if it is nothing else."""
    formula = output.formula
    call = formula.calls[0] if len(formula.calls) == 1 else None
    if call is None or (call.start, call.end) != (formula.piece.offset, formula.piece.offset + len(formula.piece.text)):
        return None
    return call


def _of_output(output: SelectOutput) -> tuple[str, str] | None:
    call = only_call(output)
    if call is None:
        return None
    return _distinct(call) if call.name == "approx_count_distinct" else _percentile(call)


def _distinct(call: Call) -> tuple[str, str]:
    error = float(call.args[1].text) if len(call.args) == 2 else _HLL_ERROR
    exact = f"COUNT(DISTINCT {call.args[0].text}){filter_of(call)}"
    return f"{exact} * {1 - _WIDE * error} - 1", f"{exact} * {1 + _WIDE * error} + 1"


def _percentile(call: Call) -> tuple[str, str] | None:
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


def filter_of(call: Call) -> str:
    return f" FILTER (WHERE {call.filter.text})" if call.filter is not None else ""
