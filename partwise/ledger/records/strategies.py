"""How windows are kept, as ledger state: settled once, by counts, and used by everyone from then on.

A worker that chose by itself would define its own variant, another one the other: they would undo each other's work
for ever. So the choice is a row, and definitions that were made with other rows than these are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields

from sqlalchemy import bindparam, delete, insert, select, update

from partwise.ledger.catalog import Catalog
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.pin import DefinitionChanged
from partwise.ledger.records.kept_states import KeptChoice, choices
from partwise.ledger.runs import due_rows, existing
from partwise.ledger.schema import cover, part, strategy
from partwise.ledger.write.define import changes, define
from partwise.ledger.write.leases import must_be_free
from partwise.plan.model import parts_of_due
from partwise.tables import Graph, Table, is_dated

_ALL = select(strategy)
_COVERS = select(cover.c.view, cover.c.base)
_UNCOVER = delete(cover).where(cover.c.view == bindparam("v"))
_DROP = delete(strategy).where(strategy.c.view == bindparam("v"))
_WITH_ROWS = (
    select(part.c.part)
    .where(part.c.table == bindparam("t"), part.c.part.between(bindparam("a"), bindparam("b")), part.c.rows > 0)
    .limit(1)
)
_ROWS = select(part.c.rows).where(part.c.table == bindparam("t")).order_by(part.c.part.desc()).limit(100)
_AGAIN = update(strategy).where(strategy.c.view == bindparam("v")).values(again=True)


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


class Settlements(dict[str, Settlement]):
    """By view. `owners`: fingerprints of views that have helpers of their own in the ledger, called after them.
    `covers`: which panes views read that hold more than they need, as `partwise.compile.sharing.cover` writes it.
    `kept`: what was chosen to be kept of views."""

    def __init__(
        self,
        found: Mapping[str, Settlement],
        owners: Mapping[str, str] | None = None,
        covers: Mapping[str, str] | None = None,
        kept: Mapping[str, KeptChoice] | None = None,
    ) -> None:
        super().__init__(found)
        self.owners = {} if owners is None else dict(owners)
        self.covers = {} if covers is None else dict(covers)
        self.kept = {} if kept is None else dict(kept)


def settlements(r: Reading, graph: Graph | None = None) -> Settlements:
    """`graph` is what the ledger has; without it, nobody owns helpers."""
    names = [field.name for field in fields(Settlement)]
    found = (Settlement(**{name: getattr(row, name) for name in names}) for row in r.on.execute(_ALL))
    covers = {row.view: row.base for row in r.on.execute(_COVERS)}
    own = None if graph is None else owners(graph)
    return Settlements({item.view: item for item in found}, own, covers, choices(r))


def owners(graph: Graph) -> dict[str, str]:
    found = {}
    for name, table in graph.tables.items():
        view = table.helper_of
        if view is not None and view in graph.tables and name.startswith(f"{view}__"):
            found[view] = graph[view].fingerprint
    return found


def same(one: Settlements, other: Settlements) -> bool:
    """Whether definitions made with either of them are the same."""
    chosen = ({view: item.strategy for view, item in known.items()} for known in (one, other))
    kept = ({view: item.what for view, item in known.kept.items()} for known in (one, other))
    alike = (one.owners, one.covers) == (other.owners, other.covers)
    return next(chosen) == next(chosen) and alike and next(kept) == next(kept)


def write(w: Writing, item: Settlement) -> None:
    w.on.execute(_DROP, {"v": item.view})
    w.on.execute(insert(strategy), asdict(item) | {"seq": w.seq, "at": w.at})


def uncover(w: Writing, view: str) -> None:
    w.on.execute(_UNCOVER, {"v": view})


def cover_views(w: Writing, covers: Mapping[str, str], graph: Graph) -> None:
    """Note which panes views read, and forget those of views that are gone."""
    known = {row.view for row in w.on.execute(_COVERS)}
    for view in known & covers.keys() | known - graph.tables.keys():
        uncover(w, view)
    if covers:
        w.on.execute(insert(cover), [{"view": view, "base": base, "seq": w.seq} for view, base in covers.items()])


def tables_of(graph: Graph, view: str) -> dict[str, Table]:
    """The view and its helpers, shared ones included."""
    return {name: table for name, table in graph.tables.items() if view in table.for_views}


def tables_between(now: Graph, then: Graph, view: str) -> tuple[dict[str, Table], dict[str, Table]]:
    """The tables that belong to the view now or then, as they are in both: shared helpers serve others as well."""
    names = {*tables_of(now, view), *tables_of(then, view)}
    before, after = ({n: t for n, t in each.tables.items() if n in names} for each in (now, then))
    return before, after


def _kept_for(graph: Graph, view: str) -> list[str]:
    """Those of them that depend on the strategy."""
    return [name for name in tables_of(graph, view) if not is_dated(view, name)]


#: The helpers of groups of a join that keep each stream by itself.
_FACTOR = {"a", "b"}


def usual_rows(r: Reading, table: str) -> int | None:
    """Rows in a part, on the average of the newest ones; None while there are none."""
    found = [rows for rows in r.on.execute(_ROWS, {"t": table}).scalars() if rows]
    return round(sum(found) / len(found)) if found else None


def groups_in_pane(r: Reading, graph: Graph, view: str, item: Settlement | None, rows: int) -> int | None:
    """As the helpers with panes have them by now; else as they were counted, grown as rows have (`rows` in a part).

    Never the rows of the view itself: they are after HAVING, and of the whole window. How many rows a join has, no
    helper of its groups tells.
    """
    helpers = [graph[name] for name in _kept_for(graph, view) if name != view]
    panes = [each.name for each in helpers if each.helper_kind not in ("age", "rolling", "cells", *_FACTOR)]
    found = [n for name in panes if (n := usual_rows(r, name)) is not None]
    if found:
        return sum(found)
    if item is None or item.groups is None or not item.rows:
        return None
    return round(item.groups * rows / item.rows)


def kept_as(graph: Graph, view: str) -> str:
    """How the ledger's own tables keep a window: it is seen by the helpers."""
    helpers = {graph[name].helper_kind for name in _kept_for(graph, view) if name != view}
    if helpers in ({"last"}, {"grid"}, {"cells"}):
        return helpers.pop()
    if helpers == _FACTOR:
        return "factor"
    return "subtract" if "rolling" in helpers else "merge" if helpers - {"age"} else "recompute"


