"""Window plan -> SQL of the panes, of what rolls, and of the view itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from partwise.compile.model import Choice, GeneratedView, PaneShape, Translation, Variant
from partwise.compile.select import Names
from partwise.compile.single_pass import running_sums
from partwise.compile.window.cells import Cell, Values, kept
from partwise.compile.window.panes import pane_shape
from partwise.compile.window.plan import WindowPlan, window
from partwise.compile.window.recompute import recompute
from partwise.compile.window.text import (
    age_reference,
    age_view,
    final_view,
    formula,
    group_clause,
    having_clause,
    indent,
    is_partial,
    named_keys,
    query,
    select_items,
    where_clause,
)
from partwise.parts import Bound, Reference
from partwise.sql.calls import Call
from partwise.sql.text import conjunct, quoted

COUNT = Cell("COUNT(*)", "SUM({0})", True, "n", "bigint")


@dataclass
class HelperTables:
    """Which helper has which columns. `rolled` cells are added and subtracted, `merged` ones put together."""

    names: Names
    value: str
    frequency: str
    rolled: dict[Cell, str] = field(default_factory=dict)
    merged: dict[Cell, str] = field(default_factory=dict)
    marks: dict[Cell, str] = field(default_factory=dict)  # of merged sketches
    values: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # (value, where) -> {over: column}


def write_window(plan: WindowPlan) -> Translation:
    """The chosen strategy, and beside it every other that is possible: which one is best shows when there are rows."""
    made = _written(plan)
    if len(plan.possible) == 1:
        return Translation(made.views, plan.choice, plan.warnings, made.notes)
    plans = [replace(plan, choice=Choice(each, "")) for each in plan.possible]
    variants, shared = (tuple(_written(each, shared) for each in plans) for shared in (False, True))
    return Translation(
        made.views,
        plan.choice,
        plan.warnings,
        made.notes,
        variants=variants,
        shared=shared,
        shape=plan.shape,
        panes=_panes_held(plan),
    )


def _panes_held(plan: WindowPlan) -> PaneShape | None:
    tables = _tables(plan, False, True)
    plain_cells = not tables.values and not tables.marks and not any(cell.folded for cell in tables.merged)
    return pane_shape(plan, tables.merged) if plain_cells and "merge" in plan.possible else None


def _written(plan: WindowPlan, shared: bool = False) -> Variant:
    """`shared`: with helpers that other views may read, too."""
    strategy = plan.choice.strategy
    assert strategy != "pattern"
    views = (
        recompute(plan)
        if strategy == "recompute"
        else _incremental(plan, rolling=strategy == "subtract", shared=shared)
    )
    notes = [f"window of {plan.panes} panes, {plan.per_slide} new in each part"]
    notes += [f"{call.text}: {kept(plan.split_of(call), strategy)}" for call in plan.selection.all_calls()]
    return Variant(strategy, tuple(views), tuple(dict.fromkeys(notes)))


# -- merge and subtract -------------------------------------------------------------------------------


def _incremental(plan: WindowPlan, *, rolling: bool, shared: bool) -> list[GeneratedView]:
    name, keys = plan.view.name, [quoted(key.name) for key in plan.selection.keys]
    tables = _tables(plan, rolling, shared)
    views: list[GeneratedView] = []
    if tables.rolled:
        views.append(_pane(plan, f"{name}__panes", tables.rolled, {}, rolled=True))
        views.append(_rolling(plan, tables.rolled, keys))
    merged_name = f"{name}__merged_panes" if tables.rolled else f"{name}__panes"
    if tables.merged:
        views.append(_pane(plan, merged_name, tables.merged, tables.marks, rolled=False))
    for at, (value, where) in enumerate(tables.values):
        views.append(_values_pane(plan, tables, at, value, where))
    if plan.view.partial:
        pane = views[0].name
        views.append(age_view(plan, f"{pane}[i]", f"{pane}[j]"))
    optional = tuple(v.name for v in views if v.name.endswith("panes") or "__values" in v.name)
    if plan.view.partial:
        own = (f"{name}__panes",)  # the rolling sums read no other helper
        views = [replace(v, optional=own) if v.name.endswith("__rolling") else v for v in views]
    folded = any(cell.folded for cell in tables.merged)
    flat = not tables.rolled and not tables.values and not plan.view.partial and not folded
    sql = _flat_final(plan, merged_name, tables) if flat else _joined_final(plan, merged_name, tables, keys)
    return [*views, final_view(plan, sql, tuple(each for each in optional if f"{each}[" in sql))]


def _tables(plan: WindowPlan, rolling: bool, shared: bool) -> HelperTables:
    names = Names(key.name for key in plan.selection.keys)
    tables = HelperTables(names, names.new("value"), names.new("frequency"))
    if rolling:
        tables.rolled[COUNT] = tables.names.new("n")
    for kept_in, cell, name in _needed(plan, rolling, shared):
        if isinstance(cell, Values):
            columns = tables.values.setdefault((cell.value, cell.where), {})
            if cell.over not in columns:
                columns[cell.over] = tables.names.new(name)
        elif kept_in == "rolled" and cell not in tables.rolled:
            tables.rolled[cell] = tables.names.new(name)
        elif kept_in == "merged" and cell not in tables.merged:
            tables.merged[cell] = tables.names.new(name)
            if cell.mark:
                tables.marks[cell] = tables.names.new(f"{tables.merged[cell]}_of")
    if not tables.merged and not tables.rolled:
        tables.merged[COUNT] = tables.names.new("n")
    return tables


def _needed(plan: WindowPlan, rolling: bool, shared: bool) -> list[tuple[str, Cell | Values, str]]:
    """Where what is kept, and the name that it would like. What others may read has an order of its own, whatever the
    query asks for first, and all that is kept of an argument."""
    found: list[tuple[str, Cell | Values, str]] = []
    for call in plan.selection.all_calls():
        split = plan.split_of(call)
        if split.values is not None:
            found.append(("values", split.values, call.name))
            continue
        rolls = rolling and split.exact
        cells = (split.rolled_cells or split.cells) if rolls else split.cells
        if shared and (not rolls or all(cell.exact for cell in split.company)):
            cells = (*cells, *split.company)
        found += [("rolled" if rolls else "merged", cell, cell.name) for cell in cells]
    return sorted(found, key=_place) if shared else found


def _place(item: tuple[str, Cell | Values, str]) -> tuple[str, ...]:
    kept_in, cell, _ = item
    return (kept_in, cell.value, cell.where, cell.over) if isinstance(cell, Values) else (kept_in, cell.body)


def _pane(
    plan: WindowPlan, name: str, cells: dict[Cell, str], marks: dict[Cell, str], *, rolled: bool
) -> GeneratedView:
    items = [*named_keys(plan), *(f"{c.rolled if rolled else c.rows} AS {quoted(n)}" for c, n in cells.items())]
    items += [f"{c.mark} AS {quoted(n)}" for c, n in marks.items()]
    comment = "partial results of one pane per group" + (", for adding and subtracting" if rolled else "")
    return GeneratedView(
        name,
        plan.pane,
        query(items, plan.rows_of_pane("j"), where_clause(plan), group_clause(plan)),
        comment=comment,
        sketches=tuple(cells[cell] for cell in marks),
        reaches=window(plan.panes, plan.per_slide).lo,
    )


def _rolling(plan: WindowPlan, cells: dict[Cell, str], keys: list[str]) -> GeneratedView:
    """The window's cells: what they were, plus the new panes, minus those that left."""
    name = plan.view.name
    panes, rolling = f"{name}__panes", f"{name}__rolling"
    columns = [quoted(n) for n in cells.values()]
    sums = [f"{c.merge.format(quoted(n))} AS {quoted(n)}" for c, n in cells.items()]
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    gone = f"HAVING SUM({columns[0]}) > 0" if keys else ""  # n = 0: the group has left the window
    slide = plan.per_slide
    new = Reference(Bound(slide), Bound(slide, slide - 1)).text("j")
    left = Reference(Bound(slide, -plan.panes), Bound(slide, slide - 1 - plan.panes)).text("j")
    plain, minus = ", ".join([*keys, *columns]), ", ".join([*keys, *(f"-{c} AS {c}" for c in columns)])
    union = "\n".join(
        [
            "(",
            f"  SELECT {plain} FROM {rolling}[j-1]",
            f"  UNION ALL SELECT {plain} FROM {panes}{new}",
            f"  UNION ALL SELECT {minus} FROM {panes}{left}",
            ")",
        ]
    )
    first = f"{panes}{window(plan.panes, slide).text('i')}"
    return GeneratedView(
        rolling,
        plan.view.part,
        update=query([*keys, *sums], union, "", group, gone),
        initialize=query([*keys, *sums], first, "", group, gone),
        comment="the window's partial results: previous + new panes - panes that left",
        reaches=Bound(1),
        single_pass=running_sums(
            keys=keys,
            columns=columns,
            merges=[c.merge for c in cells],
            rolling=rolling,
            new=panes + new,
            left=panes + left,
            gone=f"{columns[0]} > 0" if keys else "",
        ),
    )


