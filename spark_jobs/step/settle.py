"""Before the first part of a window: count, choose how it is kept, and let the ledger know.

    rows of the newest parts (the ledger knows them), groups of one pane (its query tells) -> strategy -> one transaction

What was built is left alone: a view with parts is settled as it is. Where nothing can be counted yet it goes on by the
query alone, and is looked at again before its next step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame
from sqlalchemy import bindparam, select

from partwise.choose.covering import share_of_own, with_cover
from partwise.choose.families import chosen, family
from partwise.choose.settled import FOUND, too_late_to_share
from partwise.choose.window import WORTH_IT, is_worth_it
from partwise.compile import Choice, WindowShape
from partwise.compile.program import CompiledView, Runnable
from partwise.compile.sharing.cover import panes_of
from partwise.ledger.database import Reading
from partwise.ledger.read.pin import Pin, Version, version_of
from partwise.ledger.records.strategies import Settlement, is_built, kept_as, settlements, tables_between, usual_rows
from partwise.ledger.runs import existing
from partwise.ledger.schema import part
from partwise.ledger.write.lease_holding import is_dead
from partwise.ledger.write.leases import Busy
from partwise.parts import Parts
from partwise.storage.schema import quoted
from partwise.tables import is_dated
from spark_jobs.engine import Engine
from spark_jobs.retry import SPARK_ERRORS, is_infrastructure
from spark_jobs.step.compute import Computing, QueryFailed

log = logging.getLogger("partwise.settle")

_NEWEST = (
    select(part.c.part).where(part.c.table == bindparam("t"), part.c.rows > 0).order_by(part.c.part.desc()).limit(200)
)


def settle(engine: Engine, table: str) -> None:
    """Settle how the windows are kept that this table belongs to, unless they are settled or there is none.

    The engine goes on with the definitions as they are then. Raises DefinitionChanged if the ledger has others.
    """
    for view in _windows(engine, table):
        if view.name not in engine.settled:
            _settle(engine, view)


def _settle(engine: Engine, view: CompiledView) -> None:
    with engine.ledger.database.reading() as r:
        graph = engine.ledger.graph_at(r)
        known = settlements(r, graph)
        before, way = known.get(view.name), kept_as(graph, view.name)
        same_query = before is not None and before.mark == view.mark
        counted = before is not None and same_query and not before.again and before.rows is not None
        built = counted or is_built(r, graph, view.name)
    engine.catch_up(known)
    if counted or (before is not None and same_query and built and not before.again):
        engine.settled.add(view.name)
        return
    reads = True
    if not built:
        wanted = _counted(engine, view)
        if wanted is not None and view.name in engine.definitions.covered:
            wanted, reads = _with_cover(engine, view, wanted)
    elif before is not None and same_query and before.again:
        wanted = _looked_at_again(engine, view, before)
    else:
        wanted = _as_it_is(view, way, before)
    if wanted is None:
        return
    engine.passed("counted")

    def still(r: Reading) -> bool:
        same = settlements(r).get(view.name) == before
        return same and is_built(r, engine.ledger.graph_at(r), view.name) == built

    try:
        done = _written(engine, wanted, still, reads)
        if not done and built and before is not None:  # parts would be lost by another way: it stays
            done = _written(engine, replace(before, rows=wanted.rows, groups=wanted.groups, again=False), still)
    except Busy:
        return  # it goes on as it is, and is looked at again before its next step
    if done:
        engine.passed("settled")
    engine.settled.add(view.name)
    engine.catch_up()


def _windows(engine: Engine, table: str) -> list[CompiledView]:
    """The view that this table is, or those that it serves, where there are several ways and nobody has requested one."""
    found = engine.definitions.usable.get(table)
    if not isinstance(found, Runnable) or not engine.settling:
        return []
    views = [engine.definitions.views[each.name] for each in found.served if each.name in engine.definitions.views]
    return [view for view in views if view.shape is not None and view.is_free]


def _with_cover(engine: Engine, view: CompiledView, wanted: Settlement) -> tuple[Settlement, bool]:
    """Whether the panes of others that hold more than the view needs are worth reading, now that there are counts."""
    assert view.shape is not None
    assert wanted.rows is not None
    (panes,) = engine.definitions.covered[view.name].helpers
    own = panes_of(view)
    if own is None:
        return wanted, False
    with engine.ledger.database.reading() as r:
        known, held = settlements(r), usual_rows(r, panes.name)
    views = engine.definitions.views
    others = engine.definitions.helpers[panes.name].served if panes.name in engine.definitions.helpers else ()
    decided = (not views[each.name].is_free or each.name in known for each in others if each.name != view.name)
    choice, reads = with_cover(
        Choice(wanted.strategy, wanted.why),  # type: ignore[arg-type]
        view.shape,
        own.part // panes.part,
        wanted.rows,
        wanted.groups,
        held,
        held is not None or any(decided),
    )
    return replace(wanted, strategy=choice.strategy, why=choice.why), reads


def _written(engine: Engine, wanted: Settlement, still: Callable[[Reading], bool], covered: bool = True) -> bool:
    now = engine.definitions
    after = now.choosing({wanted.view: Choice(wanted.strategy, wanted.why)})  # type: ignore[arg-type]
    if not covered:
        after = after.with_covered({name: way for name, way in after.covered.items() if name != wanted.view})
    with engine.ledger.database.reading() as r:
        alone = wanted.view in too_late_to_share(r, engine.ledger.graph_at(r), after)
    after = after.with_own({*after.owning, wanted.view}) if alone else after
    before, then = tables_between(now.graph(), after.graph(), wanted.view)
    done = engine.ledger.settle(wanted, before, then, engine.now(), still, is_dead, covered)
    if done:
        log.info("%s is kept by %s: %s", wanted.view, wanted.strategy, wanted.why)
    return done


def _as_it_is(view: CompiledView, way: str, before: Settlement | None) -> Settlement:
    if before is not None and before.strategy == way:
        return replace(before, mark=view.mark)
    return Settlement(view.name, way, view.mark, FOUND)


def _looked_at_again(engine: Engine, view: CompiledView, before: Settlement) -> Settlement | None:
    """Another way only where it costs so much less that building everything again pays."""
    found = _counted(engine, view)
    if found is None or found.rows is None or view.shape is None:
        return None
    rows, groups = found.rows, found.groups
    worth = is_worth_it(view.shape, rows, groups, before.strategy)
    if view.name in engine.definitions.covered and before.strategy == "merge":
        (panes,), own = engine.definitions.covered[view.name].helpers, panes_of(view)
        with engine.ledger.database.reading() as r:
            held = usual_rows(r, panes.name)
        worth = own is not None and share_of_own(view.shape, own.part // panes.part, rows, groups, held) > 1 / WORTH_IT
    # By itself it may cost more than with those that pay for its panes, too.
    if found.strategy != before.strategy and worth:
        return found
    return replace(before, rows=rows, groups=groups, again=False)


def _counted(engine: Engine, view: CompiledView) -> Settlement | None:
    assert view.shape is not None
    with engine.ledger.database.reading() as r:
        rows = usual_rows(r, view.shape.table)
    if rows is None:
        return None
    try:
        groups = _groups(engine, view, view.shape)
    except (*SPARK_ERRORS, QueryFailed) as why:
        if is_infrastructure(why):
            raise
        log.warning("%s: its groups cannot be counted: %s", view.name, why)
        return None  # the step fails as well, and says where
    with engine.ledger.database.reading() as r:
        choice = chosen(view, family(engine.definitions, settlements(r), view), rows, groups)
    return Settlement(view.name, choice.strategy, view.mark, choice.why, rows, groups)


def _groups(engine: Engine, view: CompiledView, shape: WindowShape) -> int | None:
    """Rows that the helpers of a merge would have for the newest whole pane with rows; None if there is none.

    Of DISTINCT they are those of the window that ends with it: INITIALIZE reads them. Of a join they are joined rows.
    """
    own = engine.definitions.with_covered({k: v for k, v in engine.definitions.covered.items() if k != view.name})
    counting = replace(engine, definitions=own.choosing({view.name: Choice(shape.counted, "")}))
    graph, found = counting.definitions.graph(), 0
    helpers = [h for h in counting.definitions.helpers.values() if view.name in graph[h.name].serves and not h.beside]
    helpers = [h for h in helpers if h.initialize is None or shape.counted == "last"]
    helpers = [h for h in helpers if not is_dated(view.name, h.name)]
    with engine.ledger.database.reading() as r:
        pane = _newest_pane(r, shape)
        names = {name for helper in helpers for name in graph[helper.name].input_names}
        versions, seq = {name: version_of(r, name) for name in names}, r.seq
    if pane is None:
        return None
    for helper in helpers:
        pin = Pin(seq, graph[helper.name], pane, Parts.single(pane), Parts(), Version(0, None), versions, {}, "counted")
        computing = Computing(counting, pin, None)
        try:
            rows = computing.rows(pane)
            found += rows.count() if shape.weight is None else _summed(rows, shape.weight)
        finally:
            computing.close()
    return found


def _summed(rows: DataFrame, column: str) -> int:
    total = rows.selectExpr(f"sum({quoted(column)})").head()
    return int(total[0] or 0) if total else 0


def _newest_pane(r: Reading, shape: WindowShape) -> int | None:
    for p in r.on.execute(_NEWEST, {"t": shape.table}).scalars():
        pane = p // shape.ratio
        first, last = pane * shape.ratio, (pane + 1) * shape.ratio - 1
        if existing(r, shape.table, first, last).count == shape.ratio:
            return int(pane)
    return None
