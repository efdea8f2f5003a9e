"""Documents to a Program: everything that can only be said, and made, with all of them in view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from partwise.compile.program import Alternative, CompiledView, Program, Runnable
from partwise.compile.result_types import ResultColumns, result_types
from partwise.compile.translated import translate_view, with_validity
from partwise.compile.update_class import updates_problem
from partwise.definitions.build import idle_keys
from partwise.definitions.definitions import Definition, Definitions, Statement, View, inputs_of
from partwise.definitions.meaning import Document, KnownNames, cycle_problem, order, problems_of, result_columns
from partwise.definitions.problems import Problem
from partwise.definitions.reading import FAULT_HINT, DefinitionsReading, fault
from partwise.sql.parse import TranslationError
from partwise.sql.references import Analysis

if TYPE_CHECKING:
    from partwise.compile.relations import Relations


def assemble(reading: DefinitionsReading) -> Program:
    """The program, with every problem of every document."""
    entries = reading.tables()
    tables = {name: entry.definition for name, entry in entries.items()}
    catalog = KnownNames(tables, reading.broken() | (reading.lost - tables.keys()))
    names, cycles = order(tables)
    reading.problems += [cycle_problem(ring, catalog) for ring in cycles]
    compiling = _Compiling(reading, tables, catalog)
    for name in names:
        compiling.add(name, entries[name])
    for entry in reading.entries:
        try:
            reading.problems += problems_of(entry, catalog)
        except Exception as why:
            reading.problems.append(entry.report(entry.node, "internal", fault(why), FAULT_HINT))
    reading.problems += _bad_repairs(reading, compiling)
    reading.problems += _sampled(reading, compiling)
    reading.problems += _with_state(reading, compiling)
    _share(compiling)
    unique = {(*p.order, p.hint): p for p in reading.problems}
    problems = tuple(sorted(unique.values(), key=lambda p: p.order))
    written = {definition.name: definition for definition in tables.values()}
    return Program(Definitions(written, problems, reading.broken()), compiling.views)


def _that(reading: DefinitionsReading, asks: Callable[[View], bool]) -> dict[str, Document]:
    """The documents of views that ask for something, by name."""
    entries = ((entry, entry.definition) for entry in reading.entries)
    return {view.name: entry for entry, view in entries if isinstance(view, View) and asks(view)}


def _as_compiled(reading: DefinitionsReading, compiling: _Compiling) -> tuple[Program, Relations]:
    """The program so far, and the trees of its queries. What is added to the views later does not show in it."""
    from partwise.compile.relations import Relations

    written = {definition.name: definition for definition in compiling.tables.values()}
    program = Program(Definitions(written, (), reading.broken()), dict(compiling.views))
    return program, Relations(program)


def _share(compiling: _Compiling) -> None:
    """Lets views read the same helpers. One whose helper has the name of another one by chance keeps its own."""
    from partwise.compile.sharing import shared

    meanings: dict[str, str | None] = {}
    for name, view in compiling.views.items():
        made = shared(view, compiling.tables)
        helpers = {h.name: h.meaning for way in made.alternatives for h in way.helpers if h.meaning is not None}
        taken = any(each.lower() in compiling.tables for each in helpers)
        if not taken and all(meanings.setdefault(each, meaning) == meaning for each, meaning in helpers.items()):
            compiling.views[name] = made
        else:
            compiling.views[name] = replace(view, alternatives=view.own or view.alternatives, own=())


def _bad_repairs(reading: DefinitionsReading, compiling: _Compiling) -> list[Problem]:
    """Ways to repair that definitions ask for and that would not be exact."""
    wanted = _that(reading, lambda view: view.repair_by in ("keys", "merge"))
    if not wanted:
        return []  # trees cost time, and hardly any definition asks for one
    from partwise.compile.relations import bad_repair

    program, relations = _as_compiled(reading, compiling)
    found = []
    for name, entry in wanted.items():
        table = program.usable.get(name)
        if isinstance(table, Runnable) and (why := bad_repair(relations, table)):
            at = entry.node.walk(("repair", "by"))[1]
            found.append(entry.report(at, "bad-repair", why, "use auto, which takes what is exact, or recompute"))
    return found


def _sampled(reading: DefinitionsReading, compiling: _Compiling) -> list[Problem]:
    """Adds the helpers of samples to the views that ask for one; what stands in the way."""
    wanted = _that(reading, lambda view: view.sample is not None)
    if not wanted:
        return []
    from partwise.compile.sample.generate import NotSampled, basis, with_sample

    program, relations = _as_compiled(reading, compiling)
    found = []
    for name, entry in wanted.items():
        made = compiling.views.get(name)
        if made is None or name not in program.usable:
            continue
        try:
            made = with_sample(made, relations.of(basis(made)), compiling.tables)
        except NotSampled as why:
            at = entry.node.walk(("sample", why.key))[1] if why.key else entry.node.key("sample") or entry.node
            found.append(entry.report(at, "bad-sample", str(why), why.hint))
            continue
        helpers = {helper.name.lower(): helper for way in made.alternatives for helper in way.helpers}
        found += [_taken(helper, compiling.tables[n]) for n, helper in helpers.items() if n in compiling.tables]
        compiling.views[name] = made
        rule = entry.definition.sample if isinstance(entry.definition, View) else None
        if rule is not None and not rule.keep and made.sampled is not None and made.sampled.summed:
            what = " and ".join(made.sampled.summed)
            message = f"sums of {what} are answered only where no single key could change them much"
            hint = "keep the largest keys exactly, for example outliers: {column: amount, keep: 100}"
            at = entry.node.key("sample") or entry.node
            found.append(entry.report(at, "no-outliers", message, hint, "warning"))
    return found


def _with_state(reading: DefinitionsReading, compiling: _Compiling) -> list[Problem]:
    """Adds the helpers that keep joins to the views that ask for one; what stands in the way."""
    wanted = _that(reading, lambda view: view.state is not None)
    if not wanted:
        return []
    from partwise.compile.state.generate import BadState, with_state

    program, relations = _as_compiled(reading, compiling)
    found = []
    for name, entry in wanted.items():
        made = compiling.views.get(name)
        if made is None or name not in program.usable:
            continue
        try:
            made = with_state(made, relations, compiling.tables)
        except BadState as why:
            at = entry.node.walk(("state", "join"))[1]
            found.append(entry.report(at, "bad-state", str(why), why.hint))
            continue
        helper = made.alternatives[0].helpers[-1]
        if helper.name.lower() in compiling.tables:
            found.append(_taken(helper, compiling.tables[helper.name.lower()]))
        compiling.views[name] = made
    return found


@dataclass
class _Compiling:
    """Views compiled so far, and the columns that they give, which those that read them need."""

    reading: DefinitionsReading
    tables: dict[str, Definition]
    catalog: KnownNames
    views: dict[str, CompiledView] = field(default_factory=dict)
    results: dict[str, ResultColumns] = field(default_factory=dict)

    def add(self, name: str, entry: Document) -> None:
        """All that it reads was added before."""
        view, analyses = entry.definition, entry.built.analyses
        if not isinstance(view, View):
            return
        made: CompiledView | None = None
        if view.query is None:
            made = self._as_written(view)
        elif name in inputs_of(view):
            self.reading.problems.append(_reads_itself(view))
        elif name not in self.reading.broken():
            made, analyses = self._translated(view, entry)
        columns = self.catalog.columns[name] = result_columns(analyses, self.catalog)
        if view.query is None:
            types = result_types(view, analyses, self.tables, self.results)
        else:
            types = dict(made.types) if made is not None else {}
        self.results[name] = ResultColumns(columns, types)
        self.catalog.types[name] = types
        if (said := updates_problem(view, self.tables)) is not None and name not in self.reading.broken():
            at = entry.node.get("updates") or entry.node
            self.reading.problems.append(entry.report(at, "updates-class", *said))
        if made is not None:
            self.views[view.name] = replace(made, columns=columns, types=types)

    def _as_written(self, view: View) -> CompiledView | None:
        """Plain SQL runs as it is, but for dimensions of which not all rows count."""
        if view.update is None or view.name.lower() in self.reading.broken():
            return None if view.update is None else _plain(view, view.update, view.initialize)
        texts = []
        for statement in (view.update, view.initialize):
            try:
                texts.append(None if statement is None else with_validity(statement, self.tables))
            except TranslationError as why:
                assert statement is not None
                for p in why.problems:
                    at = statement.placed.at(p.start)
                    problem = Problem(at.file, at.line, at.column, p.code, p.message, p.hint, "error", view.name)
                    self.reading.problems.append(problem)
                return None
        update, initialize = texts
        assert update is not None
        return _plain(view, update, initialize)

    def _translated(self, view: View, entry: Document) -> tuple[CompiledView | None, dict[str, Analysis]]:
        """The one place where the translator of PATTERN and WINDOW queries is called."""
        answer = translate_view(view, self.tables, self.results)
        found, made = [*answer.problems], answer.view
        if made is not None:
            found += idle_keys(made.usual is not None and made.usual.strategy == "pattern", entry.node, entry.report)
            helpers = {helper.name.lower(): helper for way in made.alternatives for helper in way.helpers}
            found += [_taken(helper, self.tables[name]) for name, helper in helpers.items() if name in self.tables]
        self.reading.problems += found
        return made, dict(answer.analyses)


def _plain(view: View, update: Statement, initialize: Statement | None) -> CompiledView:
    table = Runnable(view.name, view, view.part, view.start, update, initialize, view.description)
    return CompiledView(view, (Alternative(None, table),))


def _reads_itself(view: View) -> Problem:
    at = view.query.at(0) if view.query is not None else view.place
    hint = "a query reads other tables; a view of its own earlier parts is written with initialize and update"
    message = f"the query of {view.name} reads {view.name} itself"
    return Problem(at.file, at.line, at.column, "self-not-earlier", message, hint, "error", view.name)


def _taken(helper: Runnable, other: Definition) -> Problem:
    """Whichever way is chosen later, the names of its helpers must be free."""
    at, view = helper.place, helper.written.name
    message = f"{view} needs a helper called {helper.name}, but that name is taken at {other.place}"
    hint = "call one of them something else"
    return Problem(at.file, at.line, at.column, "duplicate-name", message, hint, "error", view)
