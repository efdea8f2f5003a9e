"""How a window is kept up to date: the one place where that is chosen.

- merge: one row per group and pane, put together for each window. Reads rows + panes x groups.
- subtract: a rolling row per group, previous + new pane - pane that left. Reads rows + 3 x groups, writes one
  table more. Only for exact aggregates; others in the same query are merged.
- recompute: reads all rows of the window. No helper at all, so nothing to write besides the result.

What each costs was measured (docs/benchmarks/patterns_and_windows.md) and is told here in rows: to read one row of few
groups is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from partwise.translation.aggregates import Split
from partwise.translation.model import Choice, Problem, QueryView, Strategy, TranslationError

#: A table more to keep, however small.
TABLE = 7_000_000
#: A row of a helper, written.
WRITTEN = 40
#: What reading costs in addition where every row is a group of its own.
SCATTERED = 2
#: Nothing counted: panes in a window from which reading them all costs more than keeping a rolling row.
LONG_WINDOW = 60


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
    all_exact = all(s.exact for s in splits)
    if rows is not None:
        return _cheapest(panes, per_slide, rows, view.groups, all_exact)
    if all_exact and panes >= LONG_WINDOW:
        return Choice("subtract", f"{panes} panes in a window, and all aggregates can be subtracted")
    return Choice("merge", f"{panes} panes in a window, each one row per group")


def _cheapest(panes: int, per_slide: int, rows: int, groups: int | None, all_exact: bool) -> Choice:
    """By counts. Groups that nobody has counted yet are taken to be a tenth of the rows."""
    found = costs(panes, per_slide, rows, groups if groups is not None else rows // 10)
    if not all_exact:
        del found["subtract"]
    best = min(found, key=lambda strategy: found[strategy])
    about = f"about {rows * panes:,} rows in a window" + (
        f", {groups:,} groups in a pane" if groups is not None else ""
    )
    why = {
        "recompute": "reading them costs less than keeping helpers",
        "merge": "its panes hold far fewer",
        "subtract": "a rolling row per group costs less than reading the window",
    }[best]
    return Choice(best, f"{about}: {why}")
