"""What the page asks the ledger for all tables at once: a statement costs more than its rows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, bindparam, case, func, select

from partwise.ledger.backfills import SILENT
from partwise.ledger.database import Reading
from partwise.ledger.schema import announcement, backfill, catalog, failure, lease, open_part, part, revision
from partwise.page.ask import Window
from partwise.parts import Parts

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
_REPAIRED_CELL = _floor(revision.c.part * catalog.c.length, _CELL_LENGTH)
_REPAIRED = (
    select(catalog.c.table, _REPAIRED_CELL.label("cell"), func.count(revision.c.part.distinct()))
    .join(catalog, catalog.c.table == revision.c.table)
    .where(
        revision.c.at > bindparam("since"),
        revision.c.revision > 1,
        revision.c.part * catalog.c.length >= _BEGIN,
        revision.c.part * catalog.c.length < _END,
    )
    .group_by(catalog.c.table, _REPAIRED_CELL)
)
_EMPTY_CELL = _floor(part.c.part * catalog.c.length, _CELL_LENGTH)
_EMPTY = (
    select(catalog.c.table, _EMPTY_CELL.label("cell"), func.count())
    .join(part, catalog.c.table == part.c.table)
    .where(
        part.c.rows == 0,
        part.c.part >= _floor(_BEGIN + 0 * catalog.c.length, catalog.c.length),
        part.c.part <= _floor(_END + 0 * catalog.c.length, catalog.c.length),
        catalog.c.table.in_(bindparam("names", expanding=True)),
    )
    .group_by(catalog.c.table, _EMPTY_CELL)
)
_FAILED = select(failure.c.table, failure.c.part)
_OPEN = (
    select(open_part.c.table, open_part.c.part)
    .join(catalog, catalog.c.table == open_part.c.table)
    .where(open_part.c.part * catalog.c.length >= _BEGIN, open_part.c.part * catalog.c.length < _END)
)
_LEASES = select(lease.c.table, lease.c.holder).where(lease.c.holder.is_not(None), lease.c.expires > bindparam("now"))
_RUNS = select(announcement.c.table, announcement.c.run).where(announcement.c.run.is_not(None))
_BACKFILLS = select(backfill.c.seq, backfill.c.table, backfill.c.lo, backfill.c.hi, backfill.c.holder, backfill.c.began)
_RUNNING = _BACKFILLS.where(backfill.c.state == "running", backfill.c.beat > bindparam("since")).order_by(
    backfill.c.seq
)
_SUMMARY = select(func.count(), func.sum(part.c.rows), func.max(part.c.revision), func.max(part.c.updated_at)).where(
    part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b"))
)

#: Counts by cell, by table.
Cells = dict[str, dict[int, int]]


def _cells(rows: Any) -> Cells:
    found: Cells = {}
    for name, cell, count in rows.all():
        found.setdefault(name, {})[int(cell)] = count
    return found


def repaired(r: Reading, window: Window, since: float) -> Cells:
    """Parts whose content changed again after a moment."""
    values = {"since": since, "begin": window.begin, "end": window.end, "resolution": window.resolution}
    return _cells(r.on.execute(_REPAIRED, values))


def empty(r: Reading, window: Window, names: Collection[str]) -> Cells:
    values = {"begin": window.begin, "end": window.end, "resolution": window.resolution, "names": list(names)}
    return _cells(r.on.execute(_EMPTY, values)) if names else {}


def failed(r: Reading) -> dict[str, Parts]:
    return _parts(r.on.execute(_FAILED))


def opened(r: Reading, window: Window) -> dict[str, Parts]:
    return _parts(r.on.execute(_OPEN, {"begin": window.begin, "end": window.end}))


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


def summary(r: Reading, table: str, lo: int, hi: int) -> tuple[int, int, int | None, float | None]:
    """Count, rows, highest revision and newest change of the parts between lo and hi."""
    count, rows, newest, updated = r.on.execute(_SUMMARY, {"t": table, "a": lo, "b": hi}).one()
    return count, int(rows or 0), newest, updated
