"""What the scheduler has been told: decided and remembered in one transaction, so that nobody says the same twice."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from partwise.announce import Told, ready_views, to_tell
from partwise.announce.decide import Ready
from partwise.ledger.database import Reading, Writing
from partwise.ledger.facts import LedgerFacts
from partwise.ledger.ledger import Ledger
from partwise.ledger.read.forward_why import versions_of_view
from partwise.ledger.schema import announcement, lease
from partwise.parts import parse_range
from partwise.plan.planner import look_around
from partwise.tables import Graph

_TOLD = select(announcement)
_DROP = delete(announcement).where(announcement.c.table == bindparam("t"))
_BEGIN = (
    update(announcement)
    .where(announcement.c.table == bindparam("t"))
    .values(begun=bindparam("s"), run=bindparam("r"), at=bindparam("a"))
)
_TURN = update(announcement).where(announcement.c.table == bindparam("t"), announcement.c.begun.is_(None))
_LEASED = select(lease.c.table).where(lease.c.holder.is_not(None), lease.c.expires > bindparam("now"))

#: Keys with their reasons, by view.
Keys = Mapping[str, Mapping[str, str]]


def announce(
    ledger: Ledger,
    now: float,
    only: Collection[str] | None = None,
    live: Mapping[str, bool] | None = None,
    ended: tuple[str, str] | None = None,
) -> Keys:
    """What is to be told now (of these views), and from now on counts as told. See `partwise.announce.decide`."""
    graph = ledger.graph()
    with ledger.database.reading() as r:
        if not news(r, graph, now, only, live, ended) and (ended is None or ended[0] not in told(r)):
            return {}
    with ledger.database.writing(now) as w:
        return tell(w, graph, only, live, ended)


def concerned(graph: Graph, table: str) -> frozenset[str]:
    """Views that may have something to do after a run of this table: what reads it or a helper of it, and itself."""
    written = [name for name, each in graph.tables.items() if table in each.for_views] or [table]
    served = {view for name in graph.downstream(written) for view in graph[name].for_views} | {table}
    return frozenset(name for name in served if name in graph.tables and graph[name].kind == "view")


def ends_quietly(ledger: Ledger, now: float, view: str, run: str) -> bool:
    """Whether a run of a view that ends now has nothing to tell; then it is over. Else nothing happens here."""
    graph = ledger.graph()
    asked = (graph, now, concerned(graph, view), None, (view, run))
    with ledger.database.reading() as r:
        if news(r, *asked):
            return False
    with ledger.database.writing(now) as w:
        if news(w, *asked):
            return False
        forget(w, view, run)
    return True


def told(r: Reading) -> dict[str, Told]:
    return {row.table: Told(row.at, row.tries, row.begun, row.run) for row in r.on.execute(_TOLD)}


def news(
    r: Reading,
    graph: Graph,
    now: float,
    only: Collection[str] | None,
    live: Mapping[str, bool] | None,
    ended: tuple[str, str] | None = None,
) -> list[Ready]:
    """What would be told now."""
    facts = LedgerFacts(r)
    known = told(r)
    if ended is not None and (row := known.get(ended[0])) is not None and row.run == ended[1]:
        del known[ended[0]]
    ready = ready_views(graph, facts, look_around(graph, facts, now), only)
    return to_tell(ready, known, now, live)


def tell(
    w: Writing,
    graph: Graph,
    only: Collection[str] | None,
    live: Mapping[str, bool] | None,
    ended: tuple[str, str] | None = None,
) -> Keys:
    """Decide what to tell, and remember it. `ended` is the view and the run that ends with this."""
    found = news(w, graph, w.now, only, live, ended)
    known = told(w)
    if ended is not None:
        forget(w, *ended)
    keys = {item.view: _with_versions(w, graph, item.view, item.keys(graph)) for item in found}
    for item in found:
        before = known.get(item.view)
        # Told in vain: neither did a run of it begin, nor did anything new become due.
        again = before is not None and before.begun is None
        row = {"table": item.view, "keys": json.dumps(keys[item.view]), "at": w.now, "begun": None, "run": None}
        w.on.execute(_DROP, {"t": item.view})
        w.on.execute(insert(announcement), row | {"tries": (before.tries + 1) if again and before else 1})
    return keys


def _with_versions(r: Reading, graph: Graph, view: str, keys: Mapping[str, str]) -> dict[str, str]:
    """The reasons, each with the versions of forward dimensions that the last part of the key reads."""
    if not graph.forward:
        return dict(keys)
    found = {}
    for key, reason in keys.items():
        versions = versions_of_view(r, graph, view, parse_range(key, graph[view].length).hi)
        found[key] = "; ".join([reason, *versions])
    return found


def begin(w: Writing, view: str, run: str) -> None:
    """A run of the view begins to work: what becomes due from now on is not this run's."""
    values = {"t": view, "s": w.seq, "r": run, "a": w.now}
    if w.on.execute(_BEGIN, values).rowcount == 0:
        row = {"table": view, "keys": "{}", "at": w.now, "tries": 1, "begun": w.seq, "run": run}
        w.on.execute(insert(announcement), row)


def wait_for_turn(on: Connection, view: str, run: str) -> None:
    """A run of a view that was told has found something ready, and waits until it may compute."""
    on.execute(_TURN.values(run=run), {"t": view})


def in_turn(r: Reading) -> frozenset[str]:
    """Views with a run that waits until it may compute."""
    return frozenset(view for view, item in told(r).items() if item.begun is None and item.run is not None)


def forget(w: Writing, view: str, run: str | None) -> None:
    """A run has ended, or (without one) turned out to have nothing to do before it began."""
    mine = announcement.c.begun.is_(None) if run is None else announcement.c.run == run
    w.on.execute(delete(announcement).where(announcement.c.table == view, mine))


def leased(r: Reading, now: float) -> frozenset[str]:
    """Tables that somebody is writing."""
    return frozenset(r.on.execute(_LEASED, {"now": now}).scalars())
