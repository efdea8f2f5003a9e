"""Definitions as they run here: windows kept in the way that the ledger has settled.

Files say what a view means; how a window is kept depends on how many rows and groups there are, which only the ledger
knows. Nothing here asks the world: settlements go in, definitions come out.
"""

from __future__ import annotations

from collections.abc import Mapping

from partwise.choose.window import has_grown
from partwise.compile.model import Choice
from partwise.definitions.definitions import Definitions, View
from partwise.ledger.database import Reading
from partwise.ledger.records.strategies import Settlement, is_built, kept_as, settlements, usual_rows
from partwise.tables import Graph

#: Why a strategy is what it is, where nobody has counted. The first is read only after the line has gone.
ASKED = "it was asked for by a line that is gone"
FOUND = "it was so when it was looked at, and parts had been built"


def settled(written: Definitions, known: Mapping[str, Settlement]) -> Definitions:
    """These definitions with windows kept as the ledger says.

    One that was settled for another query stays until it is settled anew: nothing is gained by another way meanwhile.
    """
    return written.with_strategies(
        {view: Choice(item.strategy, item.why) for view, item in known.items() if view in written.tables}  # type: ignore[arg-type]
    )


def to_record(written: Definitions, known: Mapping[str, Settlement], kept: Mapping[str, str]) -> list[Settlement]:
    """What becomes known with these definitions: what their authors ask for, so that it stays when they no longer do,
    and how views are kept (`kept`, of those with parts) that were built before strategies were settled.
    """
    found = []
    for view in windows(written):
        if view.strategy != "auto":
            item = Settlement(view.name, view.strategy, view.mark, ASKED)
        elif view.name not in known and view.name in kept:
            item = Settlement(view.name, kept[view.name], view.mark, FOUND)
        else:
            continue
        before = known.get(view.name)
        if before is None or (before.strategy, before.mark) != (item.strategy, item.mark):
            found.append(item)
    return found


def as_kept(r: Reading, graph: Graph, written: Definitions, known: Mapping[str, Settlement]) -> dict[str, str]:
    """How the ledger's tables keep windows of which it does not say so, where that is not what the query alone says.

    They were built before strategies were settled, or asked for by a line that is gone: nothing is built again for that.
    """
    found = {}
    for view in windows(written):
        if view.strategy == "auto" and view.name not in known and view.name in graph.tables and view.chosen:
            way = kept_as(graph, view.name)
            if way != view.chosen.strategy and view.way(way) is not None and is_built(r, graph, view.name):
                found[view.name] = way
    return found


def to_count_again(r: Reading, definitions: Definitions) -> dict[str, tuple[int | None, int]]:
    """Windows whose input has grown or shrunk since they were settled: rows in a part of it then and now, by view."""
    known, found = settlements(r), {}
    for view in windows(definitions):
        item = known.get(view.name)
        if item is None or item.again or item.mark != view.mark or view.strategy != "auto" or view.shape is None:
            continue
        now = usual_rows(r, view.shape.table)
        if now is not None and has_grown(item.rows, now):
            found[view.name] = (item.rows, now)
    return found


def windows(written: Definitions) -> list[View]:
    """Usable views that can be kept in several ways."""
    usable = written.usable
    return [v for name, v in written.tables.items() if isinstance(v, View) and v.variants and name in usable]
