"""Checks in the ledger: what they found, what is held back because of it, and what people decided."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Row, bindparam, delete, func, insert, select

from partwise.checks.results import Checked, KeptResults, from_json, to_json
from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import checked, decision, failure, held_file, part
from partwise.ledger.write.commit import FAILURE_DROP
from partwise.parts import Parts

#: Results of parts that passed, kept per table.
MOST_PASSED = 100

_DROP = delete(checked).where(checked.c.table == bindparam("t"), checked.c.part == bindparam("p"))
_OLDEST = (
    select(checked.c.seq)
    .where(checked.c.table == bindparam("t"), checked.c.outcome == "passed")
    .order_by(checked.c.seq.desc(), checked.c.part.desc())
    .limit(1)
    .offset(MOST_PASSED)
)
_ONE = select(checked).where(checked.c.table == bindparam("t"), checked.c.part == bindparam("p"))
_DECIDED = select(decision).where(decision.c.table == bindparam("t"), decision.c.kind == bindparam("k"))
_UNDECIDE = delete(decision).where(
    decision.c.table == bindparam("t"), decision.c.part == bindparam("p"), decision.c.kind == bindparam("k")
)
_FAILED = select(failure.c.part).where(failure.c.table == bindparam("t"), failure.c.kind == "check")
_HELD = select(held_file).where(held_file.c.table == bindparam("t"))
_HELD_DROP = delete(held_file).where(held_file.c.table == bindparam("t"), held_file.c.name == bindparam("n"))
_ROWS = select(part.c.part, part.c.rows).where(
    part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b"))
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Who decided, and when. `digest`: the content that was accepted."""

    part: int
    digest: str | None
    who: str
    at: float


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file that is not taken in because of the parts `lo` to `hi`."""

    name: str
    size: int
    mtime: int
    hash: str
    lo: int
    hi: int


def keep(w: Writing, table: str, mark: str, found: Iterable[Checked]) -> None:
    """Remember what the checks of these parts found, in place of what they found before."""
    rows = [
        {
            "table": table,
            "part": item.part,
            "seq": w.seq,
            "at": w.at,
            "outcome": item.outcome,
            "rows": item.rows,
            "digest": item.digest,
            "mark": mark,
            "results": to_json(item.results),
        }
        for item in found
    ]
    if not rows:
        return
    w.on.execute(_DROP, [{"t": table, "p": row["part"]} for row in rows])
    w.on.execute(insert(checked), rows)
    oldest = w.on.execute(_OLDEST, {"t": table}).scalar()
    if oldest is not None:
        w.on.execute(
            delete(checked).where(checked.c.table == table, checked.c.outcome == "passed", checked.c.seq <= oldest)
        )


def hold(w: Writing, table: str, found: Iterable[Checked]) -> None:
    """Parts of a source that are not published. (Those of a view fail by `Ledger.fail`, with their pin.)"""
    for item in found:
        w.on.execute(FAILURE_DROP, {"t": table, "p": item.part})
        row = {"table": table, "part": item.part, "kind": "check", "pin": w.seq, "attempts": 1, "retry_at": None}
        w.on.execute(insert(failure), row | {"at": w.at, "message": item.message()})


def let_go(w: Writing, table: str, parts: Iterable[int]) -> None:
    gone = [{"t": table, "p": p} for p in parts]
    if gone:
        w.on.execute(FAILURE_DROP, gone)


def accept(w: Writing, table: str, parts: Parts, who: str) -> Parts:
    """Publish these parts as they failed their checks; returns those that had failed. Other content is checked again."""
    done = []
    for p in sorted(failed_parts(w, table)):
        row = w.on.execute(_ONE, {"t": table, "p": p}).one_or_none() if p in parts else None
        if row is None or row.outcome != "failed":
            continue
        _decide(w, table, p, "accept", row.digest, who)
        w.on.execute(FAILURE_DROP, {"t": table, "p": p})
        done.append(p)
    return Parts.single(*done)


def ask_to_close(w: Writing, table: str, p: int, who: str) -> None:
    """A part of a source with checks is closed by the next ingest, after them."""
    _decide(w, table, p, "close", None, who)


def _decide(w: Writing, table: str, p: int, kind: str, digest: str | None, who: str) -> None:
    w.on.execute(_UNDECIDE, {"t": table, "p": p, "k": kind})
    values = {"table": table, "part": p, "kind": kind, "digest": digest, "who": who, "at": w.at}
    w.on.execute(insert(decision), values)


def decided(r: Reading, table: str, kind: str) -> dict[int, Decision]:
    rows = r.on.execute(_DECIDED, {"t": table, "k": kind})
    return {row.part: Decision(row.part, row.digest, row.who, row.at) for row in rows}


def failed_parts(r: Reading, table: str) -> set[int]:
    """Parts that are held back because of their checks."""
    return set(r.on.execute(_FAILED, {"t": table}).scalars())


def kept(r: Reading, table: str, p: int) -> KeptResults | None:
    row = r.on.execute(_ONE, {"t": table, "p": p}).one_or_none()
    return None if row is None else _kept(row, decided(r, table, "accept").get(p))


def newest(r: Reading, table: str, limit: int) -> list[KeptResults]:
    """What was found last: first what failed, then what was accepted or only warned about, then the newest parts."""
    order = func.instr("failed accepted warned passed", checked.c.outcome)
    if r.on.dialect.name == "postgresql":
        order = func.strpos("failed accepted warned passed", checked.c.outcome)
    rows = r.on.execute(
        select(checked).where(checked.c.table == table).order_by(order, checked.c.part.desc()).limit(limit)
    )
    accepted = decided(r, table, "accept")
    return [_kept(row, accepted.get(row.part)) for row in rows]


def counts(r: Reading) -> dict[str, dict[str, int]]:
    """How many parts of each table have which outcome; of those that passed the newest are counted."""
    found: dict[str, dict[str, int]] = {}
    query = select(checked.c.table, checked.c.outcome, func.count()).group_by(checked.c.table, checked.c.outcome)
    for table, outcome, count in r.on.execute(query):
        found.setdefault(table, {})[outcome] = count
    return found


def _kept(row: Row[tuple[object, ...]], accepted: Decision | None) -> KeptResults:
    mine = accepted if accepted is not None and accepted.digest == row.digest else None
    return KeptResults(
        part=row.part,
        at=row.at,
        outcome=row.outcome,
        rows=row.rows,
        digest=row.digest,
        mark=row.mark,
        results=from_json(row.results),
        accepted_by=mine.who if mine else None,
        accepted_at=mine.at if mine else None,
    )


def row_counts(r: Reading, table: str, lo: int, hi: int) -> dict[int, int]:
    """Rows of existing parts."""
    return {row.part: row.rows for row in r.on.execute(_ROWS, {"t": table, "a": lo, "b": hi})}


def held_files(r: Reading, table: str) -> dict[str, HeldFile]:
    rows = r.on.execute(_HELD, {"t": table})
    return {row.name: HeldFile(row.name, row.size, row.mtime, row.hash, row.lo, row.hi) for row in rows}


def is_held(held: Mapping[str, HeldFile], failing: Collection[int], name: str, size: int, mtime: int) -> bool:
    """Whether this file, as it is, makes parts fail that nobody has accepted since."""
    file = held.get(name)
    if file is None or (file.size, file.mtime) != (size, mtime):
        return False
    return any(file.lo <= p <= file.hi for p in failing)


def hold_files(w: Writing, table: str, files: Sequence[HeldFile]) -> None:
    for file in files:
        w.on.execute(_HELD_DROP, {"t": table, "n": file.name})
        values = {name: getattr(file, name) for name in ("name", "size", "mtime", "hash", "lo", "hi")}
        w.on.execute(insert(held_file), {"table": table, "at": w.at, **values})


def release_files(w: Writing, table: str, names: Iterable[str], existing: Parts) -> None:
    """These files are taken in, or gone. Parts that only they made fail are as they were."""
    for name in names:
        w.on.execute(_HELD_DROP, {"t": table, "n": name})
    left = Parts.of(*((file.lo, file.hi) for file in held_files(w, table).values()))
    fine = [p for p in failed_parts(w, table) if p in existing and p not in left]
    let_go(w, table, fine)
    forget(w, table, fine)


def forget(w: Writing, table: str, parts: Iterable[int]) -> None:
    """These parts hold what they held before: what failed meanwhile is of no interest any more."""
    for p in parts:
        w.on.execute(
            delete(checked).where(checked.c.table == table, checked.c.part == p, checked.c.outcome == "failed")
        )


def asked_for(r: Reading, table: str, existing: Parts) -> bool:
    """Whether somebody accepted parts of a source, or wants some closed, that the next load has to look at."""
    asked = [p for p in decided(r, table, "close") if p not in existing]
    return bool(lagging(r, table) or set(asked) - failed_parts(r, table))


def lagging(r: Reading, table: str) -> set[int]:
    """Parts that failed, and are to be tried again: their checks changed, or somebody accepted them."""
    query = select(checked.c.part).where(checked.c.table == table, checked.c.outcome == "failed")
    return set(r.on.execute(query).scalars()) - failed_parts(r, table)
