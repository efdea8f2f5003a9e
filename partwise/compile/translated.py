"""`query:` views: the translator turns them into plain SQL, which is checked and runs like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from partwise.compile.dimensions import FORWARD, TIMED, Kind
from partwise.compile.fingerprint import fingerprint
from partwise.compile.program import Alternative, CompiledView, Runnable
from partwise.compile.result_types import Derived, ResultColumns, Results
from partwise.definitions.definitions import Definition, Dimension, Source, Statement, View
from partwise.definitions.problems import Problem, Severity
from partwise.definitions.yaml.places import Place, Placed
from partwise.parts import part_text
from partwise.sql.canonical import canonical_of
from partwise.sql.references import Analysis, FoundReferences, analyse
from partwise.tables import Start, is_dated

if TYPE_CHECKING:
    from partwise.compile.model import GeneratedView, InputTable, QueryView, Strategy, Translation


@dataclass(frozen=True)
class Translated:
    """The compiled view (None if that failed), what the translator said, and its SQL as read (by key).

    The names of the view's columns are left to whoever knows all tables.
    """

    view: CompiledView | None
    problems: tuple[Problem, ...] = ()
    analyses: Mapping[str, Analysis] = field(default_factory=dict)


def translate_view(view: View, tables: Mapping[str, Definition], results: Results) -> Translated:
    """`tables` by lower-case name; `results` are the columns of views, as far as they are known."""
    assert view.query is not None
    from partwise.compile.translate import translate
    from partwise.sql.parse import TranslationError

    try:
        asked, known = question(view, tables, results)
        answer = translate(asked, known)  # first as it is written: problems have their places in that text
        if by_part := _joined_by_part(answer, tables):
            from partwise.compile.dimensions.forward import translated_apart

            answer = translated_apart(asked, known, by_part, translate)
        return _with_answer(view, answer, tables)
    except TranslationError as why:
        return Translated(None, tuple(_said(view, p.start, p.code, p.message, p.hint) for p in why.problems))
    except Exception as why:  # our own fault: say so, and go on with the other definitions
        message = f"Partwise failed to translate this query: {type(why).__name__}: {why}"
        return Translated(None, (_problem(view, view.query.at(0), "internal", message, ""),))


def _joined_by_part(answer: Translation, tables: Mapping[str, Definition]) -> dict[str, Kind]:
    """By name, in lower case, the dimensions among what the views of a translation read that are joined with each part for
    itself: those that change forward, and those whose rows are valid for a time."""
    texts = {(text, i) for made in answer.views for text, i in ((made.update, "j"), (made.initialize, "i")) if text}
    read = {found.table.lower() for text, index in texts for found in _read(text, index)[0].tables}
    dimensions = {name: table for name in sorted(read) if isinstance(table := tables.get(name), Dimension)}
    kinds = {name: FORWARD for name, table in dimensions.items() if table.change == "forward"}
    return kinds | {name: TIMED for name, table in dimensions.items() if table.valid_from is not None}


def question(
    view: View, tables: Mapping[str, Definition], results: Results
) -> tuple[QueryView, Mapping[str, InputTable]]:
    """What the translator is asked. Nothing of it comes from the ledger: what counts say is chosen afterwards."""
    from partwise.compile.model import QueryView

    assert view.query is not None
    asked = QueryView(
        name=view.name,
        query=view.query.text,
        part=view.part,
        gaps=view.gaps,
        strategy=None if view.strategy == "auto" else view.strategy,
        partial=view.partial,
        output=view.output,
        start=part_text(view.start.part, view.part) if view.start.part is not None else view.start.rule,
    )
    return asked, Derived(tables, lambda _, table: input_table(table, results))


def _with_answer(view: View, answer: Translation, tables: Mapping[str, Definition]) -> Translated:
    assert view.query is not None
    here = view.query.at(0)
    ways = tuple(_alternative(each.strategy, each.views, each.notes, view, here, tables) for each in answer.variants)
    if not any(way.strategy == answer.choice.strategy for way in ways):
        ways = (*ways, _alternative(answer.choice.strategy, answer.views, answer.notes, view, here, tables))
    # What is made for several views is named for one here, too: see `partwise.compile.sharing`.
    alike = {each.strategy: each.views for each in answer.variants}
    dated = any(is_dated(view.name, each.name) for views in alike.values() for each in views)
    shared = tuple(
        next(way for way in ways if way.strategy == each.strategy)
        if each.views == alike[each.strategy]
        else _alternative(each.strategy, each.views, each.notes, view, here, tables)
        for each in (() if dated else answer.shared)
    )
    made = CompiledView(
        written=view,
        alternatives=shared or ways,
        own=ways if shared else (),
        usual=answer.choice,
        shape=answer.shape,
        panes=answer.panes if shared else None,
        mark=_mark(ways, tables) if answer.shape is not None else "",
        types=dict(answer.types),
    )
    warnings = tuple(_problem(view, here, "query-warning", text, "", "warning") for text in answer.warnings)
    table = made.alternative(answer.choice).table
    statements = {"initialize": table.initialize, "update": table.update}
    analyses = {key: analyse(s.text, s.index) for key, s in statements.items() if s is not None}
    return Translated(made, warnings, analyses)


def _alternative(
    strategy: Strategy | Literal["pattern"],
    made: Sequence[GeneratedView],
    notes: tuple[str, ...],
    view: View,
    here: Place,
    tables: Mapping[str, Definition],
) -> Alternative:
    final = next(v for v in made if v.name == view.name)
    helpers = tuple(_runnable(v, view, here, tables) for v in made if v.name != view.name)
    return Alternative(strategy, _runnable(final, view, here, tables), helpers, notes)


def _mark(ways: Sequence[Alternative], tables: Mapping[str, Definition]) -> str:
    """Of what the view means: comments do not count, its query, its part length and `partial` do."""
    plain = next(way for way in ways if way.strategy == "recompute")
    known = {**tables, **{helper.name.lower(): helper for helper in plain.helpers}}
    return fingerprint(plain.table, known)


def _start(made: GeneratedView, view: View) -> Start:
    """A window that ends with the given start reaches back before it. Partial ones take what there is of that.

    What goes on from its own part before begins with the first window that there can be: if one of them never comes,
    because the source begins later, all that follow would wait for it, which they do by no other strategy.
    """
    if made.name == view.name or view.start.part is None or made.reaches is None:
        return view.start
    settled = view.partial or made.initialize is not None
    return Start("earliest" if settled else "at", made.reaches.at(view.start.part))


def _runnable(made: GeneratedView, view: View, here: Place, tables: Mapping[str, Definition]) -> Runnable:
    def statement(text: str, index: str) -> Statement:
        found, canonical = _read(text, index)
        if made.name != view.name and _reads_timed(found, tables):
            from partwise.compile.dimensions.validity import valid_text

            text = valid_text(text, index, tables)
            found, canonical = _read(text, index)
        placed = Placed(text, here.file, ((0, here.line, here.column),), generated=True)
        return Statement(text, index, found, placed, canonical)

    return Runnable(
        name=made.name,
        written=view,
        part=made.part,
        start=_start(made, view),
        initialize=None if made.initialize is None else statement(made.initialize, "i"),
        update=statement(made.update, "j"),
        description=view.description if made.name == view.name else made.comment or None,
        optional=made.optional,
        fast_update=made.fast_update,
        unique_update=made.unique_update,
        unique_by=made.unique_by,
        single_pass=made.single_pass,
        sketches=made.sketches,
    )


@lru_cache(maxsize=256)
def _read(text: str, index: str) -> tuple[FoundReferences, str]:
    """Panes are written alike for many views, and for several ways to keep one."""
    analysis = analyse(text, index)
    return analysis.found, canonical_of(text, analysis)


def input_table(table: Definition, results: Results) -> InputTable:
    from partwise.compile.model import InputTable

    if isinstance(table, Source):
        known = dict(table.columns) or None
        return InputTable(table.name, "source", table.part, known, table.time.column, table.time.tie)
    if isinstance(table, Dimension):
        return InputTable(table.name, "dimension", None, dict(table.columns) or None)
    found = results.get(table.name.lower(), ResultColumns())
    types = None if found.names is None else {name: found.types.get(name.lower()) for name in found.names}
    return InputTable(table.name, "view", table.part, types)


def _said(view: View, offset: int, code: str, message: str, hint: str) -> Problem:
    """What the translator cannot do yet leaves the view out; everything else is an error of the query."""
    assert view.query is not None
    severity: Severity = "note" if code == "not-translated" else "error"
    return _problem(view, view.query.at(offset), code, message, hint, severity)


def _reads_timed(found: FoundReferences, tables: Mapping[str, Definition]) -> bool:
    read = (tables.get(each.table.lower()) for each in found.tables)
    return any(isinstance(table, Dimension) and table.valid_from is not None for table in read)


def with_validity(statement: Statement, tables: Mapping[str, Definition]) -> Statement:
    """A statement that somebody wrote, as it runs. Raises TranslationError."""
    if not _reads_timed(statement.found, tables):
        return statement
    from partwise.compile.dimensions.validity import valid_text  # it imports the parser

    text = valid_text(statement.text, statement.index, tables)
    analysis = analyse(text, statement.index)
    at = statement.placed.at(0)
    placed = Placed(text, at.file, ((0, at.line, at.column),), generated=True)
    return Statement(text, statement.index, analysis.found, placed, canonical_of(text, analysis))


def _problem(view: View, at: Place, code: str, message: str, hint: str, severity: Severity = "error") -> Problem:
    return Problem(at.file, at.line, at.column, code, message, hint, severity, view.name)
