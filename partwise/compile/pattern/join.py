"""At most one row per group and part: the helper by one join and one step, as in the paper."""

from __future__ import annotations

from partwise.compile.model import MANY_ROWS
from partwise.compile.pattern.plan import PatternPlan
from partwise.compile.pattern.text import alive, free, keys, lines, listed, named_keys, where
from partwise.compile.pattern.transition import NEW, Column
from partwise.compile.pattern.transition import columns as step_columns
from partwise.sql.layout import filled, unfolded
from partwise.sql.text import plain, quoted


def common_conditions(plan: PatternPlan) -> list[str]:
    """Conditions on the row alone that every edge asks for: a row without them ends all runs of its group."""
    edges = plan.machine.edges
    shared = [c for c in edges[0].conditions if not c.on_previous]
    return [c.canonical for c in shared if all(any(o.canonical == c.canonical for o in e.conditions) for e in edges)]


def can_join(plan: PatternPlan) -> bool:
    """Not if a key is called like another column of the row that the step reads (`g AS x` beside `SUM(x)`)."""
    wanted, named = _read_columns(plan, step_columns(plan.shape))
    return not any(name in wanted and name not in named for _, name in plan.keys)


def unique_by(plan: PatternPlan) -> tuple[str, ...]:
    """The columns that make a group; none if a key is an expression."""
    texts = [text for text, _ in plan.keys]
    return tuple(map(plain, texts)) if all(quoted(plain(text)) == text for text in texts) else ()


def join_sql(plan: PatternPlan, helper: str, *, checked: bool) -> str:
    """One join and CASE, as in the paper. Counting the rows of each group on the way makes it safe to try.

    Where it is known before that keys are unique and not NULL, they are also compared by plain equality, which Spark
    joins by at a lower cost.
    """
    carry = plan.view.gaps == "carry"
    common = [] if carry else common_conditions(plan)
    fields = step_columns(plan.shape, frozenset(common))
    here = free(plan, "here")
    if checked:
        why, rows = "at most one row per group (checked by HAVING)", _checked_rows(plan, fields, common, here)
    else:
        why, rows = "one row per group and no NULL in its keys, known before", _plain_rows(plan, fields, common, here)
    shown = [f"COALESCE(new.{k}, old.{k}) AS {k}" if carry else f"new.{k}" for k in keys(plan)]
    steps = [unfolded(c.value, 6) for c in fields]
    values = [
        f"IF(new.{here}, {step}, old.{c.name}) AS {c.name}" if carry else f"{step} AS {c.name}"
        for c, step in zip(fields, steps, strict=True)
    ]
    equal = "<=>" if checked else "="
    on = " AND ".join(f"old.{k} {equal} new.{k}" for k in keys(plan)) or "TRUE"
    selected = [*keys(plan), *(c.name for c in fields)]
    return "\n".join(
        [
            f"-- {why}: one join, one step",
            f"SELECT {filled(selected, 7)}",
            "FROM (",
            "  SELECT",
            "    " + ",\n    ".join([*shown, *values]),
            "  FROM (",
            rows,
            "  ) new",
            f"  {'FULL' if carry else 'LEFT'} JOIN {helper}[j-1] old ON {on}",
            ")",
            f"WHERE {alive(plan)}",
        ]
    )


def _read_columns(plan: PatternPlan, fields: list[Column]) -> tuple[list[str], set[str]]:
    """Columns of the row that the step reads, and those that are keys by the same name."""
    named = {name for _, name in plan.keys if name in {text for text, _ in plan.keys}}
    plain_order = [text for text, name in plan.order if text == name]
    wanted = dict.fromkeys([*map(quoted, plan.row_columns), *plain_order])
    return [c for c in wanted if _is_read(c, fields, plan)], named


def _mark(plan: PatternPlan, here: str) -> list[str]:
    return [f"TRUE AS {here}"] if plan.view.gaps == "carry" else []


def _plain_rows(plan: PatternPlan, fields: list[Column], common: list[str], here: str) -> str:
    wanted, named = _read_columns(plan, fields)
    rows = [*named_keys(plan), *(c for c in wanted if c not in named), *_mark(plan, here)]
    conditions = [*plan.machine.filters, *(c for c in plan.machine.edges[0].conditions if c.canonical in common)]
    where = " AND ".join(c.write(quoted, quoted) for c in conditions)
    return lines(4, f"SELECT {listed(rows, 7)}", f"FROM {plan.reference('j')}", f"WHERE {where}" if where else "")


def _checked_rows(plan: PatternPlan, fields: list[Column], common: list[str], here: str) -> str:
    wanted, named = _read_columns(plan, fields)
    kept = [f"MAX({c}) AS {c}" for c in wanted if c not in named]
    tests = [
        c.write(lambda n: quoted(n) if quoted(n) in named else f"MAX({quoted(n)})", quoted)
        for c in plan.machine.edges[0].conditions
        if c.canonical in common
    ]
    test = " AND ".join(tests) or "TRUE"
    if not plan.keys:
        test = f"COUNT(*) = 1 AND {test}"
    guard = f"HAVING CASE WHEN COUNT(*) > 1 THEN raise_error('{MANY_ROWS}') ELSE {test} END"
    group = f"GROUP BY {', '.join(text for text, _ in plan.keys)}" if plan.keys else ""
    rows = [*named_keys(plan), *kept, *_mark(plan, here)] or [f"TRUE AS {here}"]
    return lines(4, f"SELECT {listed(rows, 7)}", f"FROM {plan.reference('j')}", where(plan), group, guard)


def _is_read(column: str, fields: list[Column], plan: PatternPlan) -> bool:
    in_tests = any(f"n.{column}" in condition for condition in common_conditions(plan))
    return in_tests or any(NEW + column in field.value for field in fields)
