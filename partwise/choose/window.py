"""How a window is kept up to date: the one place where that is chosen.

- merge: one row per group and pane, put together for each window. Reads rows + panes x groups.
- subtract: a rolling row per group, previous + new pane - pane that left. Reads rows + 3 x groups, writes one
  table more. Only for exact aggregates; others in the same query are merged.
- recompute: reads all rows of the window. No helper at all, so nothing to write besides the result.
- cells, factor: for groups of a join, what new joined rows add, or counts and sums of each stream alone.
- grid: for rolling tables of joined or plain rows, each row with its last part (`partwise.choose.rolling`).
- last: for SELECT DISTINCT, the part in which each row was last seen. Reads the new pane, the one that left and the rows
  of the helper, and writes that.

What each costs was measured (docs/benchmarks/patterns_and_windows.md) and is told here in rows: to read one row of few
groups is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partwise.choose.rolling import rolling_costs
from partwise.compile.model import Choice, QueryView, Strategy, WindowShape
from partwise.sql.parse import SqlProblem, TranslationError

if TYPE_CHECKING:
    from partwise.compile.window.cells import Split

#: A table more to keep, however small.
TABLE = 7_000_000
#: A part whose files are opened, however few rows they have: a long window of short parts costs that above all.
OPENED = 100_000
#: A row of a window that is joined with another: moved, sorted or hashed.
JOINED = 24
#: A joined row, grouped.
MET = 4
#: A row of a helper, written.
WRITTEN = 40
#: What reading costs in addition where every row is a group of its own.
SCATTERED = 2
#: What was settled is changed, and everything built again, only if another strategy costs less than this part of it.
WORTH_IT = 1 / 3
#: It is counted again when parts have so many times as many rows as they had then, or so many times fewer.
GROWN = 4
#: Nothing counted: panes in a window from which reading them all costs more than keeping a rolling row.
LONG_WINDOW = 60


def panes_made(shape: WindowShape, rows: int, groups: int | None) -> float:
    """What making a pane costs. `rows` are in a part of the table that is read, `groups` in a pane."""
    in_pane = rows * shape.ratio
    of = groups if groups is not None else in_pane // 10
    read = 1 + SCATTERED * min(1.0, of / max(1, in_pane))
    return TABLE / shape.per_slide + read * in_pane + WRITTEN * of


def costs(panes: int, per_slide: int, rows: int, groups: int) -> dict[Strategy, int]:
    """Of one new part, by strategy. `rows` and `groups` of one pane."""
    read = 1 + SCATTERED * min(1.0, groups / max(1, rows))
    panes_made = TABLE + per_slide * (read * rows + WRITTEN * groups)
    found = {
        "recompute": read * panes * rows,
        "merge": panes_made + read * panes * groups,
        "subtract": panes_made + TABLE + (read * (2 * per_slide + 1) + WRITTEN) * groups,
    }
    return {strategy: round(cost) for strategy, cost in found.items()}  # type: ignore[misc]


def distinct_costs(panes: int, per_slide: int, rows: int, groups: int) -> dict[Strategy, int]:
    """Of one new part of SELECT DISTINCT. `rows` of one pane, `groups` different ones in a window."""
    read = 1 + SCATTERED * min(1.0, groups / max(1, rows * panes))
    kept = TABLE + read * (2 * per_slide * rows + groups) + WRITTEN * groups
    return {"recompute": round(read * panes * rows + OPENED * panes), "last": round(kept + OPENED * 2 * per_slide)}


def joined_costs(rows: int, new: int, stays: float, panes: int) -> dict[Strategy, int]:
    """Of one new part of groups of a join. `rows` of one pane, `new` joined rows that come about in a part and are shown in
    `stays` parts on average.

    The other window is taken to be as large. Whatever way, both are read: to be joined (recompute), to be met by the new rows
    (cells), or as one row per key and pane, which are no more than the rows (factor).
    """
    both = 2 * panes * rows
    return {
        "recompute": round(JOINED * both + MET * stays * new),
        "cells": round(3 * TABLE + both + WRITTEN * new),
        "factor": round(2 * TABLE + both),
    }


def possible(splits: Sequence[Split], panes: int, per_slide: int) -> tuple[Strategy, ...]:
    """Ways to keep a window of which one may be better than another. The first one is always possible."""
    if panes <= per_slide or not all(s.mergeable for s in splits):
        return ("recompute",)
    return ("recompute", "merge", "subtract") if any(s.exact for s in splits) else ("recompute", "merge")


def choose(view: QueryView, splits: Sequence[Split], panes: int, per_slide: int, offset: int) -> Choice:
    """What the definition says, else by the query alone: before there are rows to count."""
    stuck = [s.why for s in splits if not s.mergeable]
    rollable = panes > per_slide and any(s.exact for s in splits)
    if view.strategy is not None:
        if view.strategy not in ("merge", "subtract", "recompute"):
            why = "it is for SELECT DISTINCT and for several streams"
            what = f"strategy {view.strategy} is not possible: {why}"
            raise TranslationError(SqlProblem(offset, "bad-strategy", what, "merge, subtract and recompute are"))
        if view.strategy != "recompute" and stuck:
            raise TranslationError(
                SqlProblem(
                    offset, "bad-strategy", f"strategy {view.strategy} is not possible: {stuck[0]}", "recompute is"
                )
            )
        if view.strategy == "subtract" and not rollable:
            why = "no aggregate of integers or decimals" if panes > per_slide else "windows do not overlap"
            raise TranslationError(
                SqlProblem(
                    offset, "bad-strategy", f"strategy subtract is not possible: {why}", "merge and recompute are"
                )
            )
        return Choice(view.strategy, "requested by strategy:")
    if stuck:
        return Choice("recompute", stuck[0])
    if panes <= per_slide:
        return Choice("recompute", "windows do not overlap: every row is read once")
    if all(s.exact for s in splits) and panes >= LONG_WINDOW:
        return Choice("subtract", f"{panes} panes in a window, and all aggregates can be subtracted")
    return Choice("merge", f"{panes} panes in a window, each one row per group")


def is_worth_it(shape: WindowShape, rows: int, groups: int | None, present: str) -> bool:
    """Whether the cheapest strategy costs so much less than the present one that changing to it pays."""
    now = next(cost for strategy, cost in _every(shape, rows, groups).items() if strategy == present)
    return min(costs_of(shape, rows, groups).values()) < WORTH_IT * now


def has_grown(then: int | None, now: int | None) -> bool:
    """Whether rows should be counted again: never counted, or many times more or fewer than then."""
    if now is None:
        return False
    return then is None or now >= GROWN * then or then >= GROWN * now


def by_counts(shape: WindowShape, rows: int, groups: int | None) -> Choice:
    """The cheapest. `rows` are in a part of the table that is read, `groups` in a pane.

    Groups that nobody has counted yet are taken to be a tenth of the rows.
    """
    found = costs_of(shape, rows, groups)
    best = min(found, key=lambda strategy: found[strategy])
    if shape.counted == "cells":
        return Choice(best, _joined_why(best, shape, rows, rows * shape.ratio if groups is None else groups))
    if shape.counted == "grid":
        return Choice(best, _rolling_why(best, shape, rows * shape.ratio if groups is None else groups))
    about = f"about {rows * shape.ratio * shape.panes:,} rows in a window" + (
        f", {groups:,} groups in a {'pane' if shape.counted == 'merge' else 'window'}" if groups is not None else ""
    )
    why = {
        "recompute": "reading them costs less than keeping helpers",
        "merge": "its panes hold far fewer",
        "subtract": "a rolling row per group costs less than reading the window",
        "last": "keeping when each was last seen costs less than reading the window",
    }[best]
    return Choice(best, f"{about}: {why}")


def _rolling_why(best: Strategy, shape: WindowShape, new: int) -> str:
    about = f"a rolling table of about {shape.panes * new:,} rows, {new:,} new ones in a part"
    why = "only files of rows that come, go or move are written" if best == "grid" else "it is written whole each time"
    return f"{about}: {why}"


def _joined_why(best: Strategy, shape: WindowShape, rows: int, new: int) -> str:
    about = f"about {rows * shape.ratio * shape.panes:,} rows in a window of {shape.table}, {round(new * shape.stays):,} joined ones"
    why = {
        "recompute": "joining them costs less than keeping helpers",
        "cells": "groups of the new ones are kept and added up",
        "factor": "counts of each stream are multiplied, and no rows joined",
    }[best]
    return f"{about}: {why}"


def costs_of(shape: WindowShape, rows: int, groups: int | None) -> dict[Strategy, int]:
    """Of the strategies that counts may choose: to subtract only a part of the aggregates never pays."""
    found = _every(shape, rows, groups)
    if shape.possible:
        return {s: cost for s, cost in found.items() if s in shape.possible}
    return found if shape.rolls else {s: cost for s, cost in found.items() if s != "subtract"}


def _every(shape: WindowShape, rows: int, groups: int | None) -> dict[Strategy, int]:
    in_pane = rows * shape.ratio
    if shape.counted == "grid":
        return rolling_costs(shape.panes, in_pane if groups is None else groups)
    if shape.counted == "cells":
        return joined_costs(in_pane, in_pane if groups is None else groups, shape.stays, shape.panes)
    if shape.counted == "last":
        in_window = groups if groups is not None else in_pane * shape.panes // 10
        return distinct_costs(shape.panes, shape.per_slide, in_pane, in_window)
    return costs(shape.panes, shape.per_slide, in_pane, groups if groups is not None else in_pane // 10)
