"""A view with `state:` to its helper, as if a person had written it: V__joined, a join of inputs of the view.

The view does not read it as far as anybody plans: its query stays what it is, and so does what it is due for. A step of
the view reads a kept part in place of its inputs if the pin says that the part is not due. Then what the part was
computed from is what the inputs hold, so that the result is the same, byte for byte; in all other cases the query runs
as it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from partwise.compile.program import Alternative, CompiledView, KeptJoin, Runnable
from partwise.compile.relations import Relations
from partwise.compile.state.flat import Flat, NotSplit, flat
from partwise.compile.state.split import JoinSplit, split_off
from partwise.definitions.definitions import Definition, Dimension, KeptState, Source, Statement, View
from partwise.definitions.yaml.places import Placed
from partwise.spelling import did_you_mean
from partwise.sql.canonical import canonical_of
from partwise.sql.references import analyse
from partwise.tables import Start


class BadState(Exception):
    """Why what a definition asks for cannot be kept, what to do, and where in the query it shows (None: nowhere)."""

    def __init__(self, message: str, hint: str, start: int | None = None) -> None:
        super().__init__(message)
        self.hint, self.start = hint, start


_REMOVE = "remove state:"


def with_state(view: CompiledView, relations: Relations, tables: Mapping[str, Definition]) -> CompiledView:
    """The view with the helper that keeps its join. Raises BadState."""
    rule = view.written.state
    assert rule is not None
    if len(view.alternatives) > 1 or view.alternatives[0].strategy is not None:
        raise BadState(f"{view.name} is written as query, which is kept in ways of its own", _REMOVE)
    (way,) = view.alternatives
    if way.table.initialize is not None:
        raise BadState(f"{view.name} has initialize: its parts are computed from its own earlier parts", _REMOVE)
    name = f"{view.name}__joined"
    try:
        found = flat(way.table.update, relations.known)
        made = split_off(found, _occurrences(found, rule), name)
    except NotSplit as why:
        raise BadState(f"{view.name} cannot keep {' and '.join(rule.join)}: {why}", _REMOVE, why.start) from None
    for each in found.joined:
        read = tables.get(each.reference.table.lower())
        if isinstance(read, Dimension) and (read.change == "forward" or read.valid_from is not None):
            what = "of which each part has the version of its own time"
            what = what if read.valid_from is None else "whose rows are valid for a time"
            message = f"{view.name} reads {read.name}, {what}"
            raise BadState(message, _REMOVE, each.reference.start)
    table = replace(way.table, state=kept_join(way.table, made, name))
    helper = replace(
        way.table,
        name=name,
        update=_statement(made.text, way.table),
        description=f"{_listed(found, made)} of {view.name} joined, for repairs",
        # What is old already hardly changes any more: it is not worth the work of the first time.
        start=Start("latest"),
        beside=True,
        kept_for=_kept_for(view.written, rule, found, made, tables),
    )
    ways = (Alternative(None, table, (*way.helpers, helper), way.notes),)
    return replace(view, alternatives=ways)


def kept_join(table: Runnable, made: JoinSplit, name: str) -> KeptJoin:
    return KeptJoin(name, made.kept, _statement(made.rest, table), made.occurrences)


def _occurrences(found: Flat, rule: KeptState) -> list[int]:
    """References by alias, or by the name of their table where that is clear."""
    names = {each.alias.lower(): each.occurrence for each in found.joined}
    counts: dict[str, list[int]] = {}
    for each in found.joined:
        counts.setdefault(each.reference.table.lower(), []).append(each.occurrence)
    chosen: list[int] = []
    for wanted in rule.join:
        here = [names[wanted.lower()]] if wanted.lower() in names else counts.get(wanted.lower(), [])
        if not here:
            listed = [each.alias for each in found.joined]
            hint = did_you_mean(wanted, listed, f"it joins {', '.join(listed)}")
            raise NotSplit(f"{wanted} is not in FROM ({hint})")
        if len(here) > 1:
            raise NotSplit(f"{wanted} is read {len(here)} times: say which by its alias")
        chosen += here
    return list(dict.fromkeys(chosen))


def _kept_for(
    view: View, rule: KeptState, found: Flat, made: JoinSplit, tables: Mapping[str, Definition]
) -> int | None:
    """Rows that come later than the other inputs accept are no news to anybody."""
    if rule.keep is not None:
        return rule.keep
    others = [each.reference for each in found.joined if each.occurrence not in made.kept]
    longest = view.part
    for reference in others:
        table = tables.get(reference.table.lower())
        if not isinstance(table, Source) or table.late.accept is None:
            return view.keep
        longest = max(longest, table.late.accept + 2 * max(view.part, table.part))
    return longest if view.keep is None else min(longest, view.keep)


def _listed(found: Flat, made: JoinSplit) -> str:
    return ", ".join(found.of(n).reference.table for n in sorted(made.kept))


def _statement(text: str, table: Runnable) -> Statement:
    here = table.update.placed.at(0)
    analysis = analyse(text, table.update.index)
    assert not analysis.found.problems, analysis.found.problems
    placed = Placed(text, here.file, ((0, here.line, here.column),), generated=True)
    return Statement(text, table.update.index, analysis.found, placed, canonical_of(text, analysis))
