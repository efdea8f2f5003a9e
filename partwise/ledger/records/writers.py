"""Which task of Airflow wrote a revision or recorded a failure, so that people find its log."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import bindparam, insert, select

from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import written

_COLUMNS = (written.c.dag, written.c.run, written.c.task, written.c.map_index)
_BY_SEQ = select(written.c.seq, *_COLUMNS).where(
    written.c.table == bindparam("t"), written.c.seq.in_(bindparam("seqs", expanding=True))
)
_AT = (
    select(*_COLUMNS)
    .where(written.c.table == bindparam("t"), written.c.at == bindparam("at"))
    .order_by(written.c.seq.desc())
    .limit(1)
)


_LAST = select(*_COLUMNS).where(written.c.table == bindparam("t")).order_by(written.c.seq.desc()).limit(1)


@dataclass(frozen=True, slots=True)
class Writer:
    """A task of a run. `map_index` is -1 unless the task is mapped."""

    dag: str
    run: str
    task: str
    map_index: int = -1


def note(w: Writing, table: str, writer: Writer | None) -> None:
    """That this transaction is the writer's. Whoever works without Airflow leaves no trace here."""
    if writer is None:
        return
    row = {"dag": writer.dag, "run": writer.run, "task": writer.task, "map_index": writer.map_index}
    w.on.execute(insert(written), row | {"table": table, "seq": w.seq, "at": w.at})


def writers(r: Reading, table: str, seqs: Collection[int]) -> dict[int, Writer]:
    """By the sequence of what was written."""
    rows = r.on.execute(_BY_SEQ, {"t": table, "seqs": list(seqs)}) if seqs else ()
    return {seq: Writer(*rest) for seq, *rest in rows}


def writer_at(r: Reading, table: str, at: float) -> Writer | None:
    """Who wrote at exactly this time."""
    row = r.on.execute(_AT, {"t": table, "at": at}).first()
    return None if row is None else Writer(*row)


def last_writer(r: Reading, table: str) -> Writer | None:
    """Who wrote last."""
    row = r.on.execute(_LAST, {"t": table}).first()
    return None if row is None else Writer(*row)
