"""How far back as-of reads are promised, and the ledger rows that nothing promised needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, func, insert, select, text

from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.as_of import sequence_at
from partwise.ledger.read.pin import Version
from partwise.ledger.schema import arrival, backfill, lease, promise, reader, version, was_due
from partwise.tables import Graph

#: Seconds. The lateness of rows is looked at over a longer time than single reads are.
ARRIVALS = 90 * 86400.0
#: Seconds. Whoever carries out a backfill and has not been heard of for so long is not coming back.
DEAD = 86400.0
#: Steps of each table that are kept in any case: estimates are made from them.
_STEPS = 20

_OLD_VERSIONS = text(
    'DELETE FROM version WHERE seq < (SELECT MAX(v.seq) FROM version AS v WHERE v."table" = version."table" AND v.seq <= :p) '
    # Of a table that is being made again readers see the old one, however long that takes.
    'AND NOT EXISTS (SELECT 1 FROM rebuild AS b WHERE b."table" = version."table" AND b.whole IS NULL)'
)
_OLD_REVISIONS = text(
    'DELETE FROM revision WHERE "table" = :t AND seq <= :p AND (EXISTS (SELECT 1 FROM revision AS n '
    'WHERE n."table" = revision."table" AND n.part = revision.part AND n.seq > revision.seq AND n.seq <= :p) '
    'OR NOT EXISTS (SELECT 1 FROM part AS k WHERE k."table" = revision."table" AND k.part = revision.part))'
)
#: When a source part came to exist says which version of a forward dimension counts for it: its first revision stays.
_OLD_BUT_FIRST = text(
    'DELETE FROM revision WHERE "table" = :t AND seq <= :p AND ((EXISTS (SELECT 1 FROM revision AS n '
    'WHERE n."table" = revision."table" AND n.part = revision.part AND n.seq > revision.seq AND n.seq <= :p) '
    'AND EXISTS (SELECT 1 FROM revision AS o WHERE o."table" = revision."table" AND o.part = revision.part '
    "AND o.seq < revision.seq AND o.seq >= "
    'COALESCE((SELECT MAX(g.began_seq) FROM generation AS g WHERE g."table" = revision."table"), 0))) '
    'OR NOT EXISTS (SELECT 1 FROM part AS k WHERE k."table" = revision."table" AND k.part = revision.part))'
)
_OLD_STEPS = text(
    'DELETE FROM step WHERE "table" = :t AND at < :a AND seq < '
    f'(SELECT MIN(seq) FROM (SELECT s.seq FROM step AS s WHERE s."table" = :t ORDER BY s.seq DESC LIMIT {_STEPS}) AS kept)'
)
#: Failures leave a line without a revision.
_OLD_WRITERS = text(
    'DELETE FROM written WHERE "table" = :t AND seq <= :p AND NOT EXISTS '
    '(SELECT 1 FROM revision AS n WHERE n."table" = written."table" AND n.seq = written.seq)'
)


_PINNED = select(
    select(func.min(reader.c.seq)).where(reader.c.expires > bindparam("now")).scalar_subquery(),
    select(func.min(lease.c.seq))
    .where(lease.c.expires > bindparam("now"), lease.c.holder.is_not(None))
    .scalar_subquery(),
)
_AT = select(version.c.at).where(version.c.seq <= bindparam("s")).order_by(version.c.at.desc()).limit(1)


@dataclass(frozen=True, slots=True)
class Promise:
    """As-of reads work from this sequence, recorded at or before the time `at`, on."""

    seq: int
    at: float


def promised(r: Reading) -> Promise | None:
    """None: everything since the beginning."""
    row = r.on.execute(select(promise.c.seq, promise.c.at)).one_or_none()
    return None if row is None else Promise(row.seq, row.at)


def promise_from(w: Writing, moment: float) -> Promise:
    """From now on nothing older than this time is promised. A promise that was given up stays given up."""
    before = promised(w)
    if before is not None and before.at >= moment:
        return before
    found = Promise(sequence_at(w, moment), moment)
    # Whoever reads keeps what it reads, steps too, which read as of a moment after they took their lease. The oldest
    # of them decides, until it is done or has not been heard of any more.
    held = min((seq for seq in w.on.execute(_PINNED, {"now": w.now}).one() if seq is not None), default=None)
    if held is not None and held < found.seq:
        at = w.on.execute(_AT, {"s": held}).scalar()
        if at is None or (before is not None and at <= before.at):
            return before or Promise(0, 0.0)
        found = Promise(held, at)
    w.on.execute(delete(promise))
    w.on.execute(insert(promise), {"id": 1, "seq": found.seq, "at": found.at})
    return found


def oldest(r: Reading, table: str) -> Version | None:
    """The oldest version of a table that a promised read may ask for; None if it never had one."""
    mine = select(version.c.generation, version.c.version).where(version.c.table == table)
    given = promised(r)
    row = None
    if given is not None:
        row = r.on.execute(mine.where(version.c.seq <= given.seq).order_by(version.c.seq.desc()).limit(1)).first()
    row = row or r.on.execute(mine.order_by(version.c.seq).limit(1)).first()
    return None if row is None else Version(row.generation, row.version)


def trim(w: Writing, tables: Iterable[str], given: Promise, graph: Graph = Graph()) -> int:
    """Delete rows that no promised read, no estimate and no report needs. Returns how many."""
    gone = w.on.execute(_OLD_VERSIONS, {"p": given.seq}).rowcount
    w.on.execute(delete(reader).where(reader.c.expires <= w.now))
    w.on.execute(delete(was_due).where(was_due.c.until_seq <= given.seq))
    for name in tables:
        if name not in graph.forward:  # of those every version that is still read is kept
            # Whether or not a dimension counts forward already: one may do so later.
            read_first = name in graph.tables and graph[name].kind == "source"
            statement = _OLD_BUT_FIRST if read_first else _OLD_REVISIONS
            gone += w.on.execute(statement, {"t": name, "p": given.seq}).rowcount
        gone += w.on.execute(_OLD_WRITERS, {"t": name, "p": given.seq}).rowcount
        gone += w.on.execute(_OLD_STEPS, {"t": name, "a": given.at}).rowcount
    gone += w.on.execute(delete(arrival).where(arrival.c.at < min(given.at, w.now - ARRIVALS))).rowcount
    # What one has done is read from revisions that are promised: one that was stopped before cannot go on.
    old, dead = backfill.c.beat < given.at, backfill.c.beat < w.now - DEAD
    gone += w.on.execute(delete(backfill).where(old, (backfill.c.state != "running") | dead)).rowcount
    return int(gone)
