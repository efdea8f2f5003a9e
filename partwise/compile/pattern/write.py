"""Pattern plan -> SQL of the helper and of the final view."""

from __future__ import annotations

from partwise.compile.model import Choice, GeneratedView, Translation
from partwise.compile.pattern.islands import is_island, island_sql
from partwise.compile.pattern.join import can_join, join_sql, unique_by
from partwise.compile.pattern.plan import PatternPlan
from partwise.compile.pattern.text import alive, free, grouping, keys, lines, listed, named_keys, where
from partwise.compile.pattern.transition import Column
from partwise.compile.pattern.transition import columns as step_columns
from partwise.compile.single_pass import fold_over_parts
from partwise.sql.calls import Call
from partwise.sql.layout import filled, unfolded
from partwise.sql.text import conjunct, quoted, unwrapped


def write_pattern(plan: PatternPlan) -> Translation:
    view, machine = plan.view, plan.machine
    helper = f"{view.name}__helper"
    states = ", ".join(v.name + ("+" if v.plus else "") for v in machine.variables)
    joins, by = can_join(plan), unique_by(plan)
    many_rows = island_sql if is_island(plan) else _fold_sql
    views = (
        GeneratedView(
            name=helper,
            part=view.part,
            initialize=many_rows(plan, helper, first=True),
            update=many_rows(plan, helper, first=False),
            fast_update=join_sql(plan, helper, checked=True) if joins else None,
            unique_update=join_sql(plan, helper, checked=False) if joins and by else None,
            unique_by=by if joins else (),
            single_pass=_pass_sql(plan, helper),
            comment=f"open runs of [{states}] per group: {_sets(plan)}",
        ),
        GeneratedView(
            name=view.name,
            part=view.part,
            update=_final_sql(plan, helper),
            helper=False,
            comment="runs that match the whole pattern and end at the group's newest row",
        ),
    )
    sets = sum(not register.flag for register in plan.shape.registers)
    choice = Choice("pattern", f"a state machine of {machine.size} states in {sets} column set(s)")
    notes = (f"gaps: {view.gaps} ({_gaps(plan)})", *_layout_notes(plan))
    return Translation(views, choice, plan.warnings, notes)


def _gaps(plan: PatternPlan) -> str:
    if plan.view.gaps == "break":
        return "a part in which a group has no rows ends its runs"
    return "runs of a group wait through parts in which it has no rows"


def _sets(plan: PatternPlan) -> str:
    names = [v.name for v in plan.machine.variables]
    told = [("/".join(names[s] for s in r.states), r.flag) for r in plan.shape.registers]
    return "; ".join(f"{states} (a flag)" if flag else states for states, flag in told)


def _layout_notes(plan: PatternPlan) -> list[str]:
    names = [v.name for v in plan.machine.variables]
    notes = [
        f"state {names[h]} makes {names[low]} superfluous while it is alive" for h, low in sorted(plan.layout.simulated)
    ]
    notes += [f"states {names[a]} and {names[b]} are never alive together" for a, b in sorted(plan.layout.exclusive)]
    notes += [f"a run in state {names[d]} is also one in {names[c]}" for d, c in sorted(plan.layout.shared.items())]
    return notes


# -- Many rows per group: a fold ---------------------------------------------------------------------


def _row_struct(plan: PatternPlan) -> str:
    """Sort keys first: the rows of a group are sorted as structs."""
    items = [(text, name) for text, name in plan.order] + [(quoted(c), quoted(c)) for c in plan.row_columns]
    items = items or [("1", "row")]
    return "struct(" + ", ".join(text if text == name else f"{text} AS {name}" for text, name in items) + ")"


def _initial(plan: PatternPlan, fields: list[Column], first: bool) -> str:
    if not first:
        pairs = [f"'{_bare_name(c.name)}', h.{c.name}" for c in fields]
    else:
        pairs = [f"'{_bare_name(c.name)}', {_null(c, plan)}" for c in fields]
    return f"named_struct({filled(pairs, 8)})"


def _null(column: Column, plan: PatternPlan) -> str:
    """NULL of the column's type: a fold may not change the type of what it starts with."""
    if column.type is not None and "<" not in column.type:
        return f"CAST(NULL AS {column.type.upper()})"
    assert column.sample is not None
    # The type is not known here, or the names of its fields matter: borrow it from a row.
    row = f"r.{free(plan, 'rows')}[0]"
    return f"IF(FALSE, {column.sample.write(lambda name: f'{row}.{quoted(name)}')}, NULL)"


