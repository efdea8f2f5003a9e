"""Pieces of SQL text that the fold and the join of a pattern both write."""

from __future__ import annotations

from partwise.compile.pattern.plan import PatternPlan
from partwise.sql.text import quoted


def keys(plan: PatternPlan) -> list[str]:
    return [name for _, name in plan.keys]


def free(plan: PatternPlan, wish: str) -> str:
    """A name for a column of our own that no column of the rows has."""
    taken = {name.strip("`").lower() for name in (*keys(plan), *plan.row_columns, *(n for _, n in plan.order))}
    while wish in taken:
        wish += "_"
    return wish


def grouping(plan: PatternPlan) -> str:
    """GROUP BY of the rows; without keys a part without rows must give no group at all."""
    return "GROUP BY " + ", ".join(text for text, _ in plan.keys) if plan.keys else "HAVING COUNT(*) > 0"


def named_keys(plan: PatternPlan) -> list[str]:
    return [text if text == name else f"{text} AS {name}" for text, name in plan.keys]


def where(plan: PatternPlan) -> str:
    bare = [f.write(quoted, quoted) for f in plan.machine.filters]
    return f"WHERE {' AND '.join(bare)}" if bare else ""


def alive(plan: PatternPlan, prefix: str = "") -> str:
    """Where a flag is up, the state that it shares with is alive."""
    return " OR ".join(f"{prefix}{r.key} IS NOT NULL" for r in plan.shape.registers if not r.flag)


def lines(indent: int, *lines: str) -> str:
    pad = " " * indent
    return "\n".join(pad + line for text in lines if text for line in text.split("\n"))


def listed(items: list[str], indent: int) -> str:
    """A list in SQL: on one line if it is short, else one item a line."""
    line = ", ".join(items)
    return line if len(line) <= 90 and "\n" not in line else (",\n" + " " * indent).join(items)
