"""Pattern plan -> SQL of the helper and of the final view."""

from __future__ import annotations

from partwise.translation.calls import Call
from partwise.translation.layout import filled, unfolded
from partwise.translation.model import MANY_ROWS, Choice, Fold, GeneratedView, Translation
from partwise.translation.patterns import PatternPlan
from partwise.translation.single_pass import fold_over_parts
from partwise.translation.step import NEW, Column
from partwise.translation.step import columns as step_columns
from partwise.translation.text import quoted


def write_pattern(plan: PatternPlan) -> Translation:
    view, machine = plan.view, plan.machine
    helper = f"{view.name}__helper"
    states = ", ".join(v.name + ("+" if v.plus else "") for v in machine.variables)
    views = (
        GeneratedView(
            name=helper,
            part=view.part,
            initialize=_fold_sql(plan, helper, first=True),
            update=_fold_sql(plan, helper, first=False),
            fast_update=_fast_sql(plan, helper),
            single_pass=_pass_sql(plan, helper),
            keep=1,
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
    return Translation(views, choice, plan.warnings, notes, _fold(plan))


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


def _keys(plan: PatternPlan) -> list[str]:
    return [name for _, name in plan.keys]


def _free(plan: PatternPlan, wish: str) -> str:
    """A name for a column of our own that no column of the rows has."""
    taken = {name.strip("`").lower() for name in (*_keys(plan), *plan.row_columns, *(n for _, n in plan.order))}
    while wish in taken:
        wish += "_"
    return wish


def _grouping(plan: PatternPlan) -> str:
    """GROUP BY of the rows; without keys a part without rows must give no group at all."""
    return "GROUP BY " + ", ".join(text for text, _ in plan.keys) if plan.keys else "HAVING COUNT(*) > 0"


def _named_keys(plan: PatternPlan) -> list[str]:
    return [text if text == name else f"{text} AS {name}" for text, name in plan.keys]


def _where(plan: PatternPlan) -> str:
    bare = [f.write(quoted, quoted) for f in plan.machine.filters]
    return f"WHERE {' AND '.join(bare)}" if bare else ""


def _alive(plan: PatternPlan, prefix: str = "") -> str:
    """Where a flag is up, the state that it shares with is alive."""
    return " OR ".join(f"{prefix}{r.key} IS NOT NULL" for r in plan.shape.registers if not r.flag)


def _lines(indent: int, *lines: str) -> str:
    pad = " " * indent
    return "\n".join(pad + line for text in lines if text for line in text.split("\n"))


def _listed(items: list[str], indent: int) -> str:
    """A list in SQL: on one line if it is short, else one item a line."""
    line = ", ".join(items)
    return line if len(line) <= 90 and "\n" not in line else (",\n" + " " * indent).join(items)


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
    if column.type is not None:
        return f"CAST(NULL AS {column.type.upper()})"
    # The type is not known here: borrow it from the row.
    sample = column.sample
    for name in sorted(plan.row_columns + tuple(n for _, n in plan.order), key=len, reverse=True):
        if sample == quoted(name):
            return f"IF(FALSE, r.{_free(plan, 'rows')}[0].{sample}, NULL)"
    return "NULL"


def _bare_name(name: str) -> str:
    return name.strip("`").replace("'", "\\'")


def _step(fields: list[Column], indent: int) -> str:
    pad = " " * indent
    pairs = [f"{pad}  '{_bare_name(c.name)}', {unfolded(c.value, indent + 4)}" for c in fields]
    return "(old, new) -> named_struct(\n" + ",\n".join(pairs) + f"\n{pad})"


def _fold_sql(plan: PatternPlan, helper: str, first: bool) -> str:
    fields = step_columns(plan.shape)
    index = "i" if first else "j"
    state, rows_name = _free(plan, "s"), _free(plan, "rows")
    carry = plan.view.gaps == "carry" and not first
    keys = [f"COALESCE(r.{k}, h.{k}) AS {k}" if carry else f"r.{k}" for k in _keys(plan)]
    start = _initial(plan, fields, first)
    fold = f"aggregate(\n      r.{rows_name},\n      {start},\n      {_step(fields, 6)}\n    )"
    if carry:
        fold = f"CASE WHEN r.{rows_name} IS NULL THEN {start}\n    ELSE {fold} END"
    join = ""
    if not first:
        on = " AND ".join(f"h.{k} <=> r.{k}" for k in _keys(plan)) or "TRUE"
        join = f"{'FULL' if carry else 'LEFT'} JOIN {helper}[j-1] h ON {on}"
    selected = [*_keys(plan), *(f"{state}.{c.name}" for c in fields)]
    why = "the first part: no open runs yet" if first else "fold the rows of each group, in order, into its open runs"
    rows = f"array_sort(collect_list({_row_struct(plan)})) AS {rows_name}"
    inner = _lines(
        4,
        f"SELECT {_listed([*_named_keys(plan), rows], 7)}",
        f"FROM {plan.reference(index)}",
        _where(plan),
        _grouping(plan),
    )
    return "\n".join(
        [
            f"-- {why}",
            f"SELECT {filled(selected, 7)}",
            "FROM (",
            "  SELECT",
            *([f"    {', '.join(keys)},"] if keys else []),
            f"    {fold} AS {state}",
            "  FROM (",
            inner,
            "  ) r",
            *([f"  {join}"] if join else []),
            ")",
            f"WHERE {_alive(plan, f'{state}.')}",
        ]
    )


def _pass_sql(plan: PatternPlan, helper: str) -> str:
    fields = step_columns(plan.shape)
    struct = _row_struct(plan).removeprefix("struct(")
    return fold_over_parts(
        keys=_keys(plan),
        named_keys=_named_keys(plan),
        group=_grouping(plan),
        rows=f"struct(__j AS __at, {struct}",
        source=plan.reference("j"),
        where=_where(plan),
        helper=helper,
        fields=[(c.name, _bare_name(c.name)) for c in fields],
        step=_step(fields, 8).removeprefix("(old, new) -> "),
        alive=_alive(plan, "__runs."),
        carry=plan.view.gaps == "carry",
    )


# -- One row per group: a join -----------------------------------------------------------------------


def _common(plan: PatternPlan) -> list[str]:
    """Conditions on the row alone that every edge asks for: a row without them ends all runs of its group."""
    edges = plan.machine.edges
    shared = [c for c in edges[0].conditions if not c.on_previous]
    return [c.canonical for c in shared if all(any(o.canonical == c.canonical for o in e.conditions) for e in edges)]


def _fast_sql(plan: PatternPlan, helper: str) -> str:
    """One join and CASE, as in the paper. Counting the rows of each group on the way keeps it safe to try."""
    carry = plan.view.gaps == "carry"
    common = [] if carry else _common(plan)
    fields = step_columns(plan.shape, frozenset(common))
    taken = {name for _, name in plan.keys if name in {text for text, _ in plan.keys}}
    plain_order = [text for text, name in plan.order if text == name]
    wanted = [c for c in dict.fromkeys([*map(quoted, plan.row_columns), *plain_order]) if _is_read(c, fields, plan)]
    kept = [f"MAX({c}) AS {c}" for c in wanted if c not in taken]
    edge = plan.machine.edges[0]
    tests = [
        c.write(lambda n: quoted(n) if quoted(n) in taken else f"MAX({quoted(n)})", quoted)
        for c in edge.conditions
        if c.canonical in common
    ]
    test = " AND ".join(tests) or "TRUE"
    guard = f"HAVING CASE WHEN COUNT(*) > 1 THEN raise_error('{MANY_ROWS}') ELSE {test} END"
    group = f"GROUP BY {', '.join(text for text, _ in plan.keys)}" if plan.keys else ""
    if not plan.keys:
        guard = f"HAVING CASE WHEN COUNT(*) > 1 THEN raise_error('{MANY_ROWS}') ELSE COUNT(*) = 1 AND {test} END"
    here = _free(plan, "here")
    mark = [f"TRUE AS {here}"] if carry else []
    rows = [*_named_keys(plan), *kept, *mark] or [f"TRUE AS {here}"]
    keys = [f"COALESCE(new.{k}, old.{k}) AS {k}" if carry else f"new.{k}" for k in _keys(plan)]
    steps = [unfolded(c.value, 6) for c in fields]
    values = [
        f"IF(new.{here}, {step}, old.{c.name}) AS {c.name}" if carry else f"{step} AS {c.name}"
        for c, step in zip(fields, steps, strict=True)
    ]
    on = " AND ".join(f"old.{k} <=> new.{k}" for k in _keys(plan)) or "TRUE"
    selected = [*_keys(plan), *(c.name for c in fields)]
    return "\n".join(
        [
            "-- at most one row per group (checked by HAVING): one join, one step",
            f"SELECT {filled(selected, 7)}",
            "FROM (",
            "  SELECT",
            "    " + ",\n    ".join([*keys, *values]),
            "  FROM (",
            _lines(4, f"SELECT {_listed(rows, 7)}", f"FROM {plan.reference('j')}", _where(plan), group, guard),
            "  ) new",
            f"  {'FULL' if carry else 'LEFT'} JOIN {helper}[j-1] old ON {on}",
            ")",
            f"WHERE {_alive(plan)}",
        ]
    )


def _is_read(column: str, fields: list[Column], plan: PatternPlan) -> bool:
    in_tests = any(f"n.{column}" in condition for condition in _common(plan))
    return in_tests or any(NEW + column in field.value for field in fields)


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
        items.append(text if text == name else f"{_without_parentheses(text)} AS {name}")
    accepts = shape.of(last).alive([last], plan.machine.first_plus, "")
    conditions = [accepts]
    if plan.selection.having is not None:
        having = plan.selection.having.write(aggregate, lambda key: quoted(key.name))
        conditions.append(f"({having})" if " or " in having.lower() else having)
    return "\n".join([f"SELECT {_listed(items, 7)}", f"FROM {helper}[j]", f"WHERE {' AND '.join(conditions)}"])


def _without_parentheses(text: str) -> str:
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1]


def _fold(plan: PatternPlan) -> Fold:
    fields = step_columns(plan.shape)
    return Fold(
        keys=plan.keys,
        rows=_row_struct(plan),
        where=" AND ".join(f.write(quoted, quoted) for f in plan.machine.filters),
        initial=_initial(plan, fields, first=True),
        step=_step(fields, 0),
        fields=tuple(c.name for c in fields),
        alive=_alive(plan),
    )
