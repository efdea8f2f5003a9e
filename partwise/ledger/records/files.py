"""What sources have taken in: files, quarantined rows, and how far event time has come.

All of it is recorded from the entry of the commit that brought the rows, so that after a crash between
the two commits a file is neither loaded twice nor lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, select, update

from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import file, intake, open_part, quarantine

_FILES = select(file).where(file.c.table == bindparam("t"))
_FILE_DROP = delete(file).where(file.c.table == bindparam("t"), file.c.name == bindparam("n"))
_FILE_ADD = insert(file)
_TOUCH = (
    update(file)
    .where(file.c.table == bindparam("t"), file.c.name == bindparam("n"))
    .values(size=bindparam("s"), mtime=bindparam("m"))
)
_INTAKE = select(intake).where(intake.c.table == bindparam("t"))
_INTAKE_DROP = delete(intake).where(intake.c.table == bindparam("t"))
_QUARANTINE_ADD = insert(quarantine)
_KEEP = (
    update(quarantine)
    .where(quarantine.c.table == bindparam("t"), quarantine.c.batch == bindparam("b"))
    .values(kept=True)
)
_KEPT = select(quarantine).where(quarantine.c.kept).order_by(quarantine.c.table, quarantine.c.batch, quarantine.c.n)
_COUNT = (
    select(quarantine.c.table, quarantine.c.reason, func.count())
    .where(quarantine.c.kept)
    .group_by(quarantine.c.table, quarantine.c.reason)
    .order_by(quarantine.c.table, quarantine.c.reason)
)

#: As in `partwise.sources.bounds`, which stands above the ledger.
_UNFIT = "the row does not fit the declared columns"


class TakenFile(NamedTuple):
    """A file that a source has taken in. `id` stands in the `_file` column of its rows."""

    id: int
    name: str
    size: int
    mtime: int
    hash: str
    state: Literal["loaded", "retracted"] = "loaded"
    lo: int | None = None
    hi: int | None = None


@dataclass(frozen=True)
class Delivery:
    """What a commit of a source or dimension took in: a part of its entry."""

    files: tuple[TakenFile, ...] = ()
    gone: tuple[int, ...] = ()  # ids whose rows were taken out; what they had in quarantine goes, too
    batch: str | None = None  # the quarantined rows of this delivery
    dropped: tuple[str, ...] = ()  # batches of quarantined rows that have been taken in or replaced
    watermark: int | None = None
    last_file: int = 0
    origin: str | None = None
    position: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"files": [list(f) for f in self.files]}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Delivery:
        lists = {name: tuple(raw[name]) for name in ("gone", "dropped")}
        return cls(**{**raw, **lists, "files": tuple(TakenFile(*f) for f in raw["files"])})


@dataclass(frozen=True, slots=True)
class Intake:
    """Where a source stands. `watermark` is the newest event time seen, in microseconds."""

    watermark: int | None = None
    last_file: int = 0
    origin: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A row that could not be placed. `row` is a line of CSV whose columns are `layout`, or JSON without one.

    `line` is where it stands in its file (of a Parquet file: which row it is), where that is known.
    """

    source: str
    batch: str
    n: int
    file_id: int
    file: str
    reason: str
    row: str
    layout: str | None
    at: float
    line: int | None = None


def intake_of(r: Reading, table: str) -> Intake:
    row = r.on.execute(_INTAKE, {"t": table}).one_or_none()
    return Intake(row.watermark, row.last_file, row.origin, row.position) if row else Intake()


def files_of(r: Reading, table: str) -> dict[str, TakenFile]:
    """All files that a source has taken in, by name."""
    rows = r.on.execute(_FILES, {"t": table})
    return {
        row.name: TakenFile(row.id, row.name, row.size, row.mtime, row.hash, row.state, row.lo, row.hi) for row in rows
    }


def expired_files(r: Reading, table: str, floor: int) -> list[str]:
    """Names of files whose rows were all in parts below the floor, and of which nothing is quarantined."""
    aside = select(quarantine.c.file_id).where(quarantine.c.table == table)
    chosen = select(file.c.name).where(file.c.table == table, file.c.hi < floor, file.c.id.not_in(aside))
    return list(r.on.execute(chosen).scalars())


