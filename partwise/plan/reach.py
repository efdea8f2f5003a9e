"""How far things reach: what a change touches, what can be built, where a view starts."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Protocol

from partwise.parts import FOREVER, Parts, Range, Reference
from partwise.tables import DIMENSION_PART, Input, Table


class PartFacts(Protocol):
    """What is known of the parts of tables, from one snapshot.

    `start` is settled: the first part of a view, the lowest part that a source ever had. It is not the first
    existing part, which retention moves; None means that the table never had a part.
    """

    def existing(self, table: str, lo: int, hi: int, /) -> Parts: ...

    def start(self, table: str, /) -> int | None: ...

    def lost(self, table: str, /) -> Parts:
        """Parts that existed, and are being made again."""
        ...


class _MadeAgain:
    """The same, with what is being made again: where a view begins does not depend on which part comes back first."""

    def __init__(self, facts: PartFacts) -> None:
        self._facts = facts

    def existing(self, table: str, lo: int, hi: int) -> Parts:
        return self._facts.existing(table, lo, hi) | self._facts.lost(table).within(lo, hi)

    def start(self, table: str) -> int | None:
        return self._facts.start(table)

    def lost(self, table: str) -> Parts:
        return self._facts.lost(table)


EVERYTHING = Parts.of((-FOREVER, FOREVER))
#: Parts without rows between the start of a view and the first rows that make the start a mistake, not just quiet times.
FAR = 1_000


def fed(view: Table, start: int, table: str, changed: Parts) -> Parts:
    """Parts of the view that read `changed` parts of another table: by INITIALIZE at its start, by UPDATE after it."""
    first = _feeds(view.initial, table, changed).within(start, start)
    return first | _feeds(view.inputs, table, changed).within(start + 1, FOREVER)


def _feeds(inputs: Iterable[Input], table: str, changed: Parts) -> Parts:
    found = Parts()
    for item in inputs:
        if item.table == table:
            found |= EVERYTHING if item.reference is None else item.reference.feeds_parts(changed)
    return found


def fed_self(view: Table, changed: Parts) -> Parts:
    """Later parts of the view that read `changed` parts of the view itself."""
    found = Parts()
    for reference in view.self_references:
        found |= reference.feeds_parts(changed)
    return found


def self_closure(view: Table, parts: Parts, last: int) -> Parts:
    """Everything up to `last` that depends on `parts` through the view's references to itself.

    Exact: a part that is left out goes on, and one that is in waits, perhaps for ever.
    """
    return fed_self(view, _with_followers(view.self_references, parts, last)).within(-FOREVER, last)


def _with_followers(references: Iterable[Reference], parts: Parts, last: int) -> Parts:
    """`parts` and all that follows them up to `last`: upwards, so that each part is met once.

    Each part reads earlier ones only. So as soon as consecutive parts are as many as the shortest step back is
    long, everything after them follows. Only sparse chains (such as j-7) are walked link by link.
    """
    references = tuple(references)
    shortest = min((-r.hi.plus for r in references), default=FOREVER)
    found: list[Range] = []
    begin = end = -2 * FOREVER  # the consecutive parts found last
    heap = [*parts.ranges]  # sorted, so a heap
    while heap:
        lo, hi = heappop(heap)
        lo, hi = max(lo, end + 1), min(hi, last)
        if lo > hi:
            continue
        begin, end = begin if lo == end + 1 else lo, hi
        if end - begin + 1 >= shortest:
            found.append(Range(begin, last))
            break
        found.append(Range(lo, hi))
        for reference in references:
            heappush(heap, reference.feeds_range(Range(lo, hi)))
    return Parts.of(*found)


def with_predecessors(table: Table, start: int, ready: Parts, built: Parts) -> Parts:
    """The ready parts whose own earlier parts exist, or will have been computed before them."""
    while ready:
        absent = Parts.of((start, ready.last)) - built - ready
        lost = ready & (fed_self(table, absent) if absent else absent)
        if not lost:
            break
        ready -= lost | (ready & self_closure(table, lost, ready.last))
    return ready


def buildable(view: Table, start: int, parts: Parts, built: Parts, facts: PartFacts) -> Parts:
    """Those of `parts` that could be computed, in order, if only `built` of the view were there."""
    return with_predecessors(view, start, inputs_exist(view, start, parts, facts), built)


def inputs_exist(view: Table, start: int, within: Parts, facts: PartFacts) -> Parts:
    """Parts of the view, from its start on, for which everything it reads of other tables exists."""
    if not view.partitioned_inputs:
        return Parts()
    within = within.within(start, FOREVER)
    return can_begin(view, within.within(start, start), facts) | _can_follow(
        view, view.inputs, within.within(start + 1, FOREVER), facts
    )


def can_begin(view: Table, within: Parts, facts: PartFacts) -> Parts:
    """Parts of the view for which everything that INITIALIZE reads exists.

    Of an optional input that is at least one part, so that the view begins with what it reads.
    """
    for item in view.initial:
        if item.table in view.optional and item.reference is not None:
            start = facts.start(item.table)
            within = Parts() if start is None else within.within(item.reference.hi.first_reaching(start), FOREVER)
    return _can_follow(view, view.initial, within, facts)


def _can_follow(view: Table, inputs: Iterable[Input], within: Parts, facts: PartFacts) -> Parts:
    for item in inputs:
        if not within:
            break
        if item.table == view.name:
            continue
        if item.reference is None:
            within = within if facts.existing(item.table, -FOREVER, FOREVER) else Parts()
            continue
        there = facts.existing(item.table, *read_by(item, within.first, within.last))
        if item.table in view.optional:
            start = facts.start(item.table)
            there = Parts() if start is None else there | Parts.of((-FOREVER, start - 1))
        within &= item.reference.covered_by(there)
    return within


def required_of(view: Table, item: Input, parts: Range, facts: PartFacts, first: bool) -> Range:
    """What these parts require of one input, the view itself aside: of an optional one nothing before its start.

    `first`: by INITIALIZE, which must read something. May be empty (lo > hi).
    """
    if item.reference is None:
        return Range(DIMENSION_PART, DIMENSION_PART)
    lo, hi = item.reference.lo.at(parts.lo), item.reference.hi.at(parts.hi)
    start = facts.start(item.table) if item.table in view.optional else None
    if start is not None:
        lo = min(max(lo, start), hi) if first else max(lo, start)
    return Range(lo, hi)


def read_by(item: Input, first: int, last: int) -> Range:
    """The parts of an input between the first and the last that the parts first..last read."""
    if item.reference is None:
        return Range(-FOREVER, FOREVER)
    lo = -FOREVER if first <= -FOREVER else item.reference.lo.at(first)
    hi = FOREVER if last >= FOREVER else item.reference.hi.at(last)
    return Range(lo, hi)


def first_part(view: Table, facts: PartFacts) -> int | None:
    """The part at which the view would start now, by its start rule; None while there is none.

    `earliest`: the first part for which everything INITIALIZE reads exists, and from which on UPDATE
    never reaches back before the first part of an input (it would wait for ever), unless that is optional.
    `latest`: the newest part for which everything exists (the minimum rule of ViewDF).
    """
    if view.start.rule == "at":
        return view.start.part
    if not any(i.reference is not None and i.table != view.name for i in view.initial):
        return None
    facts = _MadeAgain(facts)
    possible = can_begin(view, EVERYTHING, facts)
    if view.start.rule == "latest":
        return possible.last if possible else None
    possible = not_before_inputs(view, possible, facts)
    if view.start.part is not None:
        possible = possible.within(view.start.part, FOREVER)
    return possible.first if possible else None


def not_before_inputs(view: Table, possible: Parts, facts: PartFacts) -> Parts:
    """Those first parts from which on UPDATE never reaches back before the first part of an input."""
    if view.initial != view.inputs:
        for item in view.partitioned_inputs:
            there = facts.existing(item.table, -FOREVER, FOREVER) if item.table not in view.optional else Parts()
            if there and item.reference is not None:
                possible = possible.within(item.reference.lo.first_reaching(there.first) - 1, FOREVER)
    return possible
