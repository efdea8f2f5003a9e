"""How windows are kept, as ledger state: settled once, by counts, and used by everyone from then on.

A worker that chose by itself would define its own variant, another one the other: they would undo each other's work
for ever. So the choice is a row, and definitions that were made with other rows than these are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields

from sqlalchemy import bindparam, delete, insert, select, update

from partwise.ledger.catalog import Catalog
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.pin import DefinitionChanged
from partwise.ledger.runs import due_rows, existing
from partwise.ledger.schema import lease, part, strategy
from partwise.ledger.write.define import changes, define
from partwise.ledger.write.leases import Busy
from partwise.plan.model import parts_of_due
from partwise.tables import Graph, Table, is_dated

_ALL = select(strategy)
_DROP = delete(strategy).where(strategy.c.view == bindparam("v"))
_WITH_ROWS = (
    select(part.c.part)
    .where(part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b")), part.c.rows > 0)
    .limit(1)
)
_ROWS = select(part.c.rows).where(part.c.table == bindparam("t")).order_by(part.c.part.desc()).limit(100)
_AGAIN = update(strategy).where(strategy.c.view == bindparam("v")).values(again=True)
_HELD = select(lease.c.table, lease.c.holder, lease.c.expires).where(
    lease.c.holder.is_not(None), lease.c.expires > bindparam("now")
)


class SettledMeanwhile(Exception):
    """These definitions were made with other strategies than the ledger has now: make them again."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """`rows` in a part of what the view reads and `groups` in a pane, as they were counted; None: nobody has.

    `again`: they are counted once more before the next step.
    """

    view: str
    strategy: str
    mark: str
    why: str
    rows: int | None = None
    groups: int | None = None
    again: bool = False
    at: float = 0.0


def settlements(r: Reading) -> dict[str, Settlement]:
    names = [field.name for field in fields(Settlement)]
    found = (Settlement(**{name: getattr(row, name) for name in names}) for row in r.on.execute(_ALL))
    return {item.view: item for item in found}


def chosen(known: Mapping[str, Settlement]) -> dict[str, str]:
    return {view: item.strategy for view, item in known.items()}


def write(w: Writing, item: Settlement) -> None:
    w.on.execute(_DROP, {"v": item.view})
    w.on.execute(insert(strategy), asdict(item) | {"seq": w.seq, "at": w.at})


def tables_of(graph: Graph, view: str) -> dict[str, Table]:
    """The view and its helpers."""
    return {name: table for name, table in graph.tables.items() if view in (name, table.helper_of)}


def _kept_for(graph: Graph, view: str) -> list[str]:
    """Those of them that depend on the strategy."""
    return [name for name in tables_of(graph, view) if not is_dated(view, name)]


def usual_rows(r: Reading, table: str) -> int | None:
    """Rows in a part, on the average of the newest ones; None while there are none."""
    found = [rows for rows in r.on.execute(_ROWS, {"t": table}).scalars() if rows]
    return round(sum(found) / len(found)) if found else None


def groups_in_pane(r: Reading, graph: Graph, view: str, item: Settlement | None, rows: int) -> int | None:
    """As the helpers with panes have them by now; else as they were counted, grown as rows have (`rows` in a part).

    Never the rows of the view itself: they are after HAVING, and of the whole window.
    """
    panes = [n for n in _kept_for(graph, view) if n != view and not n.endswith(("__age", "__rolling"))]
    found = [n for name in panes if (n := usual_rows(r, name)) is not None]
    if found:
        return sum(found)
    if item is None or item.groups is None or not item.rows:
        return None
    return round(item.groups * rows / item.rows)


def kept_as(graph: Graph, view: str) -> str:
    """How the ledger's own tables keep a window: it is seen by the helpers."""
    helpers = {name.removeprefix(f"{view}__") for name in _kept_for(graph, view) if name != view}
    if helpers in ({"last"}, {"grid"}):
        return helpers.pop()
    return "subtract" if "rolling" in helpers else "merge" if helpers - {"age"} else "recompute"


def is_built(r: Reading, graph: Graph, view: str) -> bool:
    """Whether there is content that another strategy would have to build again. What is due is built again anyway."""
    for name in _kept_for(graph, view):
        fresh = existing(r, name) - parts_of_due(due_rows(r, name))
        for lo, hi in fresh.ranges:
            if r.on.execute(_WITH_ROWS, {"t": name, "a": lo, "b": hi}).first() is not None:
                return True
    return False


def count_again(w: Writing, view: str) -> None:
    w.on.execute(_AGAIN, {"v": view})


def _must_be_free(w: Writing, names: Collection[str], dead: Callable[[str], bool]) -> None:
    """Raises Busy if somebody who lives has the lease of one of these tables."""
    for row in w.on.execute(_HELD, {"now": w.now}):
        if row.table in names and not dead(row.holder):
            raise Busy(row.table, row.holder, row.expires)


def settle(
    w: Writing,
    store: Catalog,
    item: Settlement,
    before: Mapping[str, Table],
    after: Mapping[str, Table],
    dead: Callable[[str], bool],
) -> bool:
    """Keep a window in this way from now on: the tables `before` become those `after`.

    False: parts would be lost by it. Raises Busy while somebody writes one of the tables, DefinitionChanged if they are
    not those that the ledger has.
    """
    graph = store.graph(w)
    if tables_of(graph, item.view) != dict(before):
        raise DefinitionChanged(item.view)
    # Only the tables of this view: of others the caller's files may be older than the ledger.
    others = {name: table for name, table in graph.tables.items() if name not in before}
    wanted = Graph({**others, **after})
    found = changes(w, wanted)
    if found:
        _must_be_free(w, {*before, *after}, dead)
    if any(existing(w, name) for name in found.restarted if name not in after or name == item.view):
        return False
    write(w, item)
    define(w, wanted, store)
    return True
