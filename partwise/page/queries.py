"""What the page asks the ledger for all tables at once: a statement costs more than its rows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, bindparam, case, func, select

from partwise.ledger.database import Reading
from partwise.ledger.records.backfills import SILENT
from partwise.ledger.schema import announcement, backfill, catalog, failure, lease, open_part, part, revision
from partwise.page.ask import HeatWindow
from partwise.parts import Parts, Range

#: Of a table with more parts in the window than this, empty ones are not told apart.
COUNTED = 20_000

_BEGIN: BindParameter[int] = bindparam("begin")
_END: BindParameter[int] = bindparam("end")
_RESOLUTION: BindParameter[int] = bindparam("resolution")


def _floor(number: ColumnElement[Any], by: ColumnElement[Any]) -> ColumnElement[Any]:
    """Division that rounds down, also below zero, where databases round towards it."""
    rest = (number % by + by) % by
    return (number - rest) // by


_CELL_LENGTH = case((catalog.c.length > _RESOLUTION, catalog.c.length), else_=_RESOLUTION)
#: The cells of a table that overlap the window, as `partwise.page.cells.Grid`: a part that began before the window and
#: reaches into it is shown, so it is requested.
_FIRST_CELL = _floor(_BEGIN + 0 * catalog.c.length, _CELL_LENGTH)
_LAST_CELL = _floor(_END - 1 + 0 * catalog.c.length, _CELL_LENGTH)


def _cell_of(p: ColumnElement[int]) -> ColumnElement[Any]:
    return _floor(p * catalog.c.length, _CELL_LENGTH)


_REPAIRED_CELL = _cell_of(revision.c.part)
_REPAIRED = (
    select(catalog.c.table, _REPAIRED_CELL.label("cell"), func.count(revision.c.part.distinct()))
    .join(catalog, catalog.c.table == revision.c.table)
    .where(
        revision.c.at > bindparam("since"),
        revision.c.revision > 1,
        _REPAIRED_CELL.between(_FIRST_CELL, _LAST_CELL),
    )
    .group_by(catalog.c.table, _REPAIRED_CELL)
)
_EMPTY_CELL = _cell_of(part.c.part)
_EMPTY = (
    select(catalog.c.table, _EMPTY_CELL.label("cell"), func.count())
    .join(part, catalog.c.table == part.c.table)
    .where(
        part.c.rows == 0,
        # By the index first, then exactly.
        part.c.part >= _floor(_FIRST_CELL * _CELL_LENGTH, catalog.c.length),
        part.c.part <= _floor((_LAST_CELL + 1) * _CELL_LENGTH, catalog.c.length),
        _EMPTY_CELL.between(_FIRST_CELL, _LAST_CELL),
        catalog.c.table.in_(bindparam("names", expanding=True)),
    )
    .group_by(catalog.c.table, _EMPTY_CELL)
)
_FAILED = select(failure.c.table, failure.c.part)
_OPEN = (
    select(open_part.c.table, open_part.c.part)
    .join(catalog, catalog.c.table == open_part.c.table)
    .where(_cell_of(open_part.c.part).between(_FIRST_CELL, _LAST_CELL))
)
_LEASES = select(lease.c.table, lease.c.holder).where(lease.c.holder.is_not(None), lease.c.expires > bindparam("now"))
_RUNS = select(announcement.c.table, announcement.c.run).where(announcement.c.run.is_not(None))
_BACKFILLS = select(backfill.c.seq, backfill.c.table, backfill.c.lo, backfill.c.hi, backfill.c.holder, backfill.c.began)
_RUNNING = _BACKFILLS.where(backfill.c.state == "running", backfill.c.beat > bindparam("since")).order_by(
    backfill.c.seq
)
_IN_RANGE = (part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b")))
_SUMMARY = select(func.sum(part.c.rows), func.max(part.c.revision), func.max(part.c.updated_at)).where(*_IN_RANGE)
_EMPTY_PARTS = select(part.c.part).where(part.c.rows == 0, *_IN_RANGE)
_CHANGED = (
    select(revision.c.part)
    .where(
        revision.c.table == bindparam("t"),
        revision.c.part.between(bindparam("a"), bindparam("b")),
        revision.c.revision > 1,
        revision.c.at > bindparam("since"),
    )
    .distinct()
)

#: Counts by cell, by table.
Cells = dict[str, dict[int, int]]


def _cells(rows: Any) -> Cells:
    found: Cells = {}
    for name, cell, count in rows.all():
        found.setdefault(name, {})[int(cell)] = count
    return found


def repaired(r: Reading, window: HeatWindow, since: float) -> Cells:
    """Parts whose content changed again after a moment."""
    return _cells(r.on.execute(_REPAIRED, {"since": since, **_values(window)}))


def empty(r: Reading, window: HeatWindow, names: Collection[str]) -> Cells:
    return _cells(r.on.execute(_EMPTY, {"names": list(names), **_values(window)})) if names else {}


def _values(window: HeatWindow) -> dict[str, int]:
    return {"begin": window.begin, "end": window.end, "resolution": window.resolution}


def failed(r: Reading) -> dict[str, Parts]:
    return _parts(r.on.execute(_FAILED))


def opened(r: Reading, window: HeatWindow) -> dict[str, Parts]:
    return _parts(r.on.execute(_OPEN, _values(window)))


def _parts(rows: Any) -> dict[str, Parts]:
    found: dict[str, list[int]] = {}
    for name, p in rows:
        found.setdefault(name, []).append(p)
    return {name: Parts.single(*parts) for name, parts in found.items()}


def writers(r: Reading, now: float) -> dict[str, str]:
    """Who holds the lease of which table."""
    return {row.table: row.holder for row in r.on.execute(_LEASES, {"now": now})}


def runs(r: Reading) -> dict[str, str]:
    """The Airflow run that works on each view."""
    return {row.table: row.run for row in r.on.execute(_RUNS)}


def running_backfills(r: Reading, now: float) -> list[Any]:
    """Those that have shown a sign of life lately."""
    return list(r.on.execute(_RUNNING, {"since": now - SILENT}))


def summary(r: Reading, table: str, span: Range) -> tuple[int, int | None, float | None]:
    """Rows, highest revision and newest change of these parts."""
    rows, newest, updated = r.on.execute(_SUMMARY, {"t": table, "a": span.lo, "b": span.hi}).one()
    return int(rows or 0), newest, updated


def empty_parts(r: Reading, table: str, span: Range) -> Parts:
    return Parts.single(*r.on.execute(_EMPTY_PARTS, {"t": table, "a": span.lo, "b": span.hi}).scalars())


def changed_parts(r: Reading, table: str, span: Range, since: float) -> Parts:
    """Those of one table whose content changed again after a moment."""
    values = {"t": table, "a": span.lo, "b": span.hi, "since": since}
    return Parts.single(*r.on.execute(_CHANGED, values).scalars())
