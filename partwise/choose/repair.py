"""Which repair of stale parts takes least time.

What a repair takes is foreseen in seconds, from rows that are known before anything is read. A repair by keys reads the
key column of references that carry one, references that carry none whole, and copies the rows that share files with
touched ones; and it has more to prepare, whatever there is to read. The constants were fitted to
benchmarks/bench_repairs.py on two busy cores; what earlier repairs of the same view really took corrects them. A wrong choice costs
time, never correctness.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partwise.choose.outcomes import MARGIN, learned
from partwise.ledger.records.repairs import By, MeasuredRepair
from partwise.relation.restriction import restriction

if TYPE_CHECKING:
    from partwise.compile.relations import Relation

#: Seconds. What each repair takes before it reads its first row: a merge computes some groups again for comparison.
FIXED: dict[By, float] = {"recompute": 0.7, "keys": 0.9, "merge": 1.6}
#: Seconds that reading, grouping or joining one row takes.
SECONDS = 0.35e-6
#: Writing and digesting a row of the result, against reading one of an input.
WRITTEN = 3.0
#: Looking at a key and leaving the row out, against reading the row.
FILTERED = 0.2
#: Reading a row of the old part and writing it again.
COPIED = 1.5
#: With a larger share of changed rows nearly every key is touched.
MOST_CHANGED = 0.1


@dataclass(frozen=True)
class Figures:
    """Rows, by the ledger and the statistics of files."""

    carrying: int  # of references that are filtered
    whole: int  # of references that are read whole
    result: int  # of the parts that are repaired
    changed: int  # in files that are in one of the two versions only
    joined: int = 0  # of references that did not change
    spread: int = 0  # what computing many parts again reads more: each part reads rows of a window anew
    saved: int = 0  # what it reads less, as does a merge, because outputs of the query's operators are kept

    @property
    def read(self) -> int:
        return self.carrying + self.whole


@dataclass(frozen=True)
class RepairDecision:
    """What was chosen and why. `costs`: seconds by the constants, `foreseen`: by what earlier repairs took as well."""

    by: By
    why: str
    costs: Mapping[By, float]
    foreseen: Mapping[By, float] = field(default_factory=dict)


def costs(figures: Figures) -> dict[By, float]:
    rows: dict[By, float] = {
        "recompute": max(0, figures.read - figures.saved) + figures.spread + WRITTEN * figures.result,
        "keys": figures.changed + FILTERED * figures.carrying + figures.whole + COPIED * figures.result,
        "merge": figures.changed
        + FILTERED * (max(0, figures.joined - figures.saved) + figures.carrying)
        + COPIED * figures.result,
    }
    return {by: FIXED[by] + SECONDS * count for by, count in rows.items()}


def is_small(read: int, result: int) -> bool:
    """Whether computing parts again takes less than the jobs of any other repair."""
    return FIXED["recompute"] + SECONDS * (read + WRITTEN * result) <= MARGIN * min(FIXED["keys"], FIXED["merge"])


def choose(
    wanted: str, figures: Figures, possible: Collection[str] = ("keys",), past: Sequence[MeasuredRepair] = ()
) -> RepairDecision:
    """`wanted` is what the definition says; `possible` are the repairs that are exact for this change; `past` are earlier
    repairs of the view, the newest last."""
    found = {by: cost for by, cost in costs(figures).items() if by == "recompute" or by in possible}
    factors = learned(past)
    seconds = {by: factors[by] * cost for by, cost in found.items()}

    def decided(by: By, why: str) -> RepairDecision:
        return RepairDecision(by, why, found, seconds)

    for by in found:
        if by == wanted:
            return decided(by, "as the definition says")
    if figures.changed > MOST_CHANGED * max(1, figures.read):
        share = 100 * figures.changed / max(1, figures.read)
        return decided("recompute", f"{share:.0f} % of the rows that it reads changed")
    if is_small(figures.read + figures.spread, figures.result):
        return decided("recompute", f"{figures.read:,} rows are computed quicker than touched keys are found")
    best = min(seconds, key=lambda by: seconds[by] * (1 if by == "recompute" else MARGIN))
    if best == "recompute":
        return decided("recompute", "no other repair is foreseen to be quicker")
    return decided(best, f"foreseen to be {seconds['recompute'] / seconds[best]:.1f} times as quick as recomputing")


def foreseen(
    relation: Relation,
    usual: Callable[[str], int | None],
    name: str,
    part: int,
    wanted: str,
    past: Sequence[MeasuredRepair] = (),
) -> RepairDecision | None:
    """What would be chosen for one late row in the first reference to parts, by the usual rows of parts.

    None while there are no parts to count, or where every change is recomputed anyway.
    """
    tables, result = relation.statement.found.tables, usual(name)
    first = next((n for n, table in enumerate(tables) if table.reference is not None), None)
    rows: dict[int, int] = {}
    for n, table in enumerate(tables):
        span = None if table.reference is None else table.reference.requires(part)
        rows[n] = (usual(table.table) or 0) * (1 if span is None else span.hi - span.lo + 1)
    if first is None or result is None or not rows[first]:
        return None
    plan = restriction(relation.carried, [first], relation.key or ())
    possible = [by for by, can in (("keys", plan is not None), ("merge", relation.repair("merge").possible)) if can]
    filtered = plan.filters if plan is not None else {}
    figures = Figures(
        carrying=sum(count for n, count in rows.items() if n in filtered),
        whole=sum(count for n, count in rows.items() if n not in filtered),
        result=result,
        changed=1,
        joined=sum(count for n, count in rows.items() if n != first),
    )
    return choose(wanted, figures, possible, past) if possible else None
