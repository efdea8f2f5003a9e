"""The strategy `recompute`: every window is computed from its rows."""

from __future__ import annotations

from partwise.compile.model import GeneratedView
from partwise.compile.select import Key, Names
from partwise.compile.window import text as pieces
from partwise.compile.window.plan import WindowPlan
from partwise.sql.calls import Call
from partwise.sql.text import quoted


def recompute(plan: WindowPlan) -> list[GeneratedView]:
    long = any(len(split.cells) > 2 and split.direct is None for split in plan.splits.values())
    sql = _recompute_in_two(plan) if long else _recompute_in_one(plan)
    if not plan.view.partial:
        return [pieces.final_view(plan, sql, ())]
    first, later = (plan.rows_of_pane(index).split("\n")[0] for index in "ij")
    names = [f"w.{quoted(output.name)}" for output in plan.selection.outputs]
    source = f"(\n{pieces.indent(sql)}\n) w\nCROSS JOIN {pieces.age_reference(plan)} age"
    whole = pieces.query([*names, f"{pieces.is_partial(plan)} AS partial"], source, "", "")
    return [pieces.age_view(plan, first, later), pieces.final_view(plan, whole, (plan.table.name,))]


def _recompute_in_one(plan: WindowPlan) -> str:
    def aggregate(call: Call) -> str:
        split = plan.split_of(call)
        if split.direct is not None:
            return split.direct
        return pieces.formula(split.final, [cell.rows for cell in split.cells])

    def key(key: Key) -> str:
        return key.text

    items, having = pieces.select_items(plan, aggregate, key), pieces.having_clause(plan, aggregate, key)
    return pieces.query(items, plan.rows_of_window("j"), pieces.where_clause(plan), pieces.group_clause(plan), having)


def _recompute_in_two(plan: WindowPlan) -> str:
    """First the sums, then the formulas over them: a sum may stand in a formula many times."""
    names = Names(key.name for key in plan.selection.keys)
    columns: dict[str, str] = {}
    for call in plan.selection.all_calls():
        split = plan.split_of(call)
        wanted = [(split.direct, call.name)] if split.direct is not None else [(c.rows, c.name) for c in split.cells]
        for text, wish in wanted:
            if text not in columns:
                columns[text] = quoted(names.new(wish))

    def aggregate(call: Call) -> str:
        split = plan.split_of(call)
        if split.direct is not None:
            return columns[split.direct]
        return pieces.formula(split.final, [columns[cell.rows] for cell in split.cells])

    def key(key: Key) -> str:
        return quoted(key.name)

    inner = [*pieces.named_keys(plan), *(f"{text} AS {name}" for text, name in columns.items())]
    sums = pieces.query(inner, plan.rows_of_window("j"), pieces.where_clause(plan), pieces.group_clause(plan))
    having = pieces.having_clause(plan, aggregate, key).replace("HAVING", "WHERE", 1)
    return pieces.query(pieces.select_items(plan, aggregate, key), f"(\n{pieces.indent(sums)}\n)", having, "")