def forget(w: Writing, table: str, names: Sequence[str]) -> int:
    if names:
        w.on.execute(_FILE_DROP, [{"t": table, "n": name} for name in names])
    return len(names)


def first_open(r: Reading, table: str) -> int | None:
    """The oldest part of a source that has rows and is not closed."""
    found: int | None = r.on.execute(select(func.min(open_part.c.part)).where(open_part.c.table == table)).scalar()
    return found


def touched(w: Writing, table: str, files: Iterable[tuple[str, int, int]]) -> None:
    """Same content, another time stamp: the next look need not read the file again."""
    rows = [{"t": table, "n": name, "s": size, "m": mtime} for name, size, mtime in files]
    if rows:
        w.on.execute(_TOUCH, rows)


def set_aside(
    w: Writing, table: str, batch: str, rows: Sequence[tuple[int, str, str, str, str | None, int | None]], first: int
) -> None:
    """Write rows (file id, file, reason, row, layout, line) into quarantine; they count once their batch is recorded."""
    w.on.execute(
        _QUARANTINE_ADD,
        [
            {
                "table": table,
                "batch": batch,
                "n": n,
                "file_id": file_id,
                "file": name,
                "reason": reason,
                "row": text,
                "layout": layout,
                "line": line,
                "at": w.at,
                "kept": False,
            }
            for n, (file_id, name, reason, text, layout, line) in enumerate(rows, first)
        ],
    )


def quarantined(r: Reading, table: str | None = None, limit: int | None = None) -> list[Quarantined]:
    chosen = _KEPT if table is None else _KEPT.where(quarantine.c.table == table)
    rows = r.on.execute(chosen if limit is None else chosen.limit(limit))
    return [
        Quarantined(x.table, x.batch, x.n, x.file_id, x.file, x.reason, x.row, x.layout, x.at, x.line) for x in rows
    ]


def quarantine_counts(r: Reading) -> dict[str, dict[str, int]]:
    """How many rows each source has in quarantine, by reason."""
    found: dict[str, dict[str, int]] = {}
    for table, reason, count in r.on.execute(_COUNT):
        # Which value did not fit differs from row to row; that one did not is what is counted.
        kind = _UNFIT if reason.startswith(_UNFIT) else reason
        counts = found.setdefault(table, {})
        counts[kind] = counts.get(kind, 0) + count
    return found


def take_in(w: Writing, table: str, delivery: Delivery, swept: bool) -> None:
    """Record a delivery. `swept`: no older attempt can be committed any more, so what it quarantined may go."""
    if delivery.files:
        w.on.execute(_FILE_DROP, [{"t": table, "n": f.name} for f in delivery.files])
        w.on.execute(_FILE_ADD, [{"table": table, "at": w.at, **f._asdict()} for f in delivery.files])
    mine = quarantine.c.table == table
    for some in _slices(delivery.gone, 500):
        w.on.execute(delete(quarantine).where(mine, quarantine.c.kept, quarantine.c.file_id.in_(some)))
    for some in _slices(delivery.dropped, 500):
        w.on.execute(delete(quarantine).where(mine, quarantine.c.batch.in_(some)))
    if delivery.batch is not None:
        w.on.execute(_KEEP, {"t": table, "b": delivery.batch})
    if swept:
        w.on.execute(delete(quarantine).where(mine, ~quarantine.c.kept))
    before = intake_of(w, table)
    seen = [m for m in (before.watermark, delivery.watermark) if m is not None]
    w.on.execute(_INTAKE_DROP, {"t": table})
    values = {
        "table": table,
        "watermark": max(seen, default=None),
        "last_file": max(before.last_file, delivery.last_file),
        "origin": delivery.origin if delivery.origin is not None else before.origin,
        "position": delivery.position if delivery.position is not None else before.position,
    }
    w.on.execute(insert(intake), values)


def _slices(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def forget_batch(w: Writing, table: str, batch: str) -> None:
    """Rows that were quarantined by a try that came to nothing."""
    w.on.execute(delete(quarantine).where(quarantine.c.table == table, quarantine.c.batch == batch, ~quarantine.c.kept))
