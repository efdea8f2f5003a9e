"""Which repair of stale parts costs least.

Costs are rows, each as dear as reading one row of an input: what is known before anything is read. A repair by keys
reads the key column of references that carry one, references that carry none whole, and copies the rows that share
files with touched ones; and it starts a few more jobs, whatever there is to read. A wrong choice costs time, never
correctness.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from partwise.relation.restriction import restriction

if TYPE_CHECKING:
    from partwise.compile.relations import Relation

By = Literal["recompute", "keys", "merge"]

#: Whether `auto` may choose anything but recomputing. Off until random histories and crashes on Spark have proven the
#: other repairs; definitions can ask for them.
AUTOMATIC = False
#: What the additional jobs of a repair cost, in rows: below this many rows computing the part again is quicker.
FIXED = 1_000_000
#: Writing and digesting a row of the result, against reading one of an input.
WRITTEN = 3.0
#: Looking at a key and leaving the row out, against reading the row.
FILTERED = 0.3
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

    @property
    def read(self) -> int:
        return self.carrying + self.whole


@dataclass(frozen=True)
class RepairDecision:
    """What was chosen and why; `costs` in rows, of what was compared."""

    by: By
    why: str
    costs: dict[By, float]


def costs(figures: Figures) -> dict[By, float]:
    return {
        "recompute": figures.read + WRITTEN * figures.result,
        "keys": FIXED + figures.changed + FILTERED * figures.carrying + figures.whole + COPIED * figures.result,
        "merge": FIXED + figures.changed + FILTERED * figures.joined + COPIED * figures.result,
    }


def is_small(read: int, result: int) -> bool:
    """Whether computing parts again takes less than the jobs of any other repair."""
    return read + WRITTEN * result <= FIXED


def choose(
    wanted: str, figures: Figures, possible: Collection[str] = ("keys",), automatic: bool | None = None
) -> RepairDecision:
    """`wanted` is what the definition says; `possible` are the repairs that are exact for this change."""
    found = {by: cost for by, cost in costs(figures).items() if by == "recompute" or by in possible}
    for by in found:
        if by == wanted:
            return RepairDecision(by, "as the definition says", found)
    if not (AUTOMATIC if automatic is None else automatic):
        return RepairDecision("recompute", "other repairs are used where a definition asks for them", found)
    if figures.changed > MOST_CHANGED * max(1, figures.read):
        share = 100 * figures.changed / max(1, figures.read)
        return RepairDecision("recompute", f"{share:.0f} % of the rows that it reads changed", found)
    if is_small(figures.read, figures.result):
        return RepairDecision(
            "recompute", f"{figures.read:,} rows are computed quicker than touched keys are found", found
        )
    best = min(found, key=lambda by: found[by])
    if best == "recompute":
        return RepairDecision("recompute", "less work than any other repair", found)
    return RepairDecision(best, f"about {found['recompute'] / found[best]:.1f} times less work than recomputing", found)


def foreseen(
    relation: Relation, usual: Callable[[str], int | None], name: str, part: int, wanted: str
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
    return choose(wanted, figures, possible) if possible else None
