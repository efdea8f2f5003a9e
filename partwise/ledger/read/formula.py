"""The as-of formula for whole tables: the same as `audit.due_by_formula`, one pass per input instead of one per part.

Bounds of references grow with the index, so what neighbouring parts require is a window that only moves upwards: the
newest change in it is kept as it moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
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

#: part, changed_seq, as_of, self_as_of, fingerprint: by part.
Row = tuple[int, int, int, int, str]
_ROWS = (
    'SELECT part, changed_seq, as_of, self_as_of, fingerprint FROM part WHERE "table" = {0} '
    "AND part BETWEEN {0} AND {0} ORDER BY part"
)
_BORN = 'SELECT part, as_of, born, born_at FROM part WHERE "table" = {0} AND part BETWEEN {0} AND {0} ORDER BY part'
# Parts of a table that is being made again changed when they changed, whether they are there just now or not.
_CHANGED = (
    'SELECT part, changed_seq FROM part WHERE "table" = {0} AND part BETWEEN {0} AND {0} '
    'UNION ALL SELECT part, changed_seq FROM lost WHERE "table" = {0} AND part BETWEEN {0} AND {0} ORDER BY part'
)


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
    built: list[Row] = read_rows(r, _ROWS, view.name, looked.first, looked.last)
    found = [row[0] for row in built if row[4] != view.fingerprint]
    later = built
    if built and built[0][0] == start:
        found += (
            [start]
            if any(_stale_first(r, view, i, built[0]) for i in view.initial if i.table not in (view.name, *graph.timed))
            else []
        )
        later = built[1:]
    if later:
        for item in (i for i in dict.fromkeys(view.inputs) if i.table not in graph.timed):
            found += _stale(r, view, item, later, start)
    for name in (n for n in view.input_names if n in graph.forward):
        found += _repinned(r, view, name, looked, start)
    for name in (n for n in view.input_names if n in graph.timed and built):
        found += _of_other_times(r, graph, view, name, built, start)
    missing = inputs_exist(view, start, looked, LedgerParts(r)) - existing(r, view.name)
    return (Parts.of(*_runs(sorted(set(found)))) & looked) | (missing & looked)


def _stale_first(r: Reading, view: Table, item: Input, row: Row) -> bool:
    if item.reference is None:
        return changes_since(r, view, item.table, row[2]).newest(row[0]) > row[2]
    lo, hi = item.reference.requires(row[0])
    return any(seq > row[2] for _, seq in _changes(r, item.table, lo, hi))


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


def _of_other_times(
    r: Reading, graph: Graph, view: Table, dimension: str, built: Sequence[Row], start: int
) -> Iterator[int]:
    """Parts for whose times a dimension changed after they were computed."""
    for change in changed_times(r, dimension, min(row[2] for row in built)):
        touched = fed_by_times(graph, view, start, dimension, [Range(change.lo, change.hi)])
        yield from (row[0] for row in built if row[2] < change.seq and row[0] in touched)


def _stale(r: Reading, view: Table, item: Input, built: Sequence[Row], start: int) -> list[int]:
    if item.reference is None:
        return _stale_by_dimension(r, view, item.table, built)
    own = item.table == view.name
    lo, hi = read_by(item, built[0][0], built[-1][0])
    changed: list[tuple[int, int]] = _changes(r, item.table, max(lo, start) if own else lo, hi)
    since = [row[3] if own else row[2] for row in built]
    newest = max((seq for _, seq in changed), default=-1)
    if newest <= min(since):
        return []  # nothing changed since any of them was computed
    return list(_moving(item.reference, [row[0] for row in built], since, changed))


def _stale_by_dimension(r: Reading, view: Table, dimension: str, built: Sequence[Row]) -> list[int]:
    changes = changes_since(r, view, dimension, min(row[2] for row in built))
    newest, by_part = changes.everywhere, changes.by_part(built[0][0], built[-1][0])
    return [row[0] for row in built if by_part.get(row[0], newest) > row[2]]


def _changes(r: Reading, table: str, lo: int, hi: int) -> list[tuple[int, int]]:
    return read_rows(r, _CHANGED, table, lo, hi, table, lo, hi)


def _moving(
    reference: Reference, parts: Sequence[int], since: Sequence[int], changed: Sequence[tuple[int, int]]
) -> Iterator[int]:
    """Parts of which a required part changed after they were computed."""
    window: deque[tuple[int, int]] = deque()  # by part, and falling by sequence: the newest change comes first
    low, high = reference.lo, reference.hi
    low_times, low_plus, low_over = low.times, low.plus, low.over
    high_times, high_plus, high_over = high.times, high.plus, high.over
    at, end = 0, len(changed)
    for j, seen in zip(parts, since, strict=True):
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


def _runs(parts: Sequence[int]) -> Iterator[tuple[int, int]]:
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


def read_rows(r: Reading, statement: str, *values: object) -> list[Any]:
    """Past SQLAlchemy's rows, which would take as long as all the rest."""
    mark = "?" if r.on.dialect.paramstyle == "qmark" else "%s"
    cursor = r.on.exec_driver_sql(statement.format(mark), values).cursor
    assert cursor is not None
    return list(cursor.fetchall())


def existing_rows(r: Reading, table: str) -> Parts:
    """Which parts have rows in the ledger: what `have` should say."""
    rows = read_rows(r, 'SELECT part FROM part WHERE "table" = {0} ORDER BY part', table)
    return Parts.of(*_runs([row[0] for row in rows]))
