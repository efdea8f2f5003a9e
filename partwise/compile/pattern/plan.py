"""Pattern query -> helper view (the open runs of every group) + final view (the runs that match)."""

from __future__ import annotations

from dataclasses import dataclass

from partwise.compile.model import InputTable, QueryView
from partwise.compile.parse import Query
from partwise.compile.pattern.aggregates import LENGTH, Measure, Measured, Value, measured
from partwise.compile.pattern.automaton import Machine, build, is_unknown_variable, no_variable
from partwise.compile.pattern.narrow import RegisterLayout, analyse
from partwise.compile.pattern.registers import RegisterShape, shape
from partwise.compile.select import Selection, aggregated, select
from partwise.parts import Bound, Reference, duration_text
from partwise.sql.calls import calls as aggregate_calls
from partwise.sql.expressions import columns, previous_problem, row_problems, unknown_columns
from partwise.sql.parse import SqlProblem, TranslationError
from partwise.sql.text import Piece, one_line, plain, quoted
from partwise.sql.types.names import normal


@dataclass(frozen=True)
class PatternPlan:
    """Everything that the SQL is written from."""

    view: QueryView
    table: InputTable
    machine: Machine
    selection: Selection
    calls: dict[int, Measured]  # by place in the query
    layout: RegisterLayout
    shape: RegisterShape
    order: tuple[tuple[str, str], ...]  # (expression, field name): what rows are sorted by
    row_columns: tuple[str, ...]
    keys: tuple[tuple[str, str], ...]  # (expression over the rows, name)
    warnings: tuple[str, ...]

    def reference(self, index: str) -> str:
        ratio = self.view.part // (self.table.part or self.view.part)
        return self.table.name + Reference(Bound(ratio), Bound(ratio, ratio - 1)).text(index)


def plan_pattern(view: QueryView, query: Query, table: InputTable) -> PatternPlan:
    assert query.pattern is not None
    if query.joins is not None:
        what = query.joins.text.split()[0]
        raise TranslationError(
            SqlProblem(query.joins.offset, "unsupported-clause", f"'{what}' cannot follow a pattern: it reads one table",
                    "join in a view of its own and read that view")
        )  # fmt: skip
    variables = [v.name for v in query.pattern]
    tables = [plain(table.name), *([plain(query.alias)] if query.alias else [])]
    problems = _problems_of_from(view, query, table, variables, tables)
    machine: Machine | None = None
    selection: Selection | None = None
    calls: dict[int, Measured] = {}
    try:
        machine = build(query.pattern, query.where, tables, table.columns)
    except TranslationError as error:
        problems += error.problems
    try:
        selection = select(query, [*tables, *variables], table.columns)
        for call in selection.all_calls() if machine else []:
            try:
                assert machine is not None
                calls[call.start] = measured(call, machine, tables, table.columns)
            except TranslationError as error:
                problems += error.problems
    except TranslationError as error:
        problems += error.problems
    if selection is not None:
        problems += _variables_in_keys(selection, tables, variables)
    problems += _unknown(query, [*tables, *variables], table)
    problems += _without_order(query, [*tables, *variables], table, variables)
    if problems or machine is None or selection is None:
        raise TranslationError(*problems)
    return _plan(view, query, table, tables, machine, selection, calls)


def _plan(
    view: QueryView, query: Query, table: InputTable, tables: list[str], machine: Machine, selection: Selection,
    calls: dict[int, Measured],
) -> PatternPlan:  # fmt: skip
    wished = _wished_names(selection, calls)
    restricted = any(m.variable is not None for m in wished)
    if restricted and any(v.plus and k > machine.first_plus for k, v in enumerate(machine.variables)):
        wished.setdefault(LENGTH, "run_length")  # the greedy rule compares the lengths of two runs
    layout = analyse(machine, restricted=restricted)
    last, values = _last_columns(machine, wished, table)
    keys = tuple((_bare(key.piece, [*tables]), quoted(key.name)) for key in selection.keys)
    the_shape = shape(machine, layout, wished, last, values, [key.name for key in selection.keys], restricted)
    order, warnings = _order(view, query, table, tables)
    used = [u.column for e in machine.edges for c in e.conditions for u in c.uses if not u.previous]
    used += [name for m in wished if m.value for name in m.value.column_names]
    used += [name for value in values.values() for name in value.column_names]
    sort_names = {name for _, name in order}
    row_columns = tuple(name for name in dict.fromkeys(used) if quoted(name) not in sort_names)
    return PatternPlan(view, table, machine, selection, calls, layout, the_shape, order, row_columns, keys, warnings)


