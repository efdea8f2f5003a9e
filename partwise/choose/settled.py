"""The program as it runs here: windows kept in the way that the ledger has settled.

Files say what a view means; how a window is kept depends on how many rows and groups there are, which only the ledger
knows. Nothing here asks the world: settlements go in, a program comes out.
"""

from __future__ import annotations

from collections.abc import Mapping

from partwise.choose.window import has_grown
from partwise.compile.fingerprint import fingerprint
from partwise.compile.model import Choice
from partwise.compile.program import Alternative, CompiledView, KeptWay, Program
from partwise.compile.table import to_table
from partwise.ledger.catalog import settled as catalogued
from partwise.ledger.database import Reading
from partwise.ledger.read.part_facts import PartsToCome
from partwise.ledger.records.kept_states import KeptChoice
from partwise.ledger.records.strategies import Settlement, Settlements, is_built, kept_as, settlements, usual_rows
from partwise.tables import Graph

#: Why a strategy is what it is, where nobody has counted. The first is read only after the line has gone.
ASKED = "it was requested by a line that is gone"
FOUND = "it was so when it was looked at, and parts had been built"


def settled(program: Program, known: Settlements) -> Program:
    """This program with windows kept as the ledger says.

    One that was settled for another query stays until it is settled again: nothing is gained by another way meanwhile.
    Helpers that were built for a view alone stay its own until its query means something else.
    """
    chosen = program.choosing({view: Choice(item.strategy, item.why) for view, item in known.items()})  # type: ignore[arg-type]
    if known.covers:
        from partwise.choose.covering import as_covered

        chosen = chosen.with_covered(as_covered(program, known.covers))
    chosen = chosen.with_own(view for view, mark in known.owners.items() if _own_mark(chosen, view) == mark)
    return with_kept_states(chosen, known.kept) if known.kept or chosen.kept else chosen


def with_kept_states(program: Program, known: Mapping[str, KeptChoice]) -> Program:
    """With the outputs kept that were chosen to be, of queries that are still the same."""
    from partwise.compile.relations import Relations
    from partwise.compile.state.generate import state_mark, with_kept

    kept: dict[str, KeptWay] = {}
    tables, relations = {name.lower(): table for name, table in program.tables.items()}, None
    for name, choice in known.items() if program.keeping else ():
        before, view = program.kept.get(name), program.views.get(name)
        if before is not None and before.chosen == choice.what:
            kept[name] = before
        elif view is not None and name in program.usable and state_mark(view) == choice.mark:
            relations = relations or Relations(program.with_kept({}))
            if way := with_kept(view, relations, tables, choice.join, choice.groups, choice.until):
                kept[name] = KeptWay(choice.what, way)
    return program.with_kept(kept)


def _own_mark(program: Program, view: str) -> str | None:
    """The fingerprint of a view that shares no helpers; None if none of them could be shared."""
    compiled = program.views.get(view)
    if compiled is None or not compiled.own:
        return None
    way = program.own_way(view)
    lower = {name.lower(): table for name, table in program.tables.items()}
    return fingerprint(way.table, {**lower, **{helper.name.lower(): helper for helper in way.helpers}})


def too_late_to_share(r: Reading, graph: Graph, program: Program) -> frozenset[str]:
    """Views that cannot join what others share, because they would have other parts by it than by themselves.

    A shared helper began where its first reader needed it, and loses parts that none of its readers needs any more. Who
    comes later, and would begin earlier or later by itself, keeps helpers of its own.
    """
    found = set()
    tables = program.graph().tables
    for view, compiled in program.views.items():
        if view not in tables or not compiled.own or view in program.owning:
            continue
        known = graph.tables.get(view)
        if known is not None and known.fingerprint == tables[view].fingerprint:
            continue  # it reads them already
        pairs = list(zip(compiled.alternatives, compiled.own, strict=True))
        if view in program.covered:
            pairs.append((program.covered[view], next(own for own in compiled.own if own.strategy == "merge")))
        if not all(_begins_alike(r, program, *ways) for ways in pairs):
            found.add(view)
    return frozenset(found)


def _begins_alike(r: Reading, program: Program, shared: Alternative, own: Alternative) -> bool:
    """Whether what there is of the shared helpers has the parts that the view's own would have."""
    facts, known = PartsToCome(r), {**program.usable, **{helper.name: helper for helper in own.helpers}}
    for helper, alone in zip(shared.helpers, own.helpers, strict=True):
        facts.expect(to_table(alone, known))
        now, begins = catalogued(r, helper.name), facts.start(alone.name)
        if now.floor is not None:
            return False
        if now.start is None or (now.start == begins and helper.part == alone.part):
            continue
        # Panes of a shorter time may have begun earlier: the longer ones begin where all of theirs are there.
        if helper.part == alone.part or begins is None or now.start > begins * (alone.part // helper.part):
            return False
    return True


def to_record(program: Program, known: Mapping[str, Settlement], kept: Mapping[str, str]) -> list[Settlement]:
    """What becomes known with this program: what their authors ask for, so that it stays when they no longer do,
    and how views are kept (`kept`, of those with parts) that were built before strategies were settled.
    """
    found = []
    for view in windows(program):
        if not view.is_free:
            item = Settlement(view.name, view.written.strategy, view.mark, ASKED)
        elif view.name not in known and view.name in kept:
            item = Settlement(view.name, kept[view.name], view.mark, FOUND)
        else:
            continue
        before = known.get(view.name)
        if before is None or (before.strategy, before.mark) != (item.strategy, item.mark):
            found.append(item)
    return found


def as_kept(r: Reading, graph: Graph, program: Program, known: Mapping[str, Settlement]) -> dict[str, str]:
    """How the ledger's tables keep windows of which it does not say so, where that is not what the query alone says.

    They were built before strategies were settled, or requested by a line that is gone: nothing is built again for that.
    """
    found = {}
    for view in windows(program):
        chosen = program.choice(view.name)
        if view.is_free and view.name not in known and view.name in graph.tables and chosen:
            way = kept_as(graph, view.name)
            if way != chosen.strategy and view.can(way) and is_built(r, graph, view.name):
                found[view.name] = way
    return found


def to_count_again(r: Reading, program: Program) -> dict[str, tuple[int | None, int]]:
    """Windows whose input has grown or shrunk since they were settled: rows in a part of it then and now, by view."""
    known, found = settlements(r), {}
    for view in windows(program):
        item = known.get(view.name)
        if item is None or item.again or item.mark != view.mark or not view.is_free or view.shape is None:
            continue
        now = usual_rows(r, view.shape.table)
        if now is not None and has_grown(item.rows, now):
            found[view.name] = (item.rows, now)
    return found


def windows(program: Program) -> list[CompiledView]:
    """Usable views that can be kept in several ways, in the order in which they are defined."""
    views = (program.views[name] for name in program.tables if name in program.views and name in program.usable)
    return [view for view in views if view.shape is not None]
