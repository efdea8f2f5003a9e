"""`query:` views: the translator turns them into plain views, which are checked and run like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from partwise.compile.fingerprint import fingerprint
from partwise.definitions.definitions import Definition, Dimension, Source, Statement, Variant, View, Way
from partwise.definitions.problems import Problem, Severity
from partwise.definitions.yaml.places import Place, Placed
from partwise.parts import part_text
from partwise.sql.canonical import canonical_of
from partwise.sql.references import Analysis, analyse
from partwise.tables import Start

if TYPE_CHECKING:
    from partwise.compile.model import GeneratedView, InputTable, QueryView, Translation


@dataclass(frozen=True)
class Translated:
    """The view with its generated statements, its helpers, and what the translator said."""

    view: View
    helpers: tuple[View, ...] = ()
    problems: tuple[Problem, ...] = ()
    analyses: Mapping[str, Analysis] | None = None
    others: tuple[View, ...] = ()  # helpers of other strategies

    @property
    def possible(self) -> tuple[View, ...]:
        """Helpers that the view has now or may have with another strategy, each name once."""
        return tuple({helper.name: helper for helper in (*self.others, *self.helpers)}.values())


def translate_view(
    view: View, tables: Mapping[str, Definition], columns: Mapping[str, tuple[str, ...] | None]
) -> Translated:
    """`tables` by lower-case name; `columns` are those of views, as far as they are known."""
    assert view.query is not None
    from partwise.compile.model import TranslationError
    from partwise.compile.translate import translate

    try:
        return _with_answer(view, translate(*question(view, tables, columns)), tables)
    except TranslationError as why:
        return Translated(view, problems=tuple(_said(view, p.offset, p.code, p.message, p.hint) for p in why.problems))
    except Exception as why:  # our own fault: say so, and go on with the other definitions
        message = f"Partwise failed to translate this query: {type(why).__name__}: {why}"
        return Translated(view, problems=(_problem(view, view.query.at(0), "internal", message, ""),))


def question(
    view: View, tables: Mapping[str, Definition], columns: Mapping[str, tuple[str, ...] | None]
) -> tuple[QueryView, dict[str, InputTable]]:
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
        start=part_text(view.start.part, view.part) if view.start.part is not None else view.start.rule,
    )
    return asked, {name: input_table(table, columns) for name, table in tables.items()}


def _with_answer(view: View, answer: Translation, tables: Mapping[str, Definition]) -> Translated:
    assert view.query is not None
    here = view.query.at(0)
    ways = {each.strategy: _way(each.views, each.notes, view, here) for each in answer.variants}
    taken = next((way for strategy, way in ways.items() if strategy == answer.choice.strategy), None)
    chosen = taken or _way(answer.views, answer.notes, view, here)
    made, helpers = chosen.made, chosen.helpers
    whole = replace(
        view.made_as(made),
        types=dict(answer.types),
        chosen=answer.choice,
        notes=chosen.notes,
        variants=tuple(Variant.of(strategy, way) for strategy, way in ways.items()),
        shape=answer.shape,
        mark=_mark(view, ways["recompute"], tables) if ways else "",
    )
    warnings = tuple(_problem(view, here, "query-warning", text, "", "warning") for text in answer.warnings)
    statements = {"initialize": made.initialize, "update": made.update}
    analyses = {key: analyse(s.text, s.index) for key, s in statements.items() if s is not None}
    return Translated(whole, helpers, warnings, analyses, tuple(h for way in ways.values() for h in way.helpers))


def _way(made: Sequence[GeneratedView], notes: tuple[str, ...], view: View, here: Place) -> Way:
    final = next(v for v in made if v.name == view.name)
    helpers = tuple(_generated(v, view, here) for v in made if v.name != view.name)
    return Way(_generated(final, view, here), helpers, notes)


def _mark(view: View, plain: Way, tables: Mapping[str, Definition]) -> str:
    """Of what the view means: comments do not count, its query, its part length and `partial` do."""
    known = {**tables, **{helper.name.lower(): helper for helper in plain.helpers}}
    return fingerprint(view.made_as(plain.made), known)


def _start(made: GeneratedView, view: View) -> Start:
    """A window that ends with the given start reaches back before it. Partial ones take what there is of that.

    What goes on from its own part before begins with the first window that there can be: if one of them never comes,
    because the source begins later, all that follow would wait for it, which they do by no other strategy.
    """
    if view.start.part is None or made.reaches is None:
        return view.start
    settled = view.partial or made.initialize is not None
    return Start("earliest" if settled else "at", made.reaches.at(view.start.part))


def _generated(made: GeneratedView, view: View, here: Place) -> View:
    """A generated view runs like the view it serves: same engine, repair and patience."""

    def statement(text: str | None, index: str) -> Statement | None:
        if text is None:
            return None
        placed = Placed(text, here.file, ((0, here.line, here.column),), generated=True)
        analysis = analyse(text, index)
        return Statement(text, index, analysis.found, placed, canonical_of(text, analysis))

    return View(
        name=made.name,
        place=view.place,
        part=made.part,
        start=_start(made, view),
        initialize=statement(made.initialize, "i"),
        update=statement(made.update, "j"),
        repair=view.repair,
        repair_by="auto" if view.repair_by == "merge" else view.repair_by,
        engine=view.engine,
        patience=view.patience,
        timeout=view.timeout,
        description=made.comment or None,
        owner=view.owner,
        helper_of=view.name,
        optional=made.optional,
        fast_update=made.fast_update,
        unique_update=made.unique_update,
        unique_by=made.unique_by,
        single_pass=made.single_pass,
        sketches=made.sketches,
    )


def input_table(table: Definition, columns: Mapping[str, tuple[str, ...] | None]) -> InputTable:
    from partwise.compile.model import InputTable

    if isinstance(table, Source):
        known = dict(table.columns) or None
        return InputTable(table.name, "source", table.part, known, table.time.column, table.time.tie)
    if isinstance(table, Dimension):
        return InputTable(table.name, "dimension", None, dict(table.columns) or None)
    names = columns.get(table.name.lower())
    types = None if names is None else {name: table.types.get(name.lower()) for name in names}
    return InputTable(table.name, "view", table.part, types)


def _said(view: View, offset: int, code: str, message: str, hint: str) -> Problem:
    """What the translator cannot do yet leaves the view out; everything else is an error of the query."""
    assert view.query is not None
    severity: Severity = "note" if code == "not-translated" else "error"
    return _problem(view, view.query.at(offset), code, message, hint, severity)


def _problem(view: View, at: Place, code: str, message: str, hint: str, severity: Severity = "error") -> Problem:
    return Problem(at.file, at.line, at.column, code, message, hint, severity, view.name)
