"""Parts that are mixed now: marked when they are recorded, until they are repaired or their inputs prove unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, func, insert, select

from partwise.ledger.database import Reading, Writing
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.schema import mixed
from partwise.parts import Parts
from partwise.plan.closure import not_up_to_date
from partwise.plan.mixing import Read, still_mixed
from partwise.tables import Graph

_ANY = select(mixed.c.table).limit(1)
_ALL = select(mixed.c.table, mixed.c.part)
_OF = select(mixed).where(mixed.c.table.in_(bindparam("names", expanding=True)))
_ONE = select(mixed).where(mixed.c.table == bindparam("t"), mixed.c.part == bindparam("p"))
_DROP = delete(mixed).where(mixed.c.table == bindparam("t"), mixed.c.part == bindparam("p"))
_COUNTS = select(mixed.c.table, func.count()).group_by(mixed.c.table)


@dataclass(frozen=True, slots=True)
class Mixture:
    """A part that read these inputs, as of a sequence, while they were not up to date."""

    table: str
    part: int
    as_of: int
    reads: tuple[Read, ...]


def mixtures(r: Reading, table: str | None = None) -> list[Mixture]:
    rows = r.on.execute(select(mixed) if table is None else select(mixed).where(mixed.c.table == table))
    found = [Mixture(row.table, row.part, row.as_of, from_text(row.reads)) for row in rows]
    return sorted(found, key=lambda item: (item.table, item.part))


def mixture_of(r: Reading, table: str, p: int) -> Mixture | None:
    row = r.on.execute(_ONE, {"t": table, "p": p}).one_or_none()
    return None if row is None else Mixture(row.table, row.part, row.as_of, from_text(row.reads))


def mixed_counts(r: Reading) -> dict[str, int]:
    return {row[0]: row[1] for row in r.on.execute(_COUNTS)}


def mixed_parts(r: Reading) -> dict[str, Parts]:
    """The parts that are mixed now, by table."""
    found: dict[str, list[int]] = {}
    for name, p in r.on.execute(_ALL):
        found.setdefault(name, []).append(p)
    return {name: Parts.single(*parts) for name, parts in found.items()}


def mark(w: Writing, table: str, computed: Parts, reads: Mapping[int, Iterable[Read]], as_of: int) -> None:
    """These parts were computed; those with `reads` are mixed from now on, others are no longer."""
    if w.on.execute(_ANY).first() is not None:
        for lo, hi in computed.ranges:
            w.on.execute(delete(mixed).where(mixed.c.table == table, mixed.c.part.between(lo, hi)))
    rows = [{"table": table, "part": p, "as_of": as_of, "reads": to_text(reads[p])} for p in computed if p in reads]
    if rows:
        w.on.execute(insert(mixed), rows)


def lift(w: Writing, graph: Graph, table: str) -> None:
    """What was mixed because of this table, and is not any more: all that it read is up to date, and did not change.

    If it had changed, its readers would be due: what is due stays marked until it is computed again.
    """
    if w.on.execute(_ANY).first() is None:
        return
    names = list(graph.downstream([table]))
    rows = w.on.execute(_OF, {"names": names}).all()
    if not rows:
        return
    facts = LedgerFacts(w)
    dirty = not_up_to_date(graph, facts, {row.table for row in rows})
    due = {name: Parts.of(*((row.lo, row.hi) for row in found)) for name, found in facts.due().items()}
    gone = [
        {"t": row.table, "p": row.part}
        for row in rows
        if row.part not in due.get(row.table, Parts()) and not still_mixed(from_text(row.reads), dirty)
    ]
    if gone:
        w.on.execute(_DROP, gone)


def to_text(reads: Iterable[Read]) -> str:
    return json.dumps([list(item) for item in reads])


def from_text(text: str) -> tuple[Read, ...]:
    return tuple((name, lo, hi) for name, lo, hi in json.loads(text))
