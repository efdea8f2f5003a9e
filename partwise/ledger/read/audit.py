"""The as-of formula as a scan: slow, obviously right. The oracle for `due`, and the way to rebuild it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import bindparam, select

from partwise.ledger.catalog import settled
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.born import stored, versions
from partwise.ledger.read.part_facts import LedgerParts
from partwise.ledger.read.validity import changed_since
from partwise.ledger.records.dimension_changes import changes_since
from partwise.ledger.runs import due_rows, existing, repaint
from partwise.ledger.schema import lost, part
from partwise.ledger.write.due_painting import frozen_below
from partwise.parts import FOREVER, Parts, Range
from partwise.plan.model import Cause, Due, parts_of_due
from partwise.plan.reach import EVERYTHING, first_part, inputs_exist
from partwise.tables import DIMENSION_PART, Graph, Table

_PARTS = select(
    part.c.part, part.c.changed_seq, part.c.as_of, part.c.self_as_of, part.c.fingerprint, part.c.born, part.c.born_at
).where(part.c.table == bindparam("t"))
_LOST = select(lost.c.part, lost.c.changed_seq).where(lost.c.table == bindparam("t"))

#: Causes that leave no trace in the records of parts.
_ASKED = ("requested", "start")


def due_by_formula(r: Reading, graph: Graph, view: Table) -> dict[int, tuple[int, Cause]]:
    """Every due part of a view with its newest cause, from the part rows alone.

    Stale: a required part changed after it was read, or rows of a dimension that it meets, another version of a forward dimension began to count, or another
    definition was used.
    Missing: never built, though everything it reads of other tables exists.
    """
    now = settled(r, view.name)
    start = now.start if now.start is not None else first_part(view, LedgerParts(r))
    if start is None:
        return {}
    floor = max(start, frozen_below(r, view, now))
    built = {row[0]: row for row in r.on.execute(_PARTS, {"t": view.name})}
    changed: Mapping[str, dict[int, int]] = {
        name: {row[0]: row[1] for query in (_LOST, _PARTS) for row in r.on.execute(query, {"t": name})}
        for name in (*view.input_names, view.name)
    }
    said = {name: versions(r, name) for name in view.input_names if name in graph.forward}
    whole = {item.table for item in (*view.initial, *view.inputs) if item.reference is None}
    changes = {name: changes_since(r, view, name, -1) for name in whole}
    found: dict[int, tuple[int, Cause]] = {}
    missing = inputs_exist(view, start, EVERYTHING, LedgerParts(r)) - existing(r, view.name)
    for j in sorted({*(p for p in built if p >= floor), *missing.within(floor, FOREVER)}):
        row = built.get(j)
        causes = []
        for item in view.initial if j == start else view.inputs:
            since = -1 if row is None else row[3] if item.table == view.name else row[2]
            if item.table == view.name and row is None:
                continue
            if item.table in graph.timed:
                seq = changed_since(r, graph, item.table, view, start, j, since)
                causes += (
                    [(seq, Cause("input", item.table, Range(DIMENSION_PART, DIMENSION_PART)))] if seq > since else []
                )
                continue
            span = Range(DIMENSION_PART, DIMENSION_PART) if item.reference is None else item.reference.requires(j)
            lo = max(span.lo, start) if item.table == view.name else span.lo
            for p in range(lo, span.hi + 1):
                seq = changed[item.table].get(p, -1) if item.reference is not None else changes[item.table].newest(j)
                if seq > since:
                    causes.append((seq, Cause("input", item.table, Range(p, p))))
            if row is not None and item.table in said:
                seq = said[item.table].changed(stored(row[5], row[6]), since)
                causes += [(seq, Cause("repin", item.table))] if seq > since else []
        if row is not None and row[4] != view.fingerprint:
            causes.append((r.seq, Cause("definition")))
        if row is None and not causes:  # all that it reads lies before the start of what it reads
            causes.append((r.seq, Cause("start")))
        if causes:
            found[j] = max(causes, key=lambda cause: cause[0])
    return found


def rebuild(w: Writing, graph: Graph, view: Table) -> None:
    """Set what is due for a view from the formula. What is due without a cause in it stays."""
    old = due_rows(w, view.name)
    found = due_by_formula(w, graph, view)
    asked = {j: row for row in old if row.cause.kind in _ASKED for j in range(row.lo, row.hi + 1)}

    def since(j: int) -> float:
        return next((row.since for row in old if row.lo <= j <= row.hi), w.now)

    def since_seq(j: int) -> int:
        return next((row.since_seq for row in old if row.lo <= j <= row.hi), w.seq)

    new = {j: Due(j, j, seq, since(j), cause, since_seq(j)) for j, (seq, cause) in found.items()}
    for j, row in asked.items():  # it stays what it is whatever happens beside it, as in `paint`
        new[j] = replace(row, lo=j, hi=j, seq=max(row.seq, new[j].seq) if j in new else row.seq)
    repaint(w, view.name, new.values())


def audit(r: Reading, graph: Graph) -> dict[str, tuple[Parts, Parts]]:
    """Views whose `due` differs from the formula: (due by formula only, due in the ledger only).

    Parts that someone requested, or that were the first part before an earlier start, are due without
    a cause in the formula.
    """
    different = {}
    for view in (graph[name] for name in graph.order if graph[name].kind == "view"):
        rows = due_rows(r, view.name)
        asked = parts_of_due(row for row in rows if row.cause.kind in _ASKED)
        ledger = parts_of_due(rows)
        formula = Parts.single(*due_by_formula(r, graph, view))
        if formula - ledger or ledger - formula - asked:
            different[view.name] = (formula - ledger, ledger - formula - asked)
    return different
