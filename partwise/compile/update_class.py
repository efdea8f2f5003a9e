"""The update class of a view: what its query reads, and how the rules of `relation` judge it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from partwise.compile.many_parts.spread import spread
from partwise.definitions.definitions import Definition, Dimension, Source, View
from partwise.parts import Reference, duration_text
from partwise.relation.update_class import Classified, classify, forward, is_worse
from partwise.sql.references import analyse

if TYPE_CHECKING:
    from sqlglot import exp


def update_class(view: View, tables: Mapping[str, Definition]) -> Classified | None:
    """`tables` by lower-case name. None where the query cannot be read."""
    if view.query is not None:
        return _of_query(view, tables)
    if view.update is None:
        return None
    found = {t.start: t.reference for t in view.update.found.tables}
    tree = analyse(view.update.text).tree

    def leaf(node: exp.Table) -> Classified:
        at = _place(node)
        table = tables.get(node.name.lower())
        if not isinstance(table, Source | View):
            return _dimension(table, node.name, at)
        if table.name == view.name:
            return Classified("strict", table.name, "it reads its own earlier parts", at)
        return _read(table, found.get(at), view.part, at)

    return None if tree is None else classify(tree, leaf)


def _of_query(view: View, tables: Mapping[str, Definition]) -> Classified | None:
    from partwise.compile.several.frequent import is_frequent
    from partwise.compile.several.read import windows_in
    from partwise.sql.parse import TranslationError

    assert view.query is not None
    try:
        text, windows = windows_in(view.query.text)
    except TranslationError:
        return None  # told where the query is translated
    if not windows:
        return Classified("strict", "PATTERN", "a row that does not match ends a run", 0)
    tree = analyse(text).tree
    if tree is None:
        return None

    def leaf(node: exp.Table) -> Classified:
        at = _place(node)
        table = tables.get(node.name.lower())
        if not isinstance(table, Source | View):
            return _dimension(table, node.name, at)
        if view.output == "pairs":
            return Classified("monotonic", f"{table.name} [pairs]", "", at)
        if at not in windows:
            return Classified("strict", table.name, "it has no window", at)
        kind, seconds = windows[at]
        if kind == "ROWS":
            return Classified("strict", f"{table.name} [ROWS]", "a row leaves when newer ones come", at)
        name = f"{table.name} [WINDOW {duration_text(seconds)}]"
        if seconds == view.part:
            return Classified("monotonic", name, "", at)
        return Classified("weakest", name, "", at, window=seconds)

    found = classify(tree, leaf)
    if is_frequent(view.query.text):
        return Classified("strict", "FREQUENT", "a more frequent group takes its place", 0, (found,))
    return found


def _read(table: Source | View, reference: Reference | None, part: int, at: int) -> Classified:
    if reference is None or spread(reference).single:
        return Classified("monotonic", table.name, "", at)
    name = table.name + reference.text()
    count = (reference.hi.plus - reference.lo.plus) // reference.hi.over + 1
    return Classified("weakest", name, "", at, window=count * table.part)


def _dimension(table: Definition | None, name: str, at: int) -> Classified:
    if isinstance(table, Dimension) and table.change == "forward":
        return forward(at)
    return Classified("strict", name, "a change of the dimension rewrites rows", at)


def _place(node: exp.Table) -> int:
    from partwise.sql.columns import place

    return place(node)[0]


def updates_problem(view: View, tables: Mapping[str, Definition]) -> tuple[str, str] | None:
    """Message and hint where a view is worse than it says; None if all is well."""
    found = update_class(view, tables) if view.updates is not None else None
    if found is None or view.updates is None or not is_worse(found.name, view.updates):
        return None
    culprit = found.culprit(view.updates)
    placed = view.query if view.query is not None else view.update.placed if view.update is not None else None
    line = f" (line {placed.at(culprit.offset).line})" if placed is not None else ""
    message = f"declared {view.updates}, but {culprit.operator}{line} is {culprit.name}: {culprit.why}"
    return message, f"write updates: {found.name}, or change the query"
