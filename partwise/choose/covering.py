"""Which views read panes that hold more than they need, instead of having panes of their own.

A table more costs as much as reading millions of rows of one that is there, so whoever comes reads what covers it. What was
built is left alone: that holds for views that are new, or mean something else than before.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from partwise.choose.window import SCATTERED, costs_of, panes_made
from partwise.compile.model import Choice, WindowShape
from partwise.compile.program import Alternative, CompiledView, Program, Runnable
from partwise.compile.sharing.cover import Cover, cover, covered, panes_of
from partwise.tables import Graph

#: So many times as many panes may be read for a window as by itself.
MOST_PANES = 120


def as_covered(program: Program, covers: Mapping[str, str]) -> dict[str, Alternative]:
    """How views read the panes that the ledger says. Of those that mean something else by now it says nothing."""
    found = {}
    for name, text in covers.items():
        view = program.views.get(name)
        way = None if view is None else covered(view, Cover.from_json(text))
        if way is not None:
            found[name] = way
    return found


def with_covers(graph: Graph, program: Program) -> tuple[Program, dict[str, str]]:
    """The program in which views that are new to the ledger (`graph`) read what covers them, and what it has to know."""
    new = to_cover(graph, program)
    return program.with_covered({**program.covered, **as_covered(program, new)}) if new else program, new


def to_cover(graph: Graph, program: Program) -> dict[str, str]:
    views = [(panes, view) for view in program.views.values() if (panes := _panes(program, view)) is not None]
    if len(views) < 2:
        return {}
    tables = program.graph().tables
    found: dict[str, str] = {}
    covering: dict[object, list[CompiledView]] = {}  # whoever is covered covers nobody: what covers it does
    for own, view in sorted(views, key=lambda each: _fineness(*each)):
        if view.name in program.covered:
            continue
        known = graph.tables.get(view.name)
        is_new = known is None or known.fingerprint != tables[view.name].fingerprint
        alike = covering.setdefault(_held(view), [])
        wanted: list[Cover] = []
        if is_new and own.name not in graph.tables:
            wanted = [each for other in alike if (each := cover(view, other)) is not None]
            wanted = [each for each in wanted if own.part // each.part <= MOST_PANES]
        if wanted:
            found[view.name] = min(wanted, key=lambda each: _rank(graph, each)).to_json()
        else:
            alike.append(view)
    return found


def _held(view: CompiledView) -> tuple[str, frozenset[str]]:
    """Panes of other tables, or of other aggregates, need not be looked at."""
    assert view.panes is not None
    return view.panes.table, frozenset(cell.text for cell in view.panes.cells)


def _fineness(own: Runnable, view: CompiledView) -> tuple[int, int, int]:
    """Nothing covers what comes before it in this order, but for panes that hold the same."""
    assert view.panes is not None
    return own.part, -len(view.panes.keys), len(view.panes.where)


def with_cover(
    choice: Choice, shape: WindowShape, ratio: int, rows: int, groups: int | None, base: int | None, paid: bool
) -> tuple[Choice, bool]:
    """How a view is kept that may read panes of others, and whether it does. `choice`: how it would be by itself.

    `ratio` of these panes make one of its own; they have `base` rows, if somebody has counted. Unless they are `paid` for,
    they cost what panes cost.
    """
    cost = _cost(shape, ratio, rows, groups, base) + (0 if paid else panes_made(shape, rows, groups) * shape.per_slide)
    if cost <= dict[str, int](costs_of(shape, rows, groups).items()).get(choice.strategy, inf):
        return Choice("merge", f"it reads {shape.panes * ratio:,} panes that others need as well"), True
    return choice, choice.strategy != "merge"


def share_of_own(shape: WindowShape, ratio: int, rows: int, groups: int | None, base: int | None) -> float:
    """What a view costs that reads panes of others, as a share of what it would cost by itself."""
    return _cost(shape, ratio, rows, groups, base) / max(1, min(costs_of(shape, rows, groups).values()))


def _cost(shape: WindowShape, ratio: int, rows: int, groups: int | None, base: int | None) -> float:
    in_pane = rows * shape.ratio
    held = base if base is not None else max(groups or 0, in_pane // ratio // 10)
    read = 1 + SCATTERED * min(1.0, held * ratio / max(1, in_pane))
    return read * shape.panes * ratio * held


def _rank(graph: Graph, each: Cover) -> tuple[bool, int, int, str]:
    """What is there first, then what has the fewest rows."""
    return each.name not in graph.tables, len(each.groups), -each.part, each.name


def _panes(program: Program, view: CompiledView) -> Runnable | None:
    """The panes of a view that merges them and may share."""
    choice = program.choice(view.name)
    if choice is None or choice.strategy != "merge" or view.name not in program.usable or view.name in program.owning:
        return None
    return panes_of(view)