def is_built(r: Reading, graph: Graph, view: str) -> bool:
    """Whether there is content that another strategy would have to build again. What is due is built again anyway, and
    what others read stays."""
    for name in _kept_for(graph, view):
        if graph[name].also:
            continue
        fresh = existing(r, name) - parts_of_due(due_rows(r, name))
        for lo, hi in fresh.ranges:
            if r.on.execute(_WITH_ROWS, {"t": name, "a": lo, "b": hi}).first() is not None:
                return True
    return False


def count_again(w: Writing, view: str) -> None:
    w.on.execute(_AGAIN, {"v": view})


def settle(
    w: Writing,
    store: Catalog,
    item: Settlement,
    before: Mapping[str, Table],
    after: Mapping[str, Table],
    dead: Callable[[str], bool],
) -> bool:
    """Keep a window in this way from now on: the tables `before` become those `after`. Both have the tables of the view,
    as far as they exist then: a shared helper stays with the views that it still serves, or gets one more.

    False: parts would be lost by it. Raises Busy while somebody writes one of the tables, DefinitionChanged if they are
    not those that the ledger has.
    """
    graph = store.graph(w)
    if {name: graph.tables[name] for name in {*before, *after} if name in graph.tables} != dict(before):
        raise DefinitionChanged(item.view)
    # Only the tables of this view: of others the caller's files may be older than the ledger.
    others = {name: table for name, table in graph.tables.items() if name not in before}
    wanted = Graph({**others, **after})
    found = changes(w, wanted)
    if found:
        must_be_free(w, {*before, *after}, dead)
    if any(existing(w, name) for name in found.restarted if name not in after or name == item.view):
        return False
    write(w, item)
    define(w, wanted, store)
    return True
