"""What estimates said of parts before they were refreshed, and what the refresh gave: coverage is measured.

Probes of one part share one sample, so parts are counted and not probes: each counts by the share of its probes that
were covered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sqlalchemy import bindparam, case, delete, func, insert, select

from partwise.ledger.database import Reading, Writing
from partwise.ledger.schema import catalog, estimate_check

#: Of each view so many probes are kept, the newest ones.
MOST = 10_000
#: Fewer parts than this say little; of so many, this share should be covered.
ENOUGH, LEAST = 100, 0.90

_OWN = estimate_check.c.table == bindparam("t")
_SINCE = select(catalog.c.defined_seq).where(catalog.c.table == bindparam("s")).scalar_subquery()
_SHARE = func.avg(case((estimate_check.c.covered, 1.0), else_=0.0)).label("share")
_PARTS = (
    select(estimate_check.c.table, _SHARE)
    .where(_OWN, estimate_check.c.seq >= func.coalesce(_SINCE, 0))
    .group_by(estimate_check.c.table, estimate_check.c.seq, estimate_check.c.part)
    .subquery()
)
_COVERAGE = select(func.avg(_PARTS.c.share), func.count())
_TOO_OLD = select(estimate_check.c.seq).where(_OWN).order_by(estimate_check.c.seq.desc()).limit(1).offset(MOST)
_DROP = delete(estimate_check).where(_OWN, estimate_check.c.seq <= bindparam("q"))
_OF_PART = (
    select(estimate_check)
    .where(_OWN, estimate_check.c.part == bindparam("p"))
    .order_by(estimate_check.c.seq.desc(), estimate_check.c.column)
)


@dataclass(frozen=True, slots=True)
class EstimateCheck:
    """One probe: `column` is that of a sum, or `rows`. `seq`: as of which the estimate was made."""

    part: int
    column: str
    seq: int
    published: float | None
    estimate: float
    low: float
    high: float
    truth: float
    covered: bool
    ratio: float


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of so many parts that were refreshed since the sample was defined."""

    covered: float
    of: int

    @property
    def is_low(self) -> bool:
        return self.of >= ENOUGH and self.covered < LEAST

    def text(self) -> str:
        return f"{100 * self.covered:.1f} % of {self.of:,} {'check' if self.of == 1 else 'checks'}"


def record(w: Writing, table: str, checks: Iterable[EstimateCheck]) -> None:
    """Of a step that computes the same parts again after a crash nothing is recorded twice."""
    for check in checks:
        same = (_OWN, estimate_check.c.seq == check.seq, estimate_check.c.part == check.part)
        w.on.execute(delete(estimate_check).where(*same, estimate_check.c.column == check.column), {"t": table})
        w.on.execute(insert(estimate_check), {"table": table, "at": w.now, **asdict(check)})
    if (old := w.on.execute(_TOO_OLD, {"t": table}).scalar()) is not None:
        w.on.execute(_DROP, {"t": table, "q": old})


def coverage(r: Reading, table: str, sample: str) -> Coverage | None:
    """None before the first check."""
    share, count = r.on.execute(_COVERAGE, {"t": table, "s": sample}).one()
    return Coverage(float(share), int(count)) if count else None


def checks_of(r: Reading, table: str, part: int) -> list[EstimateCheck]:
    """Those of the newest refresh of a part that was estimated before."""
    rows = r.on.execute(_OF_PART, {"t": table, "p": part}).all()
    return [
        EstimateCheck(
            row.part, row.column, row.seq, row.published, row.estimate, row.low, row.high, row.truth, bool(row.covered),
            row.ratio,
        )
        for row in rows
        if row.seq == rows[0].seq
    ]  # fmt: skip
