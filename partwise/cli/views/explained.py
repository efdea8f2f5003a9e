"""A view taken apart, with its helpers: what `explain` shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from partwise.choose.together import job_of_its_own
from partwise.cli.views.explained_state import ExplainedState, explained_state
from partwise.cli.views.repair_choice import one_late_row
from partwise.compile.program import CompiledView, Program, Runnable, Sampled
from partwise.definitions import View
from partwise.parts import FOREVER, Parts, lasting, part_text
from partwise.plan.next import needs_of, parts_text
from partwise.plan.reach import fed, fed_self
from partwise.tables import Graph, Input, Table

if TYPE_CHECKING:
    from partwise.compile import Choice
    from partwise.compile.relations import Relation, Relations
    from partwise.ledger.read.snapshot import Snapshot
    from partwise.ledger.records.strategies import Settlement
    from partwise.relation.update_class import Classified


@dataclass(frozen=True)
class StrategyAnswer:
    """How a query is kept and why, and whether today's counts speak for another way."""

    chosen: Choice
    advice: str
    notes: tuple[str, ...]
    settled: Settlement | None = None


@dataclass(frozen=True)
class Explained:
    """`requires` and `feeds` in general, and for one part as an example."""

    view: Runnable
    start: str
    requires: tuple[str, ...]
    feeds: tuple[str, ...]
    example: int
    example_requires: tuple[str, ...]
    example_feeds: tuple[str, ...]
    choice: str = ""
    settled: Settlement | None = None
    advice: str = ""  # where the ledger's counts speak for another strategy
    notes: tuple[str, ...] = ()
    many: str = ""
    job: str = ""  # why it never shares one; empty where it may
    updates: Classified | None = None  # of the view as its author wrote it
    relation: Relation | None = None
    repair: str = ""  # what would be chosen for one late row, and why
    sampled: Sampled | None = None
    helpers: tuple[tuple[str, tuple[str, ...]], ...] = ()  # tables that were generated for the view; whom they serve
    alone: bool = False  # helpers that could be shared are its own
    together: float | None = None  # what it costs with those that share its helpers, as a share of each alone
    state: ExplainedState | None = None
    dimensions: tuple[tuple[str, str], ...] = ()  # those whose changes count for parts that exist, and for which parts
    refresh: str = ""  # the policy, and how far behind it and those upstream may leave the view


def explained(snapshot: Snapshot, program: Program, name: str, part: int | None, now: float) -> list[Explained]:
    """The view and its generated helpers, in the order in which they are computed."""
    graph = snapshot.graph
    served = graph[name].helper_of or name
    names = [n for n in graph.order if served in graph[n].for_views]
    answer = _answer(snapshot, program, served)
    relations = _relations(program)
    found = []
    for each in names if graph[name].helper_of is None else [name]:
        view = program.usable.get(each)
        if isinstance(view, Runnable):
            # A helper is judged with the view that it serves.
            updates = _updates(program, each) if each == served else None
            item = _explain(snapshot, view, part, now, answer if each == served else None, updates)
            relation = relations.of(view)
            decision = one_late_row(snapshot, view, relation, item.example)
            chosen = "" if decision is None else f"{decision.by}: {decision.why}"
            compiled = program.views.get(each)
            sampled = compiled.sampled if compiled is not None else None
            own = tuple((n, graph[n].serves) for n in names if n != served) if each == served else ()
            cost = _together(snapshot, program, each) if any(len(whom) > 1 for _, whom in own) else None
            kept = explained_state(snapshot, program, relations, view)
            item = replace(item, relation=relation, repair=chosen, sampled=sampled, helpers=own, state=kept)
            item = replace(
                item, together=cost, alone=each in program.owning and bool(own), job=job_of_its_own(program, each)
            )
            found.append(item)
    return found


def _together(snapshot: Snapshot, program: Program, name: str) -> float | None:
    """What the view and those that read its panes cost, as a share of what they would cost by themselves."""
    from partwise.choose.covering import share_of_own
    from partwise.choose.families import family, saved
    from partwise.compile.sharing.cover import panes_of
    from partwise.ledger.records.strategies import groups_in_pane, settlements, usual_rows

    view, known = program.views[name], settlements(snapshot.r)
    rows = None if view.shape is None else usual_rows(snapshot.r, view.shape.table)
    if view.shape is None or rows is None:
        return None
    if name in program.covered and (own := panes_of(view)) is not None:
        panes = program.covered[name].helpers[0]
        counted = known.get(name)
        groups = None if counted is None else counted.groups
        ratio = own.part // panes.part
        return share_of_own(view.shape, ratio, rows, groups, usual_rows(snapshot.r, panes.name))
    others = [other.shape for other, _ in family(program, known, view).reading if other.shape is not None]
    groups = groups_in_pane(snapshot.r, snapshot.graph, name, known.get(name), rows)
    return saved([view.shape, *others], rows, groups)


def _relations(program: Program) -> Relations:
    from partwise.compile.relations import Relations

    return Relations(program)


def _updates(program: Program, name: str) -> Classified | None:
    from partwise.compile.update_class import update_class

    view = program.tables.get(name)
    tables = {table.lower(): definition for table, definition in program.tables.items()}
    return update_class(view, tables) if isinstance(view, View) else None


