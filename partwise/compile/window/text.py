"""Pieces of SQL text that all strategies write."""

from __future__ import annotations

from collections.abc import Callable

from partwise.compile.model import GeneratedView
from partwise.compile.select import Key
from partwise.compile.single_pass import counted_up
from partwise.compile.window.plan import WindowPlan, window
from partwise.parts import Bound, Reference
from partwise.sql.calls import Call
from partwise.sql.text import quoted, unwrapped, without_strings


def formula(final: str, columns: list[str]) -> str:
    text = final.format(*columns)
    return text if final == "{0}" or _is_call(text) else f"({text})"


def _is_call(text: str) -> bool:
    """Whether the text is one operand: a call, a CASE, or a field of one."""
    if text.startswith("CASE ") and text.endswith(" END"):
        return False
    depth = 0
    for at, letter in enumerate(without_strings(text)):
        depth += (letter == "(") - (letter == ")")
        if letter in " +-/*" and depth == 0:
            return False
        if depth < 0 or (at == len(text) - 1 and depth):
            return False
    return True


def select_items(plan: WindowPlan, aggregate: Callable[[Call], str], key: Callable[[Key], str]) -> list[str]:
    items = []
    for output in plan.selection.outputs:
        text, name = output.formula.write(aggregate, key), quoted(output.name)
        items.append(text if text == name else f"{unwrapped(text)} AS {name}")
    return items


def having_clause(plan: WindowPlan, aggregate: Callable[[Call], str], key: Callable[[Key], str]) -> str:
    return f"HAVING {plan.selection.having.write(aggregate, key)}" if plan.selection.having else ""


def named_keys(plan: WindowPlan) -> list[str]:
    items = []
    for key in plan.selection.keys:
        text, name = key.text, quoted(key.name)
        items.append(text if text in (name, f"{plan.alias}.{name}") else f"{text} AS {name}")
    return items


def where_clause(plan: WindowPlan) -> str:
    return f"WHERE {plan.where}" if plan.where else ""


def group_clause(plan: WindowPlan) -> str:
    return "GROUP BY " + ", ".join(k.text for k in plan.selection.keys) if plan.selection.keys else ""


def query(items: list[str], source: str, where: str, group: str, having: str = "") -> str:
    line = ", ".join(items)
    selected = line if len(line) <= 100 and "\n" not in line else ",\n       ".join(items)
    return "\n".join(part for part in (f"SELECT {selected}", f"FROM {source}", where, group, having) if part)


def indent(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


# -- the view itself, and how old it is ----------------------------------------------------------------


def age_reference(plan: WindowPlan) -> str:
    newest = Bound(plan.per_slide, plan.per_slide - 1)
    return f"{plan.view.name}__age" + Reference(newest, newest).text("j")


def is_partial(plan: WindowPlan) -> str:
    return f"age.panes < {plan.panes}"


def age_view(plan: WindowPlan, first: str, later: str) -> GeneratedView:
    """How many panes exist by now, up to those of a whole window: tells partial windows from whole ones."""
    name = f"{plan.view.name}__age"
    update = "\n".join(
        [
            f"SELECT LEAST(a.panes + 1, {plan.panes}) AS panes",
            f"FROM {name}[j-1] a",
            f"CROSS JOIN (SELECT COUNT(*) AS n FROM {later}) p",
        ]
    )
    initialize = f"SELECT CAST(1 AS BIGINT) AS panes\nFROM (SELECT COUNT(*) AS n FROM {first}) p"
    return GeneratedView(
        name,
        plan.pane,
        update,
        initialize,
        comment="how many panes there are, up to a whole window",
        single_pass=counted_up(name, plan.panes),
        reaches=window(plan.panes, plan.per_slide).lo,
    )


def final_view(plan: WindowPlan, sql: str, optional: tuple[str, ...]) -> GeneratedView:
    comment = f"windows of {plan.panes} panes ({plan.choice.strategy})"
    allowed = optional if plan.view.partial else ()
    return GeneratedView(plan.view.name, plan.view.part, sql, helper=False, comment=comment, optional=allowed)
