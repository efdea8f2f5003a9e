"""Which parts of a step read inputs that are not up to date: those that the step marks as mixed.

A step normally waits until everything is up to date that its parts read. It does not wait for ever (patience), nor for
inputs that failed their checks or are left to people: then it reads what was published before, beside other inputs
that are newer. Such a part never equals what the sources give at any one moment, until its inputs are repaired or turn
out to be unchanged. Until then something that it reads, directly or not, is due: so whatever reads it in turn is found
to be mixed as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from partwise.parts import Parts, Range
from partwise.plan.closure import not_up_to_date
from partwise.plan.model import Facts
from partwise.plan.next import needs_of
from partwise.plan.reach import fed, self_closure
from partwise.tables import Graph, Table

#: Parts of one input: its table, first and last part.
Read = tuple[str, int, int]


def mixed_reads(
    graph: Graph, facts: Facts, table: Table, start: int, due: Parts, reach: Parts
) -> dict[int, tuple[Read, ...]]:
    """For each part that the step may compute: the inputs it reads that are not up to date."""
    if not any(name != table.name for name in facts.due()) and not table.self_references:
        return {}  # the ordinary case costs nothing
    dirty = not_up_to_date(graph, facts, (table.name,))
    dirty[table.name] = _own(facts, table, start, due, dirty)
    if not any(dirty.get(name) for name in (*table.input_names, table.name)):
        return {}
    found: dict[int, tuple[Read, ...]] = {}
    here: set[int] = set()
    for j in due | reach:
        reads: list[Read] = []
        for need in needs_of(facts, table, start, j):
            bad = need.needed & dirty.get(need.table, Parts())
            if need.table == table.name:
                bad |= need.needed & Parts.single(*here)
            reads += [(need.table, lo, hi) for lo, hi in (bad & need.there).ranges]
        if reads:
            found[j] = tuple(reads)
            here.add(j)
    return found


def _own(facts: Facts, table: Table, start: int, due: Parts, dirty: Mapping[str, Parts]) -> Parts:
    """Parts of the table itself that are not up to date and that this step does not compute."""
    if not table.self_references:
        return Parts()
    left = Parts.of(*((row.lo, row.hi) for row in facts.due().get(table.name, ())))
    for name in table.input_names:
        if name in dirty:
            left |= fed(table, start, name, dirty[name])
    left -= due
    return left | (self_closure(table, left, due.last) - due) if left else left


def still_mixed(reads: tuple[Read, ...], dirty: Mapping[str, Parts]) -> bool:
    """Whether any of the inputs that a mixed part read is not up to date yet."""
    return any(dirty.get(name, Parts()) & Parts.of(Range(lo, hi)) for name, lo, hi in reads)