def _explain(
    snapshot: Snapshot,
    view: Runnable,
    part: int | None,
    now: float,
    answer: StrategyAnswer | None,
    updates: Classified | None,
) -> Explained:
    graph, facts = snapshot.graph, snapshot.facts
    table = graph[view.name]
    start = facts.start(view.name)
    built = facts.existing(view.name, -FOREVER, FOREVER)
    j = part if part is not None else built.last if built else int(now) // view.part
    # As an example serves a part in the middle of the view's life, unless it is its very first.
    begin = start if start is not None and j == start else -FOREVER
    needs = needs_of(facts, table, begin, j)
    touched = [
        (other, fed(graph[other], -FOREVER, view.name, Parts.single(j))) for other in graph.consumers.get(view.name, ())
    ]
    if table.self_references:
        touched.append((view.name, fed_self(table, Parts.single(j))))
    rule = view.start.rule if view.start.part is None else part_text(view.start.part, view.part)
    settled = "" if start is None or view.start.part is not None else f" (settled: {part_text(start, view.part)})"
    day = part_text(j, view.part)[:10]
    return Explained(
        view=view,
        start=rule + settled,
        requires=tuple(_general(item) for item in table.inputs),
        feeds=tuple(dict.fromkeys(other for other, _ in touched)),
        example=j,
        example_requires=tuple(_shown(graph, need.table, need.needed, day) for need in needs),
        example_feeds=tuple(_shown(graph, other, parts, day) for other, parts in touched if parts),
        choice=f"{answer.chosen.strategy}: {answer.chosen.why}" if answer else "",
        settled=answer.settled if answer else None,
        advice=answer.advice if answer else "",
        notes=answer.notes if answer else (),
        many=_many(view, bool(table.self_references)),
        updates=updates,
        dimensions=tuple(_dimensions(graph, table)),
        refresh=_refresh(graph, view.name),
    )


def _dimensions(graph: Graph, table: Table) -> Iterator[tuple[str, str]]:
    for name in (n for n in table.input_names if graph[n].kind == "dimension" and n not in graph.forward):
        met = [
            f"{_general(Input(item.table, item.reference))} with a changed {' and '.join(item.own)} in "
            f"{' and '.join(item.columns)}"
            for item in table.keyed_by(name)
        ]
        yield name, f"due are parts that read {', or '.join(met)}" if met else "due are all parts"


def _refresh(graph: Graph, name: str) -> str:
    """`every 10 minutes; at most 1 hour 10 minutes behind: a 1 hour, b 10 minutes`."""
    from partwise.plan import refresh

    policy = graph[name].refresh
    path = _slowest_path(graph, name)
    if not path:
        return ""
    total = f"at most {lasting(sum(late for _, late in path))} behind"
    said = f"{total}: {', '.join(f'{each} {lasting(late)}' for each, late in path)}" if len(path) > 1 else total
    return said if policy is None else f"{refresh.text(policy)}; {said}"


def _slowest_path(graph: Graph, name: str) -> list[tuple[str, float]]:
    """Views with a refresh policy between the sources and this one, by the way that takes the longest."""
    found: list[tuple[str, float]] = []
    at: str | None = name
    while at is not None:
        table = graph[at]
        above = [other for other in table.input_names if other in graph.tables]
        if table.refresh is not None and table.family not in dict(found):
            found.append((table.family, table.refresh.longest))
        at = max(above, key=lambda other: graph.behind[other], default=None)
    return found[::-1]


def _many(view: Runnable, reads_itself: bool) -> str:
    """How a step over many parts is computed."""
    if reads_itself and view.single_pass is not None and not view.checks:
        return "in one pass over the groups"
    if reads_itself:
        return "one after the other: each part reads earlier ones of its own"
    if view.single_pass is not None:
        return "in one join of rows that are near enough"
    from partwise.compile.many_parts import why_not

    reason = why_not(view.update.text)
    return "in one query" if reason is None else f"one query for each part, because {reason}"


def _general(item: Input) -> str:
    return f"{item.table} (all of it)" if item.reference is None else f"{item.table}{item.reference.text()}"


def _shown(graph: Graph, name: str, parts: Parts, day: str) -> str:
    if graph[name].kind == "dimension":
        return f"{name} (all of it)"
    return f"{name}[{parts_text(parts, graph[name].length, day)}]"


def _answer(snapshot: Snapshot, program: Program, name: str) -> StrategyAnswer | None:
    view, chosen = program.views.get(name), program.choice(name)
    if view is None or chosen is None:
        return None
    notes = program.alternative(name).notes
    if view.shape is None:
        return StrategyAnswer(chosen, "", notes)
    from partwise.ledger.records.strategies import settlements

    item = settlements(snapshot.r).get(name)
    own = item if view.is_free and item is not None and item.strategy == chosen.strategy else None
    return StrategyAnswer(_until(view, chosen, own), _advice(snapshot, program, view, chosen, item), notes, own)


def _until(view: CompiledView, chosen: Choice, item: Settlement | None) -> Choice:
    """The choice, and how long it holds if it is not for good."""
    if not view.is_free:
        return chosen
    if item is None:
        return replace(chosen, why=f"{chosen.why}, until there are rows to count")
    again = item.again or item.mark != view.mark
    return replace(chosen, why=f"{chosen.why}; counted again before the next step") if again else chosen


def _advice(snapshot: Snapshot, program: Program, view: CompiledView, chosen: Choice, item: Settlement | None) -> str:
    """Where today's counts speak for another strategy than the one that was requested or settled."""
    from partwise.choose.families import chosen as cheapest
    from partwise.choose.families import family
    from partwise.ledger.records.strategies import groups_in_pane, settlements, usual_rows

    assert view.shape is not None
    rows = usual_rows(snapshot.r, view.shape.table)
    if rows is None or (view.is_free and item is None):
        return ""
    groups = groups_in_pane(snapshot.r, snapshot.graph, view.name, item, rows)
    better = cheapest(view, family(program, settlements(snapshot.r), view), rows, groups)
    if better.strategy == chosen.strategy:
        return ""
    advice = f"By the counts in the ledger {better.strategy} would cost less ({better.why})."
    return f"{advice} To have it: strategy: {better.strategy}"
