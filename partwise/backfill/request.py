"""From what somebody typed to parts by table, or one clear sentence why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from partwise.backfill.earlier import Earlier, earlier
from partwise.backfill.scope import closure
from partwise.parts import FOREVER, BadTime, Parts, Range, duration_text, parse_part, part_text, range_text
from partwise.plan.next import Next, needs_of, next_text, parts_text, through_helpers
from partwise.plan.reach import PartFacts, first_part
from partwise.tables import Graph


class BadRange(Exception):
    """A range that cannot be backfilled; the message is meant for people."""


@dataclass(frozen=True)
class World:
    """What deciding needs to know of the ledger, from one snapshot. `lowest`: parts below it are frozen."""

    graph: Graph
    existing: Callable[[str, int, int], Parts]
    start: Callable[[str], int | None]
    lowest: Callable[[str], int]
    floor: Callable[[str], int | None]
    due: Callable[[str], Parts]
    now: float
    lost: Callable[[str], Parts] = lambda table: Parts()


@dataclass(frozen=True)
class Asked:
    """What a backfill is about.

    `requested` are recomputed even if they are fresh; `first` are due parts of other tables that those need.
    `starts` are views that begin earlier from now on.
    """

    table: str
    span: Range
    requested: Mapping[str, Parts]
    first: Mapping[str, Parts] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def scope(self) -> dict[str, Parts]:
        found = dict(self.requested)
        for name, parts in self.first.items():
            found[name] = found.get(name, Parts()) | parts
        return found


def parse(text: str, length: int, first: int | None, last: int | None) -> Range:
    """`A..B`, one part, `A..` (up to the newest part), `..B` (from the first) or `..` (everything). Raises BadRange."""
    low, dots, high = (word.strip() for word in text.partition(".."))
    if dots and not low and not high and first is not None and last is not None:
        return Range(first, last)
    if not low and not high and not (dots and first is None):
        raise BadRange("RANGE is empty; write A..B (both included), one part, or A.. for everything from A on.")
    if dots and not low and first is None:
        raise BadRange(f"'{text}' has no beginning, and there is no first part yet to begin with.")
    try:
        lo = first if not low else parse_part(low, length)
        hi = (parse_part(high, length) if high else last) if dots else lo
    except BadTime as why:
        raise BadRange(f"RANGE: {why}.".replace("?.", "?")) from None
    assert lo is not None
    hi = lo if hi is None else hi
    if lo > hi and not high:
        return Range(lo, lo)  # after the newest part: what is wrong with it is said later
    if lo > hi and not low:
        raise BadRange(
            f"RANGE: '{text}' ends before the first part, which is {part_text(lo, length)}. "
            "A view starts earlier where a range says from where on: A..B."
        )
    if lo > hi:
        raise BadRange(f"RANGE: '{text}' is written backwards; did you mean {high}..{low}?")
    return Range(lo, hi)


def ask(world: World, name: str, span: Range, upstream: bool = False) -> Asked:
    """Which parts a backfill of `span` means. Raises BadRange if it means none."""
    view, start = world.graph[name], world.start(name)
    if view.helper_of is not None:
        raise BadRange(_not_a_helper(world, name, span))
    if span.lo * view.length > world.now:
        raise BadRange(
            f"{_shown(world, name, span)} is in the future: {part_text(int(world.now) // view.length, view.length)} is now."
        )
    moved = Earlier()
    if start is not None and span.lo < start and world.floor(name) is None:
        moved = earlier(world.graph, world, world.floor, name, span.lo, upstream)
    there = world.existing(name, span.lo, span.hi) | world.due(name).within(span.lo, span.hi)
    parts = there.within(world.lowest(name), FOREVER) | moved.follows(name)
    if not parts:
        raise BadRange(_why_nothing(world, name, span, upstream))
    requested = {name: parts}
    for other in moved.starts:
        requested[other] = requested.get(other, Parts()) | moved.follows(other)
    needs = required(world, requested, through_itself=False)
    if upstream:
        for other, wanted in needs.items():
            known = world.existing(other, wanted.first, wanted.last) | world.due(other)
            if found := (wanted & known).within(world.lowest(other), FOREVER):
                requested[other] = requested.get(other, Parts()) | found
    first: dict[str, Parts] = {}
    for other, wanted in required(world, requested).items():
        table, waiting = world.graph[other], (wanted & world.due(other)) - requested.get(other, Parts())
        if other == name and table.repair == "manual":
            continue  # nobody requested earlier ones
        if waiting and name in table.serves and table.repair == "manual":
            # A view that people repair, and the helpers that were generated for it, are one thing to them.
            requested[other] = requested.get(other, Parts()) | waiting
        elif waiting and table.refresh is not None:
            # What is requested does not wait for refresh policies, neither does what it needs.
            requested[other] = requested.get(other, Parts()) | waiting
        elif waiting:
            first[other] = waiting
    return Asked(name, span, requested, first, moved.starts, tuple(_notes(world, name, span, parts, moved)))


def served(graph: Graph, facts: PartFacts, helper: str, span: Range) -> tuple[str, Parts]:
    """The view that a helper serves, and the parts of it that these parts of the helper reach.

    To people the two are one thing: they ask for parts of the view, and its helpers come along.
    """
    view = graph[helper].helper_of
    assert view is not None
    return view, closure(graph, facts.start, facts.existing, {helper: Parts.of(span)}).get(view, Parts())


def _not_a_helper(world: World, name: str, span: Range) -> str:
    view, parts = served(world.graph, world, name, span)
    reads = f", for example {_shown(world, view, Range(parts.first, parts.last))}" if parts else ""
    return f"{name} is a helper of {view}: backfill {view}{reads}. With --upstream its helpers are computed again, too."


def required(world: World, wanted: Mapping[str, Parts], through_itself: bool = True) -> dict[str, Parts]:
    """What these parts read of views, directly and through others.

    `through_itself`: also by way of a view's own earlier parts, which are all of its history.
    """
    graph, need, found = world.graph, dict(wanted), dict[str, Parts]()
    for name in reversed([n for n in graph.order if n in graph.upstream(wanted)]):
        parts, view = need.get(name), graph[name]
        if not parts or view.kind != "view":
            continue
        start = world.start(name)
        if through_itself and view.self_references:
            parts = Parts.of((parts.first if start is None else min(start, parts.first), parts.last))
            found[name] = parts
        for item in dict.fromkeys((*view.initial, *view.inputs)):
            if item.reference is None or item.table == name or graph[item.table].kind != "view":
                continue
            reads = Parts.of(*((item.reference.lo.at(a), item.reference.hi.at(b)) for a, b in parts.ranges))
            need[item.table] = need.get(item.table, Parts()) | reads
            found[item.table] = found.get(item.table, Parts()) | reads
    return found


def _notes(world: World, name: str, span: Range, parts: Parts, moved: Earlier) -> list[str]:
    length, notes = world.graph[name].length, []
    for other, start in moved.starts.items():
        if world.graph[other].helper_of is None:
            before = part_text(world.start(other) or 0, world.graph[other].length)
            notes.append(f"{other} will start at {part_text(start, world.graph[other].length)} instead of {before}.")
    for why, left in _left_out(world, name, Parts.of(span) - parts, moved).items():
        each = "is" if left.count == 1 else "are"
        notes.append(f"{parts_text(left, length)} {each} left out: {why}.")
    return notes


def _left_out(world: World, name: str, left: Parts, moved: Earlier) -> dict[str, Parts]:
    """Parts that were requested and are not in it, by the reason."""
    start, found = moved.starts.get(name, world.start(name)), dict[str, Parts]()
    limits = (
        ("before the start", start),
        ("expired", world.floor(name)),
        ("inputs have expired", world.lowest(name)),
        ("not built yet", FOREVER),
    )
    for why, limit in limits:
        if limit is not None and (out := left.within(-FOREVER, limit - 1)):
            found[why] = out
            left -= out
    return found


def _why_nothing(world: World, name: str, span: Range, upstream: bool) -> str:
    """The range means no part: the one reason that matters most."""
    view, start, shown = world.graph[name], world.start(name), _shown(world, name, span)
    lowest, floor = world.lowest(name), world.floor(name)
    if view.rolling and floor is not None and span.hi < floor:
        return (
            f"{name} is rolling: it holds what its windows give now, as of {_part(world, name, floor)}, and no earlier part. "
            f"Late rows reach it by themselves; `partwise rebuild {name}` computes it again."
        )
    if floor is not None and span.hi < floor:
        return (
            f"{shown} is expired: it was removed by `keep`; the first part that is kept is {_part(world, name, floor)}."
        )
    if start is not None and start <= span.hi < lowest:
        return (
            f"{shown} can no longer be computed: what it reads is expired. "
            f"The first part that can is {_part(world, name, lowest)}."
        )
    if start is not None and span.lo < start:
        if view.start.rule == "at":
            return (
                f"{shown} lies before the start of {name}, and its definition says `start: {_part(world, name, start)}`; "
                "change it there."
            )
        upper = [t for t in view.input_names if world.graph[t].kind == "view" and world.graph[t].helper_of is None]
        way = f" If {' and '.join(upper)} could start earlier: --upstream." if upper and not upstream else ""
        return (
            f"{shown} lies before anything that it could be computed from: "
            f"{name} starts at {_part(world, name, start)}, and {_first_inputs(world, name)}.{way}"
        )
    if start is None and (start := first_part(view, world)) is None:
        return (
            f"{name} has no parts yet, and cannot have any: nothing that it reads exists. `partwise plan` shows more."
        )
    needs = needs_of(world, view, start, span.lo)
    lacking = [n for n in through_helpers(world.graph, world, needs) if n.missing and n.table != name]
    waits = next_text(world.graph, Next(name, span.lo, tuple(lacking)))
    newest = world.existing(name, -FOREVER, FOREVER)
    last = f" Its newest part is {_part(world, name, newest.last)}." if newest else ""
    return f"There is no part of {name} in {range_text(span, view.length)} (parts of {duration_text(view.length)}): {waits}.{last}"


def _first_inputs(world: World, name: str) -> str:
    said = []
    for other in world.graph[name].input_names:
        table = world.graph[other]
        if table.kind == "dimension":
            continue
        there = world.existing(other, -FOREVER, FOREVER)
        said.append(f"{other} at {part_text(there.first, table.length)}" if there else f"{other} has no parts")
    return "what it reads begins later than it would need (" + ", ".join(said) + ")"


def _part(world: World, name: str, p: int) -> str:
    return part_text(p, world.graph[name].length)


def _shown(world: World, name: str, span: Range) -> str:
    return f"{name}[{range_text(span, world.graph[name].length)}]"
