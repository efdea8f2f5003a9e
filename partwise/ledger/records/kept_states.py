"""What of views is kept so that late rows cost less, as ledger state: chosen once, used by everyone from then on.

As with strategies of windows the choice is a row, or workers would undo each other's helpers. A choice that is wrong,
or made for a query that has changed since, costs time and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from statistics import median

from sqlalchemy import bindparam, delete, func, insert, select, update

from partwise.ledger.catalog import Catalog
from partwise.ledger.database import Reading, Writing
from partwise.ledger.read.pin import DefinitionChanged
from partwise.ledger.schema import arrival, kept_state, part, state_review, step
from partwise.ledger.write.define import changes, define
from partwise.ledger.write.leases import must_be_free
from partwise.tables import DIMENSION_PART, Graph, Table

_ALL = select(kept_state)
_DROP = delete(kept_state).where(kept_state.c.view == bindparam("v"))
_REVIEW = select(state_review.c.late, state_review.c.budget, state_review.c.at)
_LATE = select(arrival.c.table, func.count()).where(arrival.c.late).group_by(arrival.c.table)
_ANY_LATE = select(arrival.c.table).where(arrival.c.late).limit(1)
_TOOK = select(step.c.from_kept, step.c.seconds, step.c.parts).where(
    step.c.table == bindparam("t"), step.c.from_kept.is_not(None)
)
_CONTENTS = select(part.c.revision).where(part.c.table == bindparam("t"), part.c.part == DIMENSION_PART)


@dataclass(frozen=True, slots=True)
class KeptChoice:
    """`join` are aliases of inputs that are kept joined, `groups`: whether those of a GROUP BY are; of each part for `until`
    seconds. `bytes`, `cost` and `recompute` (in rows read, with and without) are of a part, for the deliveries expected."""

    view: str
    join: tuple[str, ...]
    groups: bool
    mark: str
    until: int
    bytes: float = 0.0
    cost: float = 0.0
    recompute: float = 0.0
    deliveries: float = 0.0

    @property
    def what(self) -> tuple[tuple[str, ...], bool, str, int]:
        """All that tables depend on."""
        return self.join, self.groups, self.mark, self.until


@dataclass(frozen=True, slots=True)
class Took:
    """Median seconds that steps took for a part with and without what is kept, and how many steps there were of each."""

    kept: float | None
    kept_steps: int
    plain: float | None
    plain_steps: int


def choices(r: Reading) -> dict[str, KeptChoice]:
    found = {}
    for row in r.on.execute(_ALL):
        figures = (row.bytes, row.cost, row.recompute, row.deliveries)
        found[row.view] = KeptChoice(row.view, tuple(json.loads(row.join)), row.groups, row.mark, row.until, *figures)
    return found


def late_arrivals(r: Reading) -> dict[str, int]:
    """Late deliveries by source; an index holds them."""
    return {row[0]: int(row[1]) for row in r.on.execute(_LATE)}


def nothing_to_choose(r: Reading, budget: int) -> bool:
    """Whether nothing is kept, and nothing comes late for which anything could be."""
    late = r.on.execute(_ANY_LATE).first() is not None if budget else False
    return not late and r.on.execute(_ALL).first() is None


def reviewed(r: Reading) -> tuple[int, int, float] | None:
    """Late deliveries and budget when it was last looked at what is worth keeping, and when."""
    row = r.on.execute(_REVIEW).first()
    return None if row is None else (row.late, row.budget, row.at)


def note_review(w: Writing, late: int, budget: int) -> None:
    values = {"late": late, "budget": budget, "at": w.at}
    if not w.on.execute(update(state_review).values(values)).rowcount:
        w.on.execute(insert(state_review), {"id": 1, **values})


def contents_seen(r: Reading, dimension: str) -> int:
    """How many contents a dimension has had."""
    return int(r.on.execute(_CONTENTS, {"t": dimension}).scalar() or 0)


def took(r: Reading, table: str) -> Took:
    rows = r.on.execute(_TOOK, {"t": table}).all()
    with_it = [row.seconds / row.parts for row in rows if row.from_kept]
    plain = [row.seconds / row.parts for row in rows if not row.from_kept]
    return Took(
        median(with_it) if with_it else None, len(with_it), median(plain) if plain else None, len(plain)
    )  # fmt: skip


def keep(
    w: Writing,
    store: Catalog,
    wanted: Mapping[str, KeptChoice | None],
    after: Mapping[str, Table],
    names: Collection[str],
    dead: Callable[[str], bool],
) -> None:
    """From now on these outputs are kept (None: nothing of the view any more). `names` are all helpers concerned, `after`
    those that there are then. Raises Busy while somebody writes one of them, DefinitionChanged if a view is another one.
    """
    graph = store.graph(w)
    if any(view not in graph.tables for view in wanted):
        raise DefinitionChanged(next(view for view in wanted if view not in graph.tables))
    then = Graph({**{n: t for n, t in graph.tables.items() if n not in names}, **after})
    if changes(w, then):
        must_be_free(w, names, dead)
    for view, choice in wanted.items():
        w.on.execute(_DROP, {"v": view})
        if choice is not None:
            row = {"view": view, "join": json.dumps(choice.join), "groups": choice.groups, "mark": choice.mark}
            figures = {"until": choice.until, "bytes": choice.bytes, "cost": choice.cost}
            more = {"recompute": choice.recompute, "deliveries": choice.deliveries, "seq": w.seq, "at": w.at}
            w.on.execute(insert(kept_state), {**row, **figures, **more})
    define(w, then, store)
