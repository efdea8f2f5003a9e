"""Windows that can read the same panes: how they are kept is chosen together, because panes are paid for once.

A view alone may be cheaper without panes, and ten of them together much cheaper with. The best choice for all is found
exactly: for each set of panes that could be there (none, those that are merged, those that are added and subtracted, both)
every view takes its cheapest way, and the cheapest sum counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from partwise.choose.window import by_counts, costs_of, panes_made
from partwise.compile.model import Choice, Strategy, WindowShape
from partwise.compile.program import CompiledView, Program
from partwise.ledger.records.strategies import Settlement

#: Strategies that read panes.
PANES: tuple[Strategy, ...] = ("merge", "subtract")


@dataclass(frozen=True)
class Family:
    """Other views that can read the panes of a view: those of which nobody has settled how they are kept, with their
    shapes, and those that read them by now, with the strategy."""

    open: tuple[CompiledView, ...] = ()
    reading: tuple[tuple[CompiledView, Strategy], ...] = ()

    @property
    def paid(self) -> frozenset[Strategy]:
        return frozenset(strategy for _, strategy in self.reading)


def family(program: Program, known: dict[str, Settlement], view: CompiledView) -> Family:
    undecided, reading = [], []
    for other in program.views.values():
        if other is view or view.name in program.owning or not _share(program, view, other):
            continue
        choice, item = program.choice(other.name), known.get(other.name)
        decided = not other.is_free or (item is not None and item.mark == other.mark)
        if not decided:
            undecided.append(other)
        elif choice is not None and choice.strategy in PANES:
            reading.append((other, choice.strategy))
    return Family(tuple(undecided), tuple(reading))


def _share(program: Program, one: CompiledView, other: CompiledView) -> bool:
    if other.shape is None or other.name in program.owning or other.name not in program.usable:
        return False
    return not _panes(one).isdisjoint(_panes(other))


def _panes(view: CompiledView) -> set[str]:
    """Names of shared helpers that are read from the source: what merging reads."""
    merged = next((way for way in view.alternatives if way.strategy == "merge"), None)
    return {h.name for h in merged.helpers if h.meaning is not None and h.initialize is None} if merged else set()


def chosen(view: CompiledView, others: Family, rows: int, groups: int | None) -> Choice:
    """The cheapest way to keep a window, with all that can read its panes in view."""
    assert view.shape is not None
    alone = by_counts(view.shape, rows, groups)
    if view.shape.counted != "merge" or not (others.open or others.reading):
        return alone
    shapes = [view.shape, *(other.shape for other in others.open if other.shape is not None)]
    best = together(shapes, rows, groups, others.paid)[0]
    if best == alone.strategy or best not in PANES:
        return (
            alone
            if best == alone.strategy
            else Choice(best, "reading rows costs less than panes, for all that could share them")
        )
    names = [other.name for other, _ in others.reading] or [other.name for other in others.open]
    return Choice(best, f"its panes are shared with {_listed(names)}: they are paid for once")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def together(
    shapes: Sequence[WindowShape], rows: int, groups: int | None, paid: Collection[Strategy] = ()
) -> tuple[Strategy, ...]:
    """The strategy of each window. `paid`: panes that are there in any case."""
    return min(_cases(shapes, rows, groups, frozenset(paid)), key=lambda case: case[0])[1]


def saved(shapes: Sequence[WindowShape], rows: int, groups: int | None) -> float:
    """What these windows cost together, as a share of what they would cost with helpers of their own."""
    alone = sum(min(costs_of(shape, rows, groups).values()) / shape.per_slide for shape in shapes)
    return min(cost for cost, _ in _cases(shapes, rows, groups, frozenset())) / alone


def _cases(
    shapes: Sequence[WindowShape], rows: int, groups: int | None, paid: frozenset[Strategy]
) -> Iterator[tuple[float, tuple[Strategy, ...]]]:
    """For each set of panes: the cost of a pane's time, and the cheapest way of each view."""
    made = min(panes_made(shape, rows, groups) for shape in shapes)
    for there in (frozenset(), frozenset(["merge"]), frozenset(["subtract"]), frozenset(PANES)):
        if paid <= there:
            found = [_cheapest(shape, rows, groups, there) for shape in shapes]
            yield len(there - paid) * made + sum(cost for cost, _ in found), tuple(strategy for _, strategy in found)


def _cheapest(shape: WindowShape, rows: int, groups: int | None, there: Collection[str]) -> tuple[float, Strategy]:
    ways: list[tuple[float, Strategy]] = []
    for strategy, cost in costs_of(shape, rows, groups).items():
        if strategy not in PANES:
            ways.append((cost / shape.per_slide, strategy))
        elif strategy in there:
            ways.append((cost / shape.per_slide - panes_made(shape, rows, groups), strategy))
    return min(ways, key=lambda way: way[0])
