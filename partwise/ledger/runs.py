"""Ranges kept as rows: `have` (what exists) and `due` (what must be computed).

Both are read by a window of parts and written by replacing the few rows that overlap it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select

from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import due, have, was_due
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.model import Cause, Due, Window

# The last run that begins at or before the window may reach into it; it is found by the index,
# so that a table with a million runs costs no more than one with two.
_FIRST = select(func.max(have.c.lo)).where(have.c.table == bindparam("t"), have.c.lo <= bindparam("a"))
_HAVE = (
    select(have.c.lo, have.c.hi)
    .where(
        have.c.table == bindparam("t"),
        have.c.lo >= func.coalesce(_FIRST.scalar_subquery(), bindparam("a")),
        have.c.lo <= bindparam("b"),
    )
    .order_by(have.c.lo)
)
# The same for many windows. Windows come first: each is a short walk along the index.
_WINDOWS = """
    WITH asked (n, name, a, b) AS (VALUES {})
    SELECT asked.n, have.lo, have.hi FROM asked CROSS JOIN have
    WHERE have."table" = asked.name AND have.lo <= asked.b AND have.lo >= COALESCE(
        (SELECT MAX(f.lo) FROM have AS f WHERE f."table" = asked.name AND f.lo <= asked.a), asked.a)
