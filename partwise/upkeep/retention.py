"""How long parts are kept: `keep` of sources and views, and for generated helpers as long as something may still read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from partwise.compile.program import ProgramTable, Runnable
from partwise.definitions import Source
from partwise.parts import FOREVER, duration_text
from partwise.tables import Graph, Table

_MICROS = 1_000_000


@dataclass(frozen=True)
class RetentionFacts:
    """What deciding needs to know of the ledger. `watermark`: the newest event time of a source, in microseconds."""

    newest: Callable[[str], int | None]
    start: Callable[[str], int | None]
    floor: Callable[[str], int | None]
    watermark: Callable[[str], int | None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Parts below `floor` may go, as far as `keep` and lateness are concerned."""

    floor: int
    why: str


def wanted_floors(graph: Graph, definitions: Mapping[str, ProgramTable], known: RetentionFacts) -> dict[str, Wanted]:
    """Tables of which old parts are not wanted any more."""
    found: dict[str, Wanted] = {}
    for name in graph.order:
        table, newest = definitions.get(name), known.newest(name)
        if isinstance(table, Runnable) and table.beside and table.kept_for is None and table.helper_of is not None:
            # A sample is ahead of its view, and serves queries as long as the view has the part.
            served = known.newest(table.helper_of)
            newest = None if newest is None or served is None else min(newest, served)
        if isinstance(table, Source | Runnable) and table.keep is not None and newest is not None:
            found[name] = Wanted(_by_age(newest, table.keep, table.part), _why(table, table.keep))
    late = _changeable(graph, definitions, known)
    for name in reversed(graph.order):
        if (
            _is_read_by_its_view(definitions.get(name), graph[name])
            and name not in found
            and known.newest(name) is not None
        ):
            floor = _by_readers(graph, graph[name], known, found, late)
            if floor > -FOREVER:
                found[name] = Wanted(
                    floor, f"no part of {' or '.join(graph[name].serves)} that may still change reads it"
                )
    return found


def _why(table: Source | Runnable, keep: int) -> str:
    kept = isinstance(table, Runnable) and bool(table.keeps)
    return f"{'kept for late rows' if kept else 'keep'}: {duration_text(keep)}"


def _is_read_by_its_view(definition: ProgramTable | None, table: Table) -> bool:
    """A helper that is there for its view alone. Samples beside it serve queries, as long as the view has the part."""
    return table.helper_of is not None and not (isinstance(definition, Runnable) and definition.beside)


def _by_age(newest: int, keep: int, length: int) -> int:
    """Age counts from the end of the newest part: a table that nothing arrives for loses nothing."""
    return min(newest, -((keep - (newest + 1) * length) // length))


def _changeable(graph: Graph, definitions: Mapping[str, ProgramTable], known: RetentionFacts) -> dict[str, int]:
    """The first part of each table that rows within the accepted lateness can still change.

    Nothing of a source changes below its floor: rows for expired parts are quarantined.
    A dimension may change at any time, and all that was computed with it.
    """
    found: dict[str, int] = {}
    for name in graph.order:
        table, definition = graph[name], definitions.get(name)
        if table.kind == "source":
            mark = known.watermark(name)
            accept = definition.late.accept if isinstance(definition, Source) else None
            floor, accepted = known.floor(name), -FOREVER
            if mark is not None and accept is not None:
                accepted = (mark // _MICROS - accept) // table.length
            found[name] = accepted if floor is None else max(accepted, floor)
        elif table.kind == "dimension":
            found[name] = -FOREVER
        else:
            found[name] = min((_first_fed(table, other, found[other]) for other in table.input_names), default=-FOREVER)
    return found


def _first_fed(view: Table, other: str, first: int) -> int:
    """The first part of the view that reads a part of the other table from `first` on."""
    if first <= -FOREVER:
        return -FOREVER
    items = [item for item in (*view.initial, *view.inputs) if item.table == other]
    return min(-FOREVER if i.reference is None else i.reference.hi.first_reaching(first) for i in items)


def _by_readers(
    graph: Graph, helper: Table, known: RetentionFacts, found: Mapping[str, Wanted], late: Mapping[str, int]
) -> int:
    """The first part that is read by a part which may still be computed again."""
    limit = FOREVER
    readers = [graph[name] for name in graph.consumers.get(helper.name, ())]
    for view in (*readers, *([helper] if helper.self_references else [])):
        first = late[view.name]
        if view is not helper:
            kept = (known.floor(view.name), found[view.name].floor if view.name in found else None)
            first = max([first, *(floor for floor in kept if floor is not None)])
        start = known.start(view.name)
        if first <= -FOREVER or (start is not None and first <= start):
            return -FOREVER
        for item in view.inputs:
            if item.table == helper.name:
                limit = min(limit, -FOREVER if item.reference is None else item.reference.lo.at(first))
    return -FOREVER if limit >= FOREVER else limit