def _problems_of_from(
    view: QueryView, query: Query, table: InputTable, variables: list[str], tables: list[str]
) -> list[SqlProblem]:
    problems: list[SqlProblem] = []
    for variable in query.pattern or ():
        if variable.name in tables:
            problems.append(
                SqlProblem(
                    variable.offset, "bad-pattern", f"variable {variable.name} has the name of the table", "rename it"
                )
            )
    if table.part is None or view.part % table.part:
        length = duration_text(table.part) if table.part else "none"
        problems.append(
            SqlProblem(query.table_offset, "part-lengths", f"the view's parts ({duration_text(view.part)}) must be whole "
                    f"multiples of the parts of {table.name} ({length})", "change part: of the view")
        )  # fmt: skip
    for piece in query.order_by:
        words = [
            t for t in piece.tokens[1:] if t.depth == 0 and t.keyword in ("DESC", "NULLS", "NULLS FIRST", "NULLS LAST")
        ]
        if words:
            problems.append(
                SqlProblem(
                    words[0].start, "unsupported-clause", f"{words[0].upper} is not supported: a sequence runs upwards"
                )
            )
        else:
            problems += _order_problems(_ascending(piece), variables, tables)
    return problems


def _order_problems(piece: Piece, variables: list[str], tables: list[str]) -> list[SqlProblem]:
    try:
        found = list(row_problems(piece, "ORDER BY"))
        uses = [use for use in columns(piece, [*tables, *variables]) if use.qualifier in variables]
    except TranslationError as error:
        return list(error.problems)
    found += [
        SqlProblem(use.start, "unsupported-clause", "ORDER BY is the sequence of all rows: it takes no variable",
                f"write {use.written}")
        for use in uses
    ]  # fmt: skip
    previous = previous_problem(piece)
    return [*found, previous] if previous is not None else found


def _ascending(piece: Piece) -> Piece:
    tokens = piece.tokens
    return piece.cut(piece.offset, tokens[-1].start) if len(tokens) > 1 and tokens[-1].upper == "ASC" else piece


def _variables_in_keys(selection: Selection, tables: list[str], variables: list[str]) -> list[SqlProblem]:
    return [
        SqlProblem(use.start, "bad-group", f"GROUP BY {key.piece.text} uses a pattern variable", f"write {use.written}")
        for key in selection.keys
        for use in columns(key.piece, [*tables, *variables])
        if use.qualifier in variables
    ]


def _unknown(query: Query, qualifiers: list[str], table: InputTable) -> list[SqlProblem]:
    """Columns that the table does not have, wherever they stand. HAVING may use names of the SELECT list."""
    pieces = [*query.group_by, *query.order_by, *(query.where.conjuncts() if query.where else [])]
    pieces += [item.body for item in query.items]
    aliases = {plain(item.alias) for item in query.items if item.alias}
    found: list[SqlProblem] = []
    for piece in pieces:
        try:
            uses = [u for u in columns(_ascending(piece), qualifiers) if not _is_star(piece, u.end)]
        except TranslationError:
            continue  # reported where the piece is used
        is_name = piece in query.group_by and plain(piece.text) in aliases
        strange = [use for use in uses if is_unknown_variable(piece, use, table.columns)]
        found += [no_variable(use, query.pattern or ()) for use in strange]
        others = [use for use in uses if use not in strange]
        found += [] if is_name else unknown_columns(others, {None: (table.name, table.columns)})
    if query.having is not None:
        try:
            found += unknown_columns(aggregated(query.having, qualifiers), {None: (table.name, table.columns)})
        except TranslationError:
            pass  # reported where it is used
    return found