"""
_TOGETHER = 500
_HAVE_DROP = delete(have).where(have.c.table == bindparam("t"), have.c.lo == bindparam("l"))
_HAVE_ADD = insert(have)
_BOUNDS = select(func.min(have.c.lo), func.max(have.c.hi)).where(have.c.table == bindparam("t"))

_DUE_FIRST = select(func.max(due.c.lo)).where(due.c.table == bindparam("t"), due.c.lo <= bindparam("a"))
_DUE = (
    select(due)
    .where(
        due.c.table == bindparam("t"),
        due.c.lo >= func.coalesce(_DUE_FIRST.scalar_subquery(), bindparam("a")),
        due.c.lo <= bindparam("b"),
    )
    .order_by(due.c.lo)
)
_DUE_ALL = select(due).order_by(due.c.table, due.c.lo)
_DUE_DROP = delete(due).where(due.c.table == bindparam("t"), due.c.lo == bindparam("l"))
_DUE_ADD = insert(due)
_WAS_DUE_ADD = insert(was_due)


def existing(r: Reading, table: str, lo: int = -FOREVER, hi: int = FOREVER) -> Parts:
    """The existing parts of a table between lo and hi."""
    rows = r.on.execute(_HAVE, {"t": table, "a": lo, "b": hi})
    return Parts.of(*((max(a, lo), min(b, hi)) for a, b in rows))


def existing_together(r: Reading, windows: Sequence[Window]) -> dict[Window, Parts]:
    """`existing` for many windows at once: the statement, not its rows, is what costs."""
    if len(windows) == 1:
        return {windows[0]: existing(r, *windows[0])}
    mark = "?" if r.on.dialect.paramstyle == "qmark" else "%s"
    found: dict[Window, list[tuple[int, int]]] = {window: [] for window in windows}
    for at in range(0, len(windows), _TOGETHER):
        some = windows[at : at + _TOGETHER]
        values = ", ".join(f"({at + n}, {mark}, {mark}, {mark})" for n in range(len(some)))
        for n, lo, hi in r.on.exec_driver_sql(_WINDOWS.format(values), tuple(v for window in some for v in window)):
            _, first, last = windows[n]
            found[windows[n]].append((max(lo, first), min(hi, last)))
    return {window: Parts.of(*ranges) for window, ranges in found.items()}


def bounds(r: Reading, table: str) -> Range | None:
    """First and newest existing part."""
    lo, hi = r.on.execute(_BOUNDS, {"t": table}).one()
    return None if lo is None else Range(lo, hi)


def set_existing(w: Writing, table: str, add: Parts = Parts(), remove: Parts = Parts()) -> None:
    for span in (add | remove).ranges:
        window = (max(span.lo - 1, -FOREVER), min(span.hi + 1, FOREVER))
        old = [Range(a, b) for a, b in w.on.execute(_HAVE, {"t": table, "a": window[0], "b": window[1]})]
        old = [run for run in old if run.hi >= window[0]]
        new = (Parts.of(*old) | add.within(*span)) - remove.within(*span)
        if tuple(old) == new.ranges:
            continue
        if old:
            w.on.execute(_HAVE_DROP, [{"t": table, "l": run.lo} for run in old])
        if new:
            w.on.execute(_HAVE_ADD, [{"table": table, "lo": run.lo, "hi": run.hi} for run in new.ranges])


def due_rows(r: Reading, table: str, lo: int = -FOREVER, hi: int = FOREVER) -> list[Due]:
    """The due ranges that overlap lo..hi, whole."""
    rows = r.on.execute(_DUE, {"t": table, "a": lo, "b": hi})
    return [found for row in rows if (found := _due(row)).hi >= lo]


def all_due(r: Reading) -> dict[str, list[Due]]:
    found: dict[str, list[Due]] = {}
    for row in r.on.execute(_DUE_ALL):
        found.setdefault(row[0], []).append(_due(row))
    return found


def paint(w: Writing, table: str, parts: Parts, cause: Cause) -> None:
    """Mark parts as due for a new cause. What was due already keeps the time since when.

    What somebody requested stays requested: late rows that come in between do not take the request back. And with late rows
    what was the first part stays that: it holds what another query gave, which must not be repaired.
    """
    for span in parts.ranges:
        old = due_rows(w, table, span.lo, span.hi)
        new = [piece for row in old for piece in _outside(row, span)]
        inside = Parts.of(span)
        for row in old:
            lo, hi = max(row.lo, span.lo), min(row.hi, span.hi)
            kept = row.cause if _stays(row.cause, cause) else cause
            new.append(Due(lo, hi, w.seq, row.since, kept, row.since_seq))
            inside -= Parts.of((lo, hi))
        new += [Due(lo, hi, w.seq, w.now, cause, w.seq) for lo, hi in inside.ranges]
        _replace(w, table, old, _joined(new))


def _stays(old: Cause, new: Cause) -> bool:
    return old.kind == "requested" or (old.kind == "start" and new.kind == "input")


def clear(w: Writing, table: str, parts: Parts, up_to: int = FOREVER) -> None:
    """Parts are no longer due, except where a cause came after sequence `up_to`."""
    for span in parts.ranges:
        old = [row for row in due_rows(w, table, span.lo, span.hi) if row.seq <= up_to]
        _replace(w, table, old, [piece for row in old for piece in _outside(row, span)])


def renew(w: Writing, table: str, parts: Parts) -> None:
    """Parts that were just computed and are due again, for a cause that came meanwhile: they are due since now."""
    for span in parts.ranges:
        old = due_rows(w, table, span.lo, span.hi)
        new = [piece for row in old for piece in _outside(row, span)]
        new += [replace(row, lo=max(row.lo, span.lo), hi=min(row.hi, span.hi), since=w.now) for row in old]
        _replace(w, table, old, _joined(new))


def repaint(w: Writing, table: str, rows: Iterable[Due]) -> None:
    """Replace everything that is due for a table."""
    _replace(w, table, due_rows(w, table), _joined(list(rows)))


def _outside(row: Due, span: Range) -> list[Due]:
    pieces = []
    if row.lo < span.lo:
        pieces.append(replace(row, hi=span.lo - 1))
    if row.hi > span.hi:
        pieces.append(replace(row, lo=span.hi + 1))
    return pieces


def _joined(rows: list[Due]) -> list[Due]:
    """Neighbours become one row only if they are due for the same reason since the same time."""
    out: list[Due] = []
    for row in sorted(rows, key=lambda row: row.lo):
        last = out[-1] if out else None
        if last and last.hi + 1 == row.lo and replace(last, lo=0, hi=0) == replace(row, lo=0, hi=0):
            out[-1] = replace(last, hi=row.hi)
        else:
            out.append(row)
    return out


def _replace(w: Writing, table: str, old: list[Due], new: list[Due]) -> None:
    if old == new:
        return
    if old:
        w.on.execute(_DUE_DROP, [{"t": table, "l": row.lo} for row in old])
    if new:
        w.on.execute(_DUE_ADD, [_row(table, row) for row in new])
    _remember(w, table, old, new)


def _remember(w: Writing, table: str, old: list[Due], new: list[Due]) -> None:
    """Write down what is no longer due: from when until when it was. Reads of settled content go by it."""
    still = Parts.of(*((row.lo, row.hi) for row in new))
    gone = [
        {"table": table, "until_seq": w.seq, "lo": lo, "hi": hi, "since_seq": row.since_seq}
        for row in old
        if row.since_seq < w.seq  # what became due in this very transaction was never seen by anyone
        for lo, hi in (row.parts - still).ranges
    ]
    if gone:
        w.on.execute(_WAS_DUE_ADD, gone)


def _row(table: str, row: Due) -> dict[str, object]:
    span = row.cause.parts
    return {
        "table": table,
        "lo": row.lo,
        "hi": row.hi,
        "seq": row.seq,
        "since": row.since,
        "cause": row.cause.kind,
        "cause_table": row.cause.table,
        "cause_lo": span.lo if span else None,
        "cause_hi": span.hi if span else None,
        "since_seq": row.since_seq,
    }


def _due(row: Any) -> Due:
    _, lo, hi, seq, since, kind, table, cause_lo, cause_hi, since_seq = row
    span = None if cause_lo is None else Range(cause_lo, cause_hi)
    return Due(lo, hi, seq, since, Cause(kind, table, span), since_seq or 0)
