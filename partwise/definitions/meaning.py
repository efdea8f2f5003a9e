"""What can only be said with all definitions in view: tables, lengths, columns, cycles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from partwise.definitions.across import across
from partwise.definitions.build import Built
from partwise.definitions.build_checks import check_columns
from partwise.definitions.definitions import Definition, Dimension, Statement, View, inputs_of
from partwise.definitions.foreign_sql import foreign, misplaced
from partwise.definitions.lengths import misfit, same_time, shifted
from partwise.definitions.names import STORED, reserved
from partwise.definitions.problems import Problem, Severity, list_of
from partwise.definitions.refused_sql import refused, without_pattern
from partwise.definitions.yaml.places import Place
from partwise.definitions.yaml.shape import Reporter
from partwise.definitions.yaml.text import YamlNode
from partwise.parts.length import ALL_TIME
from partwise.spelling import did_you_mean
from partwise.sql.columns import Output, outputs, uneven, unknown
from partwise.sql.determinism import depends_on_order, not_repeatable
from partwise.sql.parse import SqlProblem
from partwise.sql.references import Analysis, FoundReference, FoundReferences, analyse
from partwise.sql.tables import tables_read
from partwise.sql.types.unstorable import unstorable
from partwise.sql.types.written import bad_decimals, bad_types
from partwise.tables import Cycle, Graph, Input, Table

#: What Delta takes in no name of a column.
_NOT_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")


@dataclass(frozen=True)
class Document:
    """One document that has the shape of a definition."""

    built: Built
    node: YamlNode
    report: Reporter

    @property
    def definition(self) -> Definition:
        return self.built.definition


@dataclass
class KnownNames:
    """All names, lower case: definitions, and names whose document is too broken to know more."""

    tables: Mapping[str, Definition]
    broken: frozenset[str]
    #: Columns of results, and their types as far as they are certain, filled in dependency order.
    columns: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    types: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def names(self) -> list[str]:
        return [definition.name for definition in self.tables.values()]

    def columns_of(self, name: str) -> tuple[str, ...] | None:
        found = self.tables.get(name)
        if name in self.broken or found is None:
            return None
        return self.columns.get(name) if isinstance(found, View) else tuple(found.columns) or None

    def types_of(self, name: str) -> Mapping[str, str | None]:
        """Types of columns by lower-case name."""
        found = self.tables.get(name)
        if name in self.broken or found is None:
            return {}
        own = self.types.get(name, {}) if isinstance(found, View) else found.columns
        return {column.lower(): kind for column, kind in own.items()} | STORED

    def types_read(self, found: FoundReferences) -> Mapping[str, Mapping[str, str | None]]:
        """Of the tables that a query reads."""
        names = {item.table.lower() for item in found.tables}
        return {name: self.types_of(name) for name in names}


def problems_of(entry: Document, catalog: KnownNames) -> list[Problem]:
    """Everything wrong with one definition, given all the others."""
    view = entry.definition
    found = list(across(view, catalog.tables, catalog.broken, entry.node, entry.report))
    if not isinstance(view, View):
        return found
    found += _rolling(entry, view)
    found += _problems(entry, view, catalog)
    found += _reads_rolling(entry, view, catalog)
    if any(problem.severity == "error" for problem in found):
        return found
    return [*found, *_no_parts(view, catalog)]


def _problems(entry: Document, view: View, catalog: KnownNames) -> Iterator[Problem]:
    for key, statement in (("initialize", view.initialize), ("update", view.update)):
        if statement is None:
            continue
        analysis = entry.built.analyses[key]
        tell = Teller(statement, view.name)
        yield from (tell.problem(p) for p in statement.found.problems)
        yield from (tell.problem(p) for p in not_repeatable(analysis.tokens))
        yield from (tell.problem(p) for p in refused(statement.text, analysis.tokens))
        yield from (tell.problem(p) for p in bad_decimals(analysis.tokens))
        yield from (tell.problem(p) for p in bad_types(statement.text, analysis.tokens))
        for found in statement.found.tables:
            yield from _table(found, view, key, catalog, tell, "part" not in entry.built.without)
        yield from _forward_range(statement, view, catalog, tell)
        if analysis.tree is not None:
            yield from (tell.problem(p) for p in unknown(analysis.tree, catalog.columns_of))
            yield from (tell.problem(p) for p in depends_on_order(analysis.tree))
            yield from (tell.problem(p) for p in foreign(analysis.tree, analysis.tokens))
            yield from (tell.problem(p) for p in misplaced(analysis.tree))
            yield from (tell.problem(p) for p in uneven(analysis.tree, catalog.columns_of))
            yield from _result(outputs(analysis.tree, catalog.columns_of) or (), tell)
            yield from (tell.problem(p) for p in unstorable(analysis.tree, catalog.types_read(statement.found)))
    yield from _initialize(view, catalog, entry)
    yield from _query(view, catalog)
    written = entry.node.get("checks")
    for where in written.items if written is not None else ():
        # Checks that are wrong in themselves are not among those of the view.
        places = {entry.report.place(key) for key, _ in where.pairs}
        for check in (c for c in view.checks if c.place in places):
            columns = catalog.columns.get(view.name.lower())
            yield from check_columns(check.name, dict(check.arguments), where, entry.report, columns)


def _query(view: View, catalog: KnownNames) -> Iterator[Problem]:
    """What Spark or Delta would refuse in a query with PATTERN or WINDOW: the translator reads the rest of it."""
    if view.query is None:
        return
    from partwise.sql.calls import SPELLINGS  # sqlglot comes with it: not for definitions without such a query

    text = without_pattern(view.query.text)
    analysis = analyse(text)
    found = [*refused(text, analysis.tokens, SPELLINGS), *bad_decimals(analysis.tokens)]
    found += bad_types(text, analysis.tokens)
    if analysis.tree is not None:
        found += unstorable(analysis.tree, catalog.types_read(analysis.found))
        found += foreign(analysis.tree, analysis.tokens)
        found += bad_names(outputs(analysis.tree, catalog.columns_of) or ())
    for p in found:
        at = view.query.at(p.start)
        yield Problem(at.file, at.line, at.column, p.code, p.message, p.hint, "error", view.name)


def bad_names(columns: Iterable[Output]) -> Iterator[SqlProblem]:
    """Names that Delta takes for no column."""
    for column in columns:
        if column.name is not None and (_NOT_IN_NAMES.search(column.name) or not column.name.strip()):
            shown = column.name.replace("\n", " ")
            message = f"`{shown}` cannot be the name of a column: Delta takes no blanks and none of ,;{{}}()= in it"
            yield SqlProblem(column.start, "bad-name", message, "use letters, digits and underscores", end=column.end)


def _rolling(entry: Document, view: View) -> Iterator[Problem]:
    """Keys that mean something only for views with parts."""
    for key, given in (("keep", view.keep), ("sample", view.sample)):
        if view.output == "rolling" and given is not None:
            at, hint = entry.node.key(key) or entry.node, "remove it; a rolling table holds what its windows give now"
            yield entry.report(at, "keys-exclude", f"{key} means nothing for output: rolling, which has no parts", hint)


def _reads_rolling(entry: Document, view: View, catalog: KnownNames) -> Iterator[Problem]:
    """What a rolling table held at another time, when a part would have to be computed again, nobody knows."""
    for name in inputs_of(view):
        other = catalog.tables.get(name)
        if not isinstance(other, View) or other.output != "rolling" or name == view.name.lower():
            continue
        found = [Teller(s, view.name) for s in view.statements for f in s.found.tables if f.table.lower() == name]
        message = f"{other.name} is rolling: it has no parts that {view.name} could read"
        hint = f"write the query of {other.name} in {view.name}, or let both read a view with output: snapshot"
        if view.query is not None:
            at = view.query.at(tables_read(view.query.text).get(name, 0))
            yield Problem(at.file, at.line, at.column, "rolling-reference", message, hint, "error", view.name)
        for tell in found[:1]:
            start = next(f.start for f in tell.statement.found.tables if f.table.lower() == name)
            yield tell(start, "rolling-reference", message, hint)


@dataclass(frozen=True)
class Teller:
    """Makes problems at offsets of a statement."""

    statement: Statement
    table: str

    def __call__(self, start: int, code: str, message: str, hint: str = "", severity: Severity = "error") -> Problem:
        at: Place = self.statement.placed.at(start)
        return Problem(at.file, at.line, at.column, code, message, hint, severity, self.table)

    def problem(self, found: SqlProblem) -> Problem:
        severity: Severity = "warning" if found.severity == "warning" else "error"
        return self(found.start, found.code, found.message, found.hint, severity)


def _table(
    found: FoundReference, view: View, key: str, catalog: KnownNames, tell: Teller, length_known: bool
) -> Iterator[Problem]:
    name, index = found.table.lower(), tell.statement.index
    other = catalog.tables.get(name)
    if other is None:
        if name not in catalog.broken:
            hint = did_you_mean(found.table, catalog.names(), "define it as a source, dimension or view")
            yield tell(found.start, "unknown-table", f"there is no table {found.table}", hint)
        return
    if isinstance(other, Dimension):
        if found.brackets is not None:
            message = f"{other.name} is a dimension and has no parts"
            yield tell(found.start, "dimension-reference", message, f"write {other.name} without brackets")
        return
    itself = name == view.name.lower()
    if isinstance(other, View) and other.output == "rolling" and not itself:
        return  # told once for each view
    if itself and key == "initialize":
        hint = "the first part can only be made from other tables; earlier parts of the view belong in update"
        yield tell(found.start, "initialize-reads-itself", f"INITIALIZE of {view.name} reads {view.name} itself", hint)
        return
    if found.brackets is None:
        form = "[j-1]" if itself else same_time(view.part, other.part).text(index)
        message = f"{other.name} is split into parts; say which of them part {index} reads"
        yield tell(found.start, "missing-reference", message, f"for example {found.table}{form}")
        return
    if found.reference is None or not length_known or (name in catalog.broken and not itself):
        return
    furthest = max(abs(found.reference.lo.plus), abs(found.reference.hi.plus))
    if furthest * other.part > ALL_TIME:
        message = f"{found.table}[{found.brackets.strip()}] lies further away than any time that can be written"
        yield tell(found.start, "bad-time", message, "times lie between the years 1 and 9999")
        return
    wrong = misfit(found.reference, view.part, other.part, found.table, view.name, index)
    if wrong is not None:
        yield tell(found.start, *wrong)
    elif itself and found.reference.hi.plus >= 0:
        message = f"{found.table}[{found.brackets.strip()}] reaches part j of the view itself or a later one"
        yield tell(found.start, "self-not-earlier", message, f"only earlier parts exist then: {found.table}[j-1]")
    elif shifted(found.reference, view.part, other.part):
        right = same_time(view.part, other.part).text(index)
        message = (
            f"{found.table}[{found.brackets.strip()}] is as long as one part of {view.name} but covers another time"
        )
        yield tell(found.start, "range-shifted", message, f"part {index} itself is {found.table}{right}", "warning")


def _forward_range(statement: Statement, view: View, catalog: KnownNames, tell: Teller) -> Iterator[Problem]:
    """One version counts for the whole part, also for rows that were there long before the newest part that it reads."""
    read = [(found, catalog.tables.get(found.table.lower())) for found in statement.found.tables]
    forward = [t.name for _, t in read if isinstance(t, Dimension) and t.change == "forward"]
    for found, other in read:
        several = found.reference is not None and found.reference.lo != found.reference.hi
        if forward and several and other is not None and found.table.lower() != view.name.lower():
            message = (
                f"one version of {forward[0]} counts for all parts {found.table}[{(found.brackets or '').strip()}]"
            )
            hint = (
                f"to read each part with its own version, join {forward[0]} in a view of its own and read that one here"
            )
            yield tell(found.start, "forward-range", message, hint, "warning")


def _initialize(view: View, catalog: KnownNames, entry: Document) -> Iterator[Problem]:
    if view.update is None:
        return
    own = next((f for f in view.update.found.tables if f.table.lower() == view.name.lower()), None)
    if own is not None and view.initialize is None:
        hint = "add initialize: a query for the first part, with index i, that does not read the view"
        message = f"{view.name} reads its own earlier parts, so its first part needs INITIALIZE"
        yield Teller(view.update, view.name)(own.start, "missing-initialize", message, hint)
    first, later = (_names(entry, key, catalog) for key in ("initialize", "update"))
    if first is not None and later is not None and first[0] != later[0]:
        message = f"INITIALIZE gives ({', '.join(first[0])}) but UPDATE gives ({', '.join(later[0])})"
        hint = "both queries must give the same columns in the same order"
        yield Teller(view.update, view.name)(later[1], "columns-differ", message, hint)


def _names(entry: Document, key: str, catalog: KnownNames) -> tuple[list[str], int] | None:
    """Names of the columns that a statement gives, lower case, and where the first stands; None where in doubt."""
    analysis = entry.built.analyses.get(key)
    found = outputs(analysis.tree, catalog.columns_of) if analysis is not None and analysis.tree is not None else None
    if not found or any(column.name is None for column in found):
        return None
    return [str(column.name).lower() for column in found], found[0].start


def _no_parts(view: View, catalog: KnownNames) -> Iterator[Problem]:
    """Without another table that has parts, nothing says which parts the view has."""
    if view.update is None or view.update.found.problems:
        return
    others = {found.table.lower() for found in view.update.found.tables} - {view.name.lower()}
    if all(isinstance(catalog.tables.get(name), Dimension) for name in others):
        message = f"{view.name} reads no source and no other view, so nothing defines which parts it has"
        yield Teller(view.update, view.name)(
            0, "no-parts", message, "read a source or a view, for example measurements[j]"
        )


def _result(columns: tuple[Output, ...], tell: Teller) -> Iterator[Problem]:
    yield from (tell.problem(p) for p in bad_names(columns))
    seen: set[str] = set()
    twice: dict[int, list[str]] = {}
    for at, column in enumerate(columns, start=1):
        if column.name is None:
            message = f"column {at} of the result has no name"
            yield tell(column.start, "unnamed-column", message, "add AS and a name behind it")
            continue
        name = column.name.lower()
        if reserved(name):
            hint = "call it something else; Partwise adds part and part_timestamp itself"
            yield tell(column.start, "reserved-name", f"the column name {column.name} is used by Partwise itself", hint)
        if name in seen:
            twice.setdefault(column.start, []).append(column.name)
        seen.add(name)
    for start, names in twice.items():
        message = f"two columns of the result are called {list_of(names, 'and')}"
        yield tell(start, "duplicate-column", message, "give one of them another name with AS")


# -- the graph of names -------------------------------------------------------------------------------


def order(tables: Mapping[str, Definition]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Names so that each comes after what it reads, and the cycles that stand in the way (left out of the order)."""
    left = dict(tables)
    cycles: list[tuple[str, ...]] = []
    while True:
        graph = Graph.of(_stub(name, definition) for name, definition in left.items())
        try:
            return list(graph.order), cycles
        except Cycle as found:
            ring = found.path[:-1]
            at = ring.index(min(ring, key=list(tables).index))
            cycles.append((*ring[at:], *ring[:at], ring[at]))
            for name in ring:
                del left[name]


def _stub(name: str, definition: Definition) -> Table:
    inputs = tuple(Input(other, None) for other in inputs_of(definition))
    return Table(name, "view" if isinstance(definition, View) else "source", 1, "", inputs)


def cycle_problem(ring: tuple[str, ...], catalog: KnownNames) -> Problem:
    """At the first table's reference to the next."""
    first = catalog.tables[ring[0]]
    path = " -> ".join(catalog.tables[name].name for name in ring)
    hint = "a view can read its own earlier parts, but two tables cannot be computed from each other"
    for statement in first.statements if isinstance(first, View) else ():
        for found in statement.found.tables:
            if found.table.lower() == ring[1]:
                return Teller(statement, first.name)(found.start, "cycle", path, hint)
    return Problem(first.place.file, first.place.line, first.place.column, "cycle", path, hint, table=first.name)


def result_columns(analyses: Mapping[str, Analysis], catalog: KnownNames) -> tuple[str, ...] | None:
    """The columns that a view gives, if they are known for sure."""
    first = analyses.get("initialize") or analyses.get("update")
    if first is None or first.tree is None:
        return None
    found = outputs(first.tree, catalog.columns_of)
    if found is None or any(column.name is None for column in found):
        return None
    return tuple(str(column.name) for column in found)
