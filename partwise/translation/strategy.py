"""How a window is kept up to date: the one place where that is chosen.

- merge: one row per group and pane, put together for each window. Reads rows + panes x groups.
- subtract: a rolling row per group, previous + new pane - pane that left. Reads rows + 3 x groups, writes one
  table more. Only for exact aggregates; others in the same query are merged.
- recompute: reads all rows of the window. No helper at all, so nothing to write besides the result.

Measured: below about two million rows in the window, recomputing is cheapest (further tables have a fixed cost);
above, merging wins where groups are far fewer than rows, subtracting where they are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from partwise.translation.aggregates import Split
from partwise.translation.model import Choice, Problem, QueryView, TranslationError

#: Rows in a window below which recomputing is cheapest.
SMALL_WINDOW = 2_000_000
#: Groups per row of a pane above which merging reads as much as recomputing.
MANY_GROUPS = 0.3
#: Panes in a window from which reading them all costs more than keeping a rolling row.
LONG_WINDOW = 60


def choose(
    view: QueryView, splits: Sequence[Split], panes: int, per_slide: int, rows: int | None, offset: int
) -> Choice:
    """`panes` make a window, `per_slide` of them are new in each part of the view, `rows` are in one pane."""
    stuck = [s.why for s in splits if not s.mergeable]
    rollable = panes > per_slide and any(s.exact for s in splits)
    if view.strategy is not None:
        if view.strategy != "recompute" and stuck:
            raise TranslationError(
                Problem(offset, "bad-strategy", f"strategy {view.strategy} is not possible: {stuck[0]}", "recompute is")
            )
        if view.strategy == "subtract" and not rollable:
            why = "no aggregate of integers or decimals" if panes > per_slide else "windows do not overlap"
            raise TranslationError(
                Problem(offset, "bad-strategy", f"strategy subtract is not possible: {why}", "merge and recompute are")
            )
        return Choice(view.strategy, "asked for by strategy:")
    if stuck:
        return Choice("recompute", stuck[0])
    if panes <= per_slide:
        return Choice("recompute", "windows do not overlap: every row is read once")
    if rows is not None and rows * panes <= SMALL_WINDOW:
        return Choice(
            "recompute", f"about {rows * panes:,} rows in a window: reading them costs less than keeping helpers"
        )
    all_exact = all(s.exact for s in splits)
    if rows and view.groups is not None and view.groups > MANY_GROUPS * rows:
        if all_exact:
            return Choice(
                "subtract", f"nearly as many groups ({view.groups:,}) as rows, and all aggregates can be subtracted"
            )
        return Choice("recompute", f"nearly as many groups ({view.groups:,}) as rows: merging would read as much")
    if all_exact and panes >= LONG_WINDOW:
        return Choice("subtract", f"{panes} panes in a window, and all aggregates can be subtracted")
    return Choice("merge", f"{panes} panes in a window, each one row per group")
