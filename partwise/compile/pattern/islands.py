"""Many rows per group where every edge asks for the same: the open run is all rows since the last one that fails.

With one condition for all variables, a plus among them and one set of columns, a group has one run worth keeping: its
rows after the newest one that does not meet the condition, and before them the run that was open, if no row of the part
ended it. Counting failures in order finds these rows (an "island"), and ordinary aggregates take the place of a fold,
which Spark interprets row by row. The open run goes first, as a row of its own, so sums are added up in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

from partwise.compile.pattern.aggregates import Measure, always_there
from partwise.compile.pattern.plan import PatternPlan
from partwise.compile.pattern.text import keys, lines, named_keys, where
from partwise.compile.select import Names
from partwise.sql.layout import filled
from partwise.sql.text import operand, quoted
from partwise.sql.types.names import decimal_of


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """A column of the helper: its value in a row of the part, in the run that was open, and over all of these."""

    name: str
    row: str
    run: str
    result: str


def is_island(plan: PatternPlan) -> bool:
    """Whether one condition on the row alone decides everything, for each group by itself."""
    machine, shape = plan.machine, plan.shape
    asked = {frozenset(c.canonical for c in edge.conditions) for edge in machine.edges}
    alone = not any(c.on_previous for edge in machine.edges for c in edge.conditions)
    one_run = len(shape.registers) == 1 and not shape.restricted and machine.first_plus < machine.size
    return len(asked) == 1 and alone and one_run and bool(plan.keys)


def island_sql(plan: PatternPlan, helper: str, *, first: bool) -> str:
    [register] = plan.shape.registers
    names = Names([*keys(plan), *_named(plan), helper, plan.table.name])
    at, ends, seen, ended = (names.new(wish) for wish in ("place", "ends", "seen", "ended"))
    kept = _kept(plan, at)
    in_order = any(f"STRUCT({at}," in column.result for column in kept)
    columns, order = _sorted_by(plan, kept, names)
    by = [f"{register.key} NULLS LAST", *order]
    window = f"PARTITION BY {', '.join(keys(plan))} ORDER BY {', '.join(by)}"
    rows_up_to = "\n      ROWS BETWEEN UNBOUNDED PRECEDING AND"
    counts = [
        f"SUM({ends}) OVER ({window}{rows_up_to} CURRENT ROW) AS {seen}",
        f"SUM({ends}) OVER ({window}{rows_up_to} UNBOUNDED FOLLOWING) AS {ended}",
        *([f"ROW_NUMBER() OVER ({window}) AS {at}"] if in_order else []),
    ]
    fails = f"IF({_condition(plan)}, 0, 1) AS {ends}"
    rows = [*named_keys(plan), *(f"{text} AS {name}" for text, name in columns), *_aliased(kept, "row"), fails]
    runs = [*keys(plan), *("NULL" for _ in columns), *_aliased(kept, "run"), "0"]
    joined = [] if first else ["  UNION ALL", f"    SELECT {filled(runs, 11)}", f"    FROM {helper}[j-1]"]
    waits = first or plan.view.gaps == "carry"
    return "\n".join(
        [
            "-- the rows of each group after the last one that ends its runs"
            + ("" if first else ", behind its open run"),
            f"SELECT {filled([*keys(plan), *_aliased(kept, 'result')], 7)}",
            "FROM (",
            f"  SELECT\n    {filled([*keys(plan), *(c.name for c in kept), ends], 4)},",
            "    " + ",\n    ".join(counts),
            "  FROM (",
            lines(4, f"SELECT {filled(rows, 7)}", f"FROM {plan.reference('i' if first else 'j')}", where(plan)),
            *joined,
            "  )",
            ")",
            f"WHERE {ends} = 0 AND {seen} = {ended}",
            f"GROUP BY {', '.join(keys(plan))}",
            *([] if waits else [f"HAVING COUNT_IF({register.key} IS NULL) > 0"]),
        ]
    )


def _aliased(kept: list[KeptColumn], what: str) -> list[str]:
    texts = [(getattr(column, what), column.name) for column in kept]
    return [text if text == name else f"{text} AS {name}" for text, name in texts]


def _named(plan: PatternPlan) -> list[str]:
    [register] = plan.shape.registers
    return [register.key, *register.fields.values(), *(name for name, _ in plan.shape.last.values())]


def _condition(plan: PatternPlan) -> str:
    return " AND ".join(c.write(quoted, quoted) for c in plan.machine.edges[0].conditions) or "TRUE"


def _sorted_by(plan: PatternPlan, kept: list[KeptColumn], names: Names) -> tuple[list[tuple[str, str]], list[str]]:
    """Columns for sorting as (expression, name), and what to sort by: as the fold does. What is kept anyway serves."""
    there = {column.row: column.name for column in kept}
    columns: list[tuple[str, str]] = []
    order = []
    for text in dict.fromkeys([*(text for text, _ in plan.order), *map(quoted, plan.row_columns)]):
        if text not in there:
            there[text] = quoted(names.new(f"by_{len(columns) + 1}"))
            columns.append((text, there[text]))
        order.append(there[text])
    return columns, order


def _kept(plan: PatternPlan, at: str) -> list[KeptColumn]:
    """The key is NULL in rows of the part: they come after the open run, and count one each."""
    shape, machine = plan.shape, plan.machine
    [register] = shape.registers
    length = f"SUM(COALESCE({register.key}, 1))"
    if register.by_count:
        found = [KeptColumn(register.key, "CAST(NULL AS BIGINT)", register.key, length)]
    else:
        state = f"CAST(LEAST({length}, {machine.size}) AS INT)"
        found = [KeptColumn(register.key, "CAST(NULL AS INT)", register.key, state)]
    for measure, name in register.fields.items():
        found.append(_measure(plan, measure, name, at))
    for text, (name, _) in shape.last.items():
        value = shape.last_values[text].write(quoted)
        found.append(KeptColumn(name, value, name, f"MAX(STRUCT({at}, {name})).{name}"))
    return found


def _measure(plan: PatternPlan, measure: Measure, name: str, at: str) -> KeptColumn:
    if measure.value is None:
        return KeptColumn(name, "1", name, f"SUM({name})")
    value = measure.value.write(quoted)
    if measure.kind == "count":
        one = "1" if always_there(measure, plan.machine) else f"IF({operand(value)} IS NULL, 0, 1)"
        return KeptColumn(name, one, name, f"SUM({name})")
    if measure.kind == "first":
        return KeptColumn(name, value, name, f"MIN(STRUCT({at}, {name})).{name}")
    if measure.kind == "sum":
        total = f"SUM({name})"
        exact = measure.type is not None and decimal_of(measure.type) is not None
        return KeptColumn(name, value, name, f"CAST({total} AS {str(measure.type).upper()})" if exact else total)
    return KeptColumn(name, value, name, f"{measure.kind.upper()}({name})")
