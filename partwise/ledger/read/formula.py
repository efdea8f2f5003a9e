"""The as-of formula for whole tables: the same as `audit.due_by_formula`, one pass per input instead of one per part.

Bounds of references grow with the index, so what neighbouring parts require is a window that only moves upwards: the
newest change in it is kept as it moves.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading
from partwise.ledger.read.born import stored, versions
from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.read.validity import changed_times, fed_by_times
from partwise.ledger.records.dimension_changes import changes_since
from partwise.ledger.runs import existing
from partwise.ledger.write.due_painting import frozen_below
from partwise.parts import FOREVER, Parts, Range, Reference
from partwise.plan.reach import EVERYTHING, first_part, inputs_exist, read_by
from partwise.tables import Graph, Input, Table

#: By part the sequence at which its inputs were read, or its own table.
_SINCE = 'SELECT part, {1} FROM part WHERE "table" = {0} AND part BETWEEN {0} AND {0} ORDER BY part'
_OLDEST = 'SELECT MIN({1}) FROM part WHERE "table" = {0} AND part BETWEEN {0} AND {0}'
_OTHERWISE = 'SELECT part FROM part WHERE "table" = {0} AND part BETWEEN {0} AND {0} AND fingerprint <> {0}'
_FIRST = 'SELECT as_of FROM part WHERE "table" = {0} AND part = {0}'
_BORN = 'SELECT part, as_of, born, born_at FROM part WHERE "table" = {0} AND part BETWEEN {0} AND {0} ORDER BY part'
# Parts of a table that is being made again changed when they changed, whether they are there just now or not.
_CHANGED = (
    'SELECT part, changed_seq FROM part WHERE "table" = {0} AND part BETWEEN {0} AND {0} '
    'UNION ALL SELECT part, changed_seq FROM lost WHERE "table" = {0} AND part BETWEEN {0} AND {0} ORDER BY part'
)
# Where a part requires one part alone, the database compares them, along both keys.
_CHANGED_SINCE = (
    "SELECT v.part FROM part AS v CROSS JOIN part AS s "
    'WHERE v."table" = {0} AND v.part BETWEEN {0} AND {0} AND s."table" = {0} AND s.part = v.part + {0} '
    "AND s.part >= {0} AND s.changed_seq > v.{1}"
)
_LOST = 'SELECT part FROM lost WHERE "table" = {0} LIMIT 1'


def due_parts(r: Reading, graph: Graph, view: Table, within: Parts = EVERYTHING) -> Parts:
    """Those of these parts that are due by the formula."""
    now = settled(r, view.name)
    start = now.start if now.start is not None else first_part(view, LedgerParts(r))
    if start is None or not within:
        return Parts()
    floor = max(start, frozen_below(r, view, now))
    looked = within.within(floor, FOREVER)
    if not looked:
        return Parts()
    span = Range(looked.first, looked.last)
    found = Parts.of(*runs(_column(r, _OTHERWISE, view.name, *span, view.fingerprint)))
    first = read_rows(r, _FIRST, view.name, start) if start in looked else []
    if first and any(
        _stale_first(r, view, start, i, first[0][0]) for i in view.initial if i.table not in (view.name, *graph.timed)
    ):
        found |= Parts.single(start)
    later = Range(max(span.lo, start + 1), span.hi)
    for item in (i for i in dict.fromkeys(view.inputs) if i.table not in graph.timed):
        found |= Parts.of(*runs(_stale(r, view, item, later, start)))
    for name in (n for n in view.input_names if n in graph.forward):
        found |= Parts.single(*_repinned(r, view, name, looked, start))
    for name in (n for n in view.input_names if n in graph.timed):
        found |= _of_other_times(r, graph, view, name, span, start)
    missing = inputs_exist(view, start, looked, LedgerParts(r)) - existing(r, view.name)
    return (found & looked) | (missing & looked)


def _stale_first(r: Reading, view: Table, start: int, item: Input, as_of: int) -> bool:
    if item.reference is None:
        return changes_since(r, view, item.table, as_of).newest(start) > as_of
    lo, hi = item.reference.requires(start)
    return any(seq > as_of for _, seq in _changes(r, item.table, lo, hi))


def _repinned(r: Reading, view: Table, dimension: str, looked: Parts, start: int) -> list[int]:
    """Parts for which another version of a forward dimension began to count after they were computed."""
    known = versions(r, dimension)
    if not known.repins:
        return []
    first, later = (dimension in {item.table for item in items} for items in (view.initial, view.inputs))
    rows: list[tuple[int, int, int, int]] = read_rows(r, _BORN, view.name, looked.first, looked.last)
    return [
        j
        for j, as_of, born, at in rows
        if (first if j == start else later) and known.changed(stored(born, at), as_of) > as_of
    ]


def _of_other_times(r: Reading, graph: Graph, view: Table, dimension: str, span: Range, start: int) -> Parts:
    """Parts for whose times a dimension changed after they were computed. The newest change of a time decides: each part is
    looked at once, however many changes there were."""
    oldest = _oldest(r, view, span, "as_of")
    if oldest is None or not (changes := changed_times(r, dimension, oldest)):
        return Parts()
    built = _since(r, view, span, "as_of")
    parts, left, found = [p for p, _ in built], Parts.of(span), list[int]()
    for seq, times in groupby(sorted(changes, reverse=True), key=itemgetter(0)):
        touched = fed_by_times(graph, view, start, dimension, [Range(c.lo, c.hi) for c in times]) & left
        for lo, hi in touched.ranges:
            found += [p for p, as_of in built[bisect_left(parts, lo) : bisect_right(parts, hi)] if as_of < seq]
        left -= touched
        if not left:
            break
    return Parts.single(*found)


def _stale(r: Reading, view: Table, item: Input, span: Range, start: int) -> Sequence[int]:
    if span.lo > span.hi:
        return ()
    if item.reference is None:
        return _stale_by_dimension(r, view, item.table, span)
    own = item.table == view.name
    column, least = ("self_as_of", start) if own else ("as_of", -FOREVER)
    low, high = item.reference.lo, item.reference.hi
    if low == high and (low.times, low.over) == (1, 1) and not read_rows(r, _LOST, item.table):
        return _column(r, _CHANGED_SINCE, view.name, *span, item.table, low.plus, least, column=column)
    built = _since(r, view, span, column)
    if not built:
        return ()
    lo, hi = read_by(item, built[0][0], built[-1][0])
    changed = _changes(r, item.table, max(lo, least), hi)
    if max((seq for _, seq in changed), default=-1) <= min(seq for _, seq in built):
        return ()  # nothing changed since any of them was computed
    return list(_moving(item.reference, built, changed))


def _stale_by_dimension(r: Reading, view: Table, dimension: str, span: Range) -> Sequence[int]:
    oldest = _oldest(r, view, span, "as_of")
    if oldest is None:
        return ()
    changes = changes_since(r, view, dimension, oldest)
    if changes.everywhere <= oldest and not changes.others:
        return ()
    built = _since(r, view, span, "as_of")
    newest, by_part = changes.everywhere, changes.by_part(built[0][0], built[-1][0])
    return [p for p, as_of in built if by_part.get(p, newest) > as_of]


def _since(r: Reading, view: Table, span: Range, column: str) -> list[tuple[int, int]]:
    return read_rows(r, _SINCE, view.name, *span, column=column)


def _oldest(r: Reading, view: Table, span: Range, column: str) -> int | None:
    """None: there is no part."""
    ((found,),) = read_rows(r, _OLDEST, view.name, *span, column=column)
    return None if found is None else int(found)


def _column(r: Reading, statement: str, *values: object, column: str = "") -> list[int]:
    return sorted(row[0] for row in read_rows(r, statement, *values, column=column))


def _changes(r: Reading, table: str, lo: int, hi: int) -> list[tuple[int, int]]:
    return read_rows(r, _CHANGED, table, lo, hi, table, lo, hi)


def _moving(
    reference: Reference, built: Sequence[tuple[int, int]], changed: Sequence[tuple[int, int]]
) -> Iterator[int]:
    """Parts of which a required part changed after they were computed."""
    window: deque[tuple[int, int]] = deque()  # by part, and falling by sequence: the newest change comes first
    low, high = reference.lo, reference.hi
    low_times, low_plus, low_over = low.times, low.plus, low.over
    high_times, high_plus, high_over = high.times, high.plus, high.over
    at, end = 0, len(changed)
    for j, seen in built:
        last = (high_times * j + high_plus) // high_over  # as `Bound.at`, without two calls per part
        while at < end and changed[at][0] <= last:
            seq = changed[at][1]
            while window and window[-1][1] <= seq:
                window.pop()
            window.append(changed[at])
            at += 1
        first = (low_times * j + low_plus) // low_over
        while window and window[0][0] < first:
            window.popleft()
        if window and window[0][1] > seen:
            yield j


def runs(parts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive numbers as ranges: `Parts.single` would sort a million pairs."""
    begin = end = None
    for p in parts:
        if end is not None and p == end + 1:
            end = p
            continue
        if begin is not None and end is not None:
            yield begin, end
        begin = end = p
    if begin is not None and end is not None:
        yield begin, end


def read_rows(r: Reading, statement: str, *values: object, column: str = "") -> list[Any]:
    """Past SQLAlchemy's rows, which would take as long as all the rest. {0} is the mark of a value, {1} the column."""
    cursor = r.on.exec_driver_sql(statement.format(mark(r), column), values).cursor
    assert cursor is not None
    return list(cursor.fetchall())


def mark(r: Reading) -> str:
    return "?" if r.on.dialect.paramstyle == "qmark" else "%s"