def _bare_name(name: str) -> str:
    return name.strip("`").replace("'", "\\'")


def _step(fields: list[Column], indent: int) -> str:
    pad = " " * indent
    pairs = [f"{pad}  '{_bare_name(c.name)}', {unfolded(c.value, indent + 4)}" for c in fields]
    return "(old, new) -> named_struct(\n" + ",\n".join(pairs) + f"\n{pad})"


def _fold_sql(plan: PatternPlan, helper: str, *, first: bool) -> str:
    fields = step_columns(plan.shape)
    index = "i" if first else "j"
    state, rows_name = free(plan, "s"), free(plan, "rows")
    carry = plan.view.gaps == "carry" and not first
    shown = [f"COALESCE(r.{k}, h.{k}) AS {k}" if carry else f"r.{k}" for k in keys(plan)]
    start = _initial(plan, fields, first)
    fold = f"aggregate(\n      r.{rows_name},\n      {start},\n      {_step(fields, 6)}\n    )"
    if carry:
        fold = f"CASE WHEN r.{rows_name} IS NULL THEN {start}\n    ELSE {fold} END"
    join = ""
    if not first:
        on = " AND ".join(f"h.{k} <=> r.{k}" for k in keys(plan)) or "TRUE"
        join = f"{'FULL' if carry else 'LEFT'} JOIN {helper}[j-1] h ON {on}"
    selected = [*keys(plan), *(f"{state}.{c.name}" for c in fields)]
    why = "the first part: no open runs yet" if first else "fold the rows of each group, in order, into its open runs"
    rows = f"array_sort(collect_list({_row_struct(plan)})) AS {rows_name}"
    inner = lines(
        4,
        f"SELECT {listed([*named_keys(plan), rows], 7)}",
        f"FROM {plan.reference(index)}",
        where(plan),
        grouping(plan),
    )
    return "\n".join(
        [
            f"-- {why}",
            f"SELECT {filled(selected, 7)}",
            "FROM (",
            "  SELECT",
            *([f"    {', '.join(shown)},"] if shown else []),
            f"    {fold} AS {state}",
            "  FROM (",
            inner,
            "  ) r",
            *([f"  {join}"] if join else []),
            ")",
            f"WHERE {alive(plan, f'{state}.')}",
        ]
    )


def _pass_sql(plan: PatternPlan, helper: str) -> str:
    fields = step_columns(plan.shape)
    struct = _row_struct(plan).removeprefix("struct(")
    return fold_over_parts(
        keys=keys(plan),
        named_keys=named_keys(plan),
        group=grouping(plan),
        rows=f"struct(__j AS __at, {struct}",
        source=plan.reference("j"),
        where=where(plan),
        helper=helper,
        fields=[(c.name, _bare_name(c.name)) for c in fields],
        step=_step(fields, 8).removeprefix("(old, new) -> "),
        alive=alive(plan, "__runs."),
        carry=plan.view.gaps == "carry",
    )


# -- The view itself -----------------------------------------------------------------------------------


def _final_sql(plan: PatternPlan, helper: str) -> str:
    shape, last = plan.shape, plan.machine.size - 1

    def aggregate(call: Call) -> str:
        found = plan.calls[call.start]
        columns = [str(shape.old(m, last, "")) for m in found.measures]
        text = found.formula.format(*columns)
        return text if found.formula == "{0}" or text.startswith("CAST({0} /") else f"({text})"

    items = []
    for output in plan.selection.outputs:
        text = output.formula.write(aggregate, lambda key: quoted(key.name))
        name = quoted(output.name)
        items.append(text if text == name else f"{unwrapped(text)} AS {name}")
    accepts = shape.of(last).alive([last], plan.machine.first_plus, "")
    conditions = [accepts]
    if plan.selection.having is not None:
        having = plan.selection.having.write(aggregate, lambda key: quoted(key.name))
        conditions.append(conjunct(having))
    return "\n".join([f"SELECT {listed(items, 7)}", f"FROM {helper}[j]", f"WHERE {' AND '.join(conditions)}"])