def _without_order(query: Query, qualifiers: list[str], table: InputTable, variables: list[str]) -> list[SqlProblem]:
    """Columns that a run is made from and that have no order: the rows of a group are sorted as they are."""
    kinds = {plain(name): kind or "" for name, kind in (table.columns or {}).items()}
    found: list[SqlProblem] = []
    for piece in [*query.order_by, *(query.where.conjuncts() if query.where else []), *(i.body for i in query.items)]:
        try:
            spans = [(call.start, call.end) for call in aggregate_calls(piece)]
            uses = columns(_ascending(piece), qualifiers)
        except TranslationError:
            continue  # reported where the piece is used
        for use in uses:
            kind = kinds.get(use.name, "").lower()
            taken = use.qualifier in variables or piece in query.order_by or any(a <= use.start < b for a, b in spans)
            if taken and ("map<" in kind or "variant" in kind):
                found.append(
                    SqlProblem(use.start, "unsupported-type", f"{use.name} is {kind}, which has no order: rows of a group are sorted",
                            "take what the pattern needs out of it in a view of its own, and read that view")
                )  # fmt: skip
    return found


def _is_star(piece: Piece, end: int) -> bool:
    return piece.text[end - piece.offset :].startswith(".*")


def _wished_names(selection: Selection, calls: dict[int, Measured]) -> dict[Measure, str]:
    """Every measure once, named after the column that shows it, or after what it does."""
    found: dict[Measure, str] = {}
    for output in selection.outputs:
        for call in output.formula.all_calls():
            whole = output.formula.piece.text == output.formula.piece.cut(call.start, call.end).text
            measures = calls[call.start].measures
            for measure in measures:
                named = whole and len(measures) == 1
                found.setdefault(measure, output.name if named else _name(measure))
                if named and found[measure] == _name(measure):
                    found[measure] = output.name
    for call in selection.having.all_calls() if selection.having else []:
        for measure in calls[call.start].measures:
            found.setdefault(measure, _name(measure))
    return found


def _name(measure: Measure) -> str:
    if measure.kind == "rows":
        return "run_length" if measure.variable is None else "rows_of"
    words = measure.value.column_names if measure.value else []
    return "_".join([measure.kind, *(words if len(words) == 1 else [])])


def _last_columns(
    machine: Machine, measures: dict[Measure, str], table: InputTable
) -> tuple[dict[str, tuple[str, str | None]], dict[str, Value]]:
    """What later rows or the final view want to know of the newest row: kept once per group."""
    known = {plain(name): kind for name, kind in (table.columns or {}).items()}
    last: dict[str, tuple[str, str | None]] = {}
    values: dict[str, Value] = {}
    for edge in machine.edges:
        for use in (u for c in edge.conditions for u in c.uses if u.previous):
            text = quoted(use.column)
            last[text] = (f"last_{use.column}", normal(known.get(use.column)))
            values[text] = Value(text, ((0, len(text), use.column),))
    for measure, name in measures.items():
        if measure.kind == "last" and measure.value is not None:
            text = measure.value.write(quoted)
            last.setdefault(text, (name, measure.type))
            values.setdefault(text, measure.value)
    return last, values


def _order(
    view: QueryView, query: Query, table: InputTable, tables: list[str]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """What rows of a group are sorted by inside a part, and what to warn of."""
    texts = [_bare(_ascending(piece), tables) for piece in query.order_by]
    if not texts and table.time is not None:
        texts = [quoted(table.time)]
    by = ", ".join(texts)
    warnings: tuple[str, ...] = ()
    if not texts:
        warnings = (f"{table.name} has no event time: several rows of a group in one part are taken in the order of "
                    "their values; write ORDER BY column to say their order",)  # fmt: skip
    elif table.tie is None:
        warnings = (f"rows of a group with equal {by} are taken in the order of their values; "
                    "declare a tie column on the source, or ORDER BY more columns, to say their order",)  # fmt: skip
    if table.time is None and table.part != view.part:
        texts.insert(0, "part_timestamp")  # a part of the view spans several of the table
    if table.tie is not None:
        texts.append(quoted(table.tie))
    simple = [(text, text if _is_name(text) else f"order_{at}") for at, text in enumerate(texts, start=1)]
    return tuple(dict.fromkeys(simple)), warnings


def _is_name(text: str) -> bool:
    return quoted(plain(text)) == text


def _bare(piece: Piece, tables: list[str]) -> str:
    """The text over the bare rows of the table: `m.src` -> `src`."""
    uses = columns(piece, tables)
    return one_line(piece.splice((u.start, u.end, quoted(u.name)) for u in uses))