def _values_name(plan: WindowPlan, at: int) -> str:
    return f"{plan.view.name}__values" + (f"_{at + 1}" if at else "")


def _values_pane(plan: WindowPlan, tables: HelperTables, at: int, value: str, where: str) -> GeneratedView:
    items = [*named_keys(plan), f"{value} AS {tables.value}", f"COUNT(*) AS {tables.frequency}"]
    conditions = [conjunct(c) for c in (plan.where, where) if c]
    group = ", ".join([*(k.text for k in plan.selection.keys), value])
    sql = query(items, plan.rows_of_pane("j"), f"WHERE {' AND '.join(conditions)}", f"GROUP BY {group}")
    comment = f"how often each value of {value} stands in a pane"
    first = window(plan.panes, plan.per_slide).lo
    return GeneratedView(_values_name(plan, at), plan.pane, sql, comment=comment, reaches=first)


# -- the view itself ------------------------------------------------------------------------------------


def _flat_final(plan: WindowPlan, panes: str, tables: HelperTables) -> str:
    def aggregate(call: Call) -> str:
        split = plan.split_of(call)
        return formula(split.final, [c.merge.format(quoted(tables.merged[c])) for c in split.cells])

    keys = [quoted(key.name) for key in plan.selection.keys]
    items = select_items(plan, aggregate, lambda key: quoted(key.name))
    source = panes + window(plan.panes, plan.per_slide).text("j")
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    return query(items, source, "", group, having_clause(plan, aggregate, lambda key: quoted(key.name)))


