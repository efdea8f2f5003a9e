"""Refresh policies in the ledger: when each fired last and why, and the rows that came since.

A firing is recorded by the step, under the lease, before its pin; what was due by then stays released until it is
computed, however many steps that takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import bindparam, delete, insert, select, update

from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import refresh, refresh_rows
from partwise.plan.refresh import Refreshed
from partwise.tables import Graph

_FIRED = select(refresh.c.view, refresh.c.fired_at, refresh.c.why)
_ROWS = select(refresh_rows.c.view, refresh_rows.c.input, refresh_rows.c.rows)
_FIRE = (
    update(refresh)
    .where(refresh.c.view == bindparam("v"))
    .values(fired_at=bindparam("a"), fired_seq=bindparam("s"), why=bindparam("w"))
)
_ZERO = delete(refresh_rows).where(refresh_rows.c.view == bindparam("v"))
_MORE = (
    update(refresh_rows)
    .where(refresh_rows.c.view == bindparam("v"), refresh_rows.c.input == bindparam("i"))
    .values(rows=refresh_rows.c.rows + bindparam("n"))
)


def refreshed(r: Reading) -> Mapping[str, Refreshed]:
    """By view. Two small tables: one row a policy, one a policy and input."""
    rows: dict[str, dict[str, int]] = {}
    for view, name, count in r.on.execute(_ROWS):
        rows.setdefault(view, {})[name] = count
    fired = {view: (at, why) for view, at, why in r.on.execute(_FIRED)}
    return {view: Refreshed(*fired.get(view, (None, "")), rows.get(view, {})) for view in fired.keys() | rows.keys()}


def fire(w: Writing, view: str, why: str) -> None:
    """Everything of this view that is due by now is released; rows are counted from zero again."""
    given = {"v": view, "a": w.now, "s": w.seq, "w": why}
    if not w.on.execute(_FIRE, given).rowcount:
        w.on.execute(insert(refresh), {"view": view, "fired_at": w.now, "fired_seq": w.seq, "why": why})
    w.on.execute(_ZERO, {"v": view})


def count_rows(w: Writing, graph: Graph, table: str, rows: int) -> None:
    """Rows of a table came or changed: counted once for each view with a policy that reads it, helpers included."""
    readers = (graph[name] for name in graph.consumers.get(table, ()))
    views = {r.family for r in readers if r.refresh is not None and graph[table].family != r.family}
    for view in sorted(views if rows else ()):
        if not w.on.execute(_MORE, {"v": view, "i": table, "n": rows}).rowcount:
            w.on.execute(insert(refresh_rows), {"view": view, "input": table, "rows": rows})


def forget(w: Writing, views: Iterable[str]) -> None:
    for view in views:
        w.on.execute(_ZERO, {"v": view})
        w.on.execute(delete(refresh).where(refresh.c.view == view))
