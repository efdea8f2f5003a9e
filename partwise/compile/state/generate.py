"""What is kept of a view as helpers, as if a person had written them: V__joined, a join of its inputs, and V__grouped, the
groups of one of its GROUP BYs.

The view does not read them as far as anybody plans: its query stays what it is, and so does what it is due for. A step of
the view reads a kept part in place of its inputs if the pin says that the part is not due. Then what the part was
computed from is what the inputs hold, so that the result is the same, byte for byte; in all other cases the query runs
as it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from partwise.compile.fingerprint import hashed
from partwise.compile.program import Alternative, CompiledView, KeptOutput, Runnable
from partwise.compile.relations import Relations
from partwise.compile.state.flat import Flat, NotSplit, flat
from partwise.compile.state.grouped import groupings
from partwise.compile.state.split import JoinSplit, split_off
from partwise.definitions.definitions import Definition, Dimension, KeptState, Source, Statement, View
from partwise.definitions.yaml.places import Placed
from partwise.relation.build import Known
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


@dataclass(frozen=True)
class Keepable:
    """What of a query could be kept: joins of its references (None: it is not taken apart), and groups of a GROUP BY."""

    flat: Flat | None
    grouped: JoinSplit | None


def with_state(view: CompiledView, relations: Relations, tables: Mapping[str, Definition]) -> CompiledView:
    """The view with the helper that keeps the join that its author names. Raises BadState."""
    rule = view.written.state
    assert rule is not None
    if len(view.alternatives) > 1 or view.alternatives[0].strategy is not None:
        raise BadState(f"{view.name} is written as query, which is kept in ways of its own", _REMOVE)
    (way,) = view.alternatives
    if way.table.initialize is not None:
        raise BadState(f"{view.name} has initialize: its parts are computed from its own earlier parts", _REMOVE)
    try:
        found = flat(way.table.update, relations.known)
        made = split_off(found, _occurrences(found, rule.join), _joined_name(view))
    except NotSplit as why:
        raise BadState(f"{view.name} cannot keep {' and '.join(rule.join)}: {why}", _REMOVE, why.start) from None
    _refuse_versions(view, found, tables)
    helper = _joined_helper(way.table, found, made, _kept_for(view.written, rule, found, made, tables))
    table = replace(way.table, states=(_output(way.table, made, (helper.name,)),))
    ways = (Alternative(None, table, (*way.helpers, helper), way.notes),)
    return replace(view, alternatives=ways)


def state_mark(view: CompiledView) -> str:
    """Which query it is: a choice holds as long as that stays."""
    return hashed([statement.canonical for statement in view.alternatives[0].table.statements])


def keepable(view: CompiledView, relations: Relations, tables: Mapping[str, Definition]) -> Keepable | None:
    """What Partwise could keep of a view by itself, as far as its author allows it."""
    if view.written.state is not None or not view.written.may_keep or len(view.alternatives) > 1:
        return None
    (way,) = view.alternatives
    if way.strategy is not None or way.table.initialize is not None or way.table.rolling:
        return None
    read = (tables.get(name) for name in way.table.inputs)
    if view.name.lower() in way.table.inputs or any(_has_versions(each) for each in read):
        return None
    joins = groups = None
    if "joins" in view.written.may_keep and f"{view.name}__joined".lower() not in tables:
        try:
            found = flat(way.table.update, relations.known)
            joins = found if len(found.joined) > 2 else None
        except NotSplit:
            pass
    if "aggregate" in view.written.may_keep and f"{view.name}__grouped".lower() not in tables:
        groups = next(iter(_mergeable(way.table, relations)), None)
    return Keepable(joins, groups) if joins is not None or groups is not None else None


def _mergeable(table: Runnable, relations: Relations) -> Iterable[JoinSplit]:
    """Groups that late rows can be added to. Where that can be done in the view itself, its parts are what is kept."""
    if relations.of(table).repair("merge").possible:
        return
    for made in groupings(table.update, relations.known, f"{table.name}__grouped"):
        if relations.of(_grouped_helper(table, made, None)).repair("merge").possible:
            yield made


def with_kept(
    view: CompiledView,
    relations: Relations,
    tables: Mapping[str, Definition],
    join: Iterable[str],
    groups: bool,
    until: int | None,
) -> Alternative | None:
    """The way to run a view with these outputs kept for so many seconds; None if its query has no such thing."""
    can, wanted = keepable(view, relations, tables), tuple(join)
    if can is None or (groups and can.grouped is None) or (wanted and can.flat is None):
        return None
    (way,) = view.alternatives
    states: list[KeptOutput] = []
    helpers: list[Runnable] = []
    if groups and can.grouped is not None:
        helpers.append(_grouped_helper(way.table, can.grouped, until))
        states.append(_output(way.table, can.grouped, (helpers[0].name,)))
    if wanted and can.flat is not None:
        try:
            made = split_off(can.flat, _occurrences(can.flat, wanted), _joined_name(view))
            helper = _joined_helper(way.table, can.flat, made, until)
            states.insert(0, _output(way.table, made, (helper.name,)))
            if both := _both(way.table, states, wanted, relations.known, helper.name):
                states.insert(0, both)
        except NotSplit:
            return None
        helpers.append(helper)
    if not helpers:
        return None
    table = replace(way.table, states=tuple(states))
    return Alternative(None, table, (*way.helpers, *helpers), way.notes)


def _both(
    table: Runnable, states: list[KeptOutput], join: tuple[str, ...], known: Callable[[str], Known | None], name: str
) -> KeptOutput | None:
    """The query over the groups, with a join in it read from what is kept as well."""
    if len(states) < 2:
        return None
    groups = states[-1]
    try:
        found = flat(groups.rest, known)
        made = split_off(found, _occurrences(found, join), name)
    except NotSplit:
        return None
    numbers = tuple(None if n is None else groups.occurrences[n] for n in made.occurrences)
    kept = groups.kept | {n for each in made.kept if (n := groups.occurrences[each]) is not None}
    return KeptOutput((name, *groups.helpers), kept, _statement(made.rest, table), numbers)


def _joined_name(view: CompiledView) -> str:
    return f"{view.name}__joined"


def _joined_helper(table: Runnable, found: Flat, made: JoinSplit, kept_for: int | None) -> Runnable:
    listed = ", ".join(found.of(n).reference.table for n in sorted(made.kept))
    name = f"{table.name}__joined"
    return _helper(table, name, made.text, f"{listed} of {table.name} joined, for repairs", "join", kept_for)


def _grouped_helper(table: Runnable, made: JoinSplit, kept_for: int | None) -> Runnable:
    return _helper(
        table, f"{table.name}__grouped", made.text, f"Groups of {table.name}, for repairs", "groups", kept_for
    )


def _helper(
    table: Runnable, name: str, text: str, description: str, keeps: Literal["join", "groups"], kept_for: int | None
) -> Runnable:
    return replace(
        table,
        name=name,
        update=_statement(text, table),
        description=description,
        # What is old already hardly changes any more: it is not worth the work of the first time.
        start=Start("latest"),
        beside=True,
        keeps=keeps,
        states=(),
        kept_for=kept_for,
    )


def _output(table: Runnable, made: JoinSplit, helpers: tuple[str, ...]) -> KeptOutput:
    return KeptOutput(helpers, made.kept, _statement(made.rest, table), made.occurrences)


def _refuse_versions(view: CompiledView, found: Flat, tables: Mapping[str, Definition]) -> None:
    for each in found.joined:
        read = tables.get(each.reference.table.lower())
        if isinstance(read, Dimension) and _has_versions(read):
            what = "of which each part has the version of its own time"
            what = what if read.valid_from is None else "whose rows are valid for a time"
            raise BadState(f"{view.name} reads {read.name}, {what}", _REMOVE, each.reference.start)


def _has_versions(read: Definition | None) -> bool:
    return isinstance(read, Dimension) and (read.change == "forward" or read.valid_from is not None)


def _occurrences(found: Flat, join: Iterable[str]) -> list[int]:
    """References by alias, or by the name of their table where that is clear."""
    names = {each.alias.lower(): each.occurrence for each in found.joined}
    counts: dict[str, list[int]] = {}
    for each in found.joined:
        counts.setdefault(each.reference.table.lower(), []).append(each.occurrence)
    chosen: list[int] = []
    for wanted in join:
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


def _statement(text: str, table: Runnable) -> Statement:
    here = table.update.placed.at(0)
    analysis = analyse(text, table.update.index)
    assert not analysis.found.problems, analysis.found.problems
    placed = Placed(text, here.file, ((0, here.line, here.column),), generated=True)
    return Statement(text, table.update.index, analysis.found, placed, canonical_of(text, analysis))