def _joined_final(plan: WindowPlan, merged_name: str, tables: HelperTables, keys: list[str]) -> str:
    """One row per group from each helper, joined on the keys."""
    span = window(plan.panes, plan.per_slide).text("j")
    group = f"GROUP BY {', '.join(keys)}" if keys else ""
    base = "w" if tables.rolled else "m"
    sources: list[str] = []
    if tables.rolled:
        sources.append(f"{plan.view.name}__rolling[j] w")
    if tables.merged:
        items = [*keys, *(f"{c.merge.format(quoted(n))} AS {quoted(n)}" for c, n in tables.merged.items())]
        sources.append(_nested(query(items, merged_name + span, "", group), "m", base, keys, "JOIN"))
    for at, columns in enumerate(tables.values.values()):
        value, frequency = tables.value, tables.frequency
        items = [*keys, value, f"SUM({frequency}) AS {frequency}"]
        counts = query(items, _values_name(plan, at) + span, "", f"GROUP BY {', '.join([*keys, value])}")
        overs = [f"{over.format(value=value, n=frequency)} AS {quoted(name)}" for over, name in columns.items()]
        nested = query([*keys, *overs], f"(\n{indent(counts)}\n)", "", group)
        sources.append(_nested(nested, f"v{at + 1}", base, keys, "LEFT JOIN"))
    items = select_items(plan, lambda call: _joined(plan, tables, call), lambda key: f"{base}.{quoted(key.name)}")
    if plan.view.partial:
        sources.append(f"CROSS JOIN {age_reference(plan)} age")
        items.append(f"{is_partial(plan)} AS partial")
    having = having_clause(plan, lambda call: _joined(plan, tables, call), lambda key: f"{base}.{quoted(key.name)}")
    return query(items, "\n".join(sources), having.replace("HAVING", "WHERE", 1), "")


def _joined(plan: WindowPlan, tables: HelperTables, call: Call) -> str:
    split = plan.split_of(call)
    if split.values is not None:
        at = list(tables.values).index((split.values.value, split.values.where))
        column = f"v{at + 1}.{quoted(_over(tables, split.values))}"
        return column if split.values.empty == "NULL" else f"COALESCE({column}, {split.values.empty})"
    cells = split.rolled_cells or split.cells
    if tables.rolled and split.exact:
        return formula(split.final_rolled or split.final, [f"w.{quoted(tables.rolled[c])}" for c in cells])
    return formula(split.final, [f"m.{quoted(tables.merged[c])}" for c in split.cells])


def _over(tables: HelperTables, values: Values) -> str:
    return tables.values[(values.value, values.where)][values.over]


def _nested(sql: str, alias: str, base: str, keys: list[str], join: str) -> str:
    """A subquery in FROM: the first one stands alone, the others join it."""
    text = f"(\n{indent(sql)}\n) {alias}"
    if alias == base:
        return text
    on = " AND ".join(f"{alias}.{k} <=> {base}.{k}" for k in keys) or "TRUE"
    return f"{join} {text} ON {on}"
