"""Totals to an answer: what every cell is decided by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partwise.compile.program import Sampled
from partwise.estimate.formula import Formula, evaluate, is_null
from partwise.estimate.interval import Interval, NoEstimate, Totals, estimate
from partwise.fresh.adding.bounds import Sizes, largest, most_of
from partwise.fresh.adding.extremes import keys_beyond
from partwise.fresh.adding.quantiles import QuantileAt
from partwise.fresh.adding.totals import Added, Group, Side, Sums
from partwise.fresh.answer import FreshAnswer, FreshBound, FreshCell, FreshRow, Method, RefusedCell, Unseen
from partwise.fresh.asked.question import FreshQuestion
from partwise.fresh.asked.results import ExtremeOf, QuantileOf
from partwise.fresh.states import PartStates
from partwise.fresh.why_not import WhyNot
from partwise.parts import Parts

#: The sample alone is taken if its variance is below this share of the correction's. Taking the smaller of both would
#: choose by the same sample that is judged, and cover less.
_ALONE = 0.5


@dataclass(frozen=True)
class Deciding:
    """`within`: how wide an interval may be, as a share of its value. `ratio`: of keys that are used. `rows`: that are
    published, if that is known."""

    question: FreshQuestion
    sampled: Sampled
    states: PartStates
    length: int
    confidence: float = 0.95
    within: float | None = None
    ratio: float | None = None
    rows: int | None = None

    @property
    def share(self) -> float:
        return self.sampled.ratio if self.ratio is None else self.ratio

    @property
    def why_not(self) -> WhyNot:
        return WhyNot(self.question.view, self.sampled, self.states, self.length, self.share, self.rows)

    def answer(self, added: Added) -> FreshAnswer:
        rows = [self._row(group, sums, added) for group, sums in added.groups.items()]
        for at, descending, nulls_first in reversed(self.question.order):
            name = self.question.groups[at][0]
            known = [row for row in rows if row.group[name] is not None]
            nulls = [row for row in rows if row.group[name] is None]
            known.sort(key=lambda row: row.group[name], reverse=descending)
            rows = nulls + known if nulls_first else known + nulls
        unseen = self._unseen(added.sizes) if self.question.groups else None
        return FreshAnswer(
            self.question.view, tuple(rows), self.states, self.confidence, self.share, added.keys, unseen
        )

    def _unseen(self, sizes: Mapping[int, Sizes]) -> Unseen:
        """A group of which the sample has no key has at most so many, with this confidence."""
        keys, rows = keys_beyond(self.share, self.confidence), sum(size.rows for size in sizes.values())
        return Unseen(keys, math.ceil(keys * rows) if math.isfinite(rows) else None)

    def _row(self, group: Group, sums: Sums, added: Added) -> FreshRow:
        names = {name: value for (name, _), value in zip(self.question.groups, group, strict=True)}
        sizes = {p: added.sizes[p] for p in self._parts_of(group, added)}
        cells = {}
        for n, (name, result) in enumerate(self.question.results):
            if isinstance(result, QuantileOf | ExtremeOf):
                cells[name] = self._written(name, result, n, group, names, sizes, added)
            else:
                cells[name] = self._cell(name, result, n, names, sums, sizes)
        return FreshRow(names, cells)

    def _parts_of(self, group: Group, added: Added) -> Parts:
        """Dirty parts that the group can have rows in: where it follows from the part, only those of its own."""
        if not self.question.by_part:
            return self.states.dirty
        own = tuple(group[n] for n in self.question.by_part)
        return Parts.single(*(p for p, values in added.by_part.items() if values == own))

    def _cell(
        self, name: str, formula: Formula, n: int, group: Mapping[str, Any], sums: Sums, sizes: Mapping[int, Sizes]
    ) -> FreshCell:
        published = _known(formula, sums.published) if sums.published is not None else None
        if not sizes:
            return _exactly(published, published)
        totals = self._totals(n, sums.correction, sizes)
        corrected, method = estimate(formula, totals, self.share, self.confidence), self._method(sizes)
        if self._knows_all(corrected, sizes) and is_null(formula, totals.fresh(self.share)):
            return _exactly(published, None)
        if isinstance(corrected, NoEstimate):
            return self._refused(published, name, group, corrected, sizes)
        found = corrected
        if not found.exact and method != "sample":
            alone = estimate(formula, self._totals(n, sums.sample, sizes), self.share, self.confidence)
            if (
                isinstance(alone, Interval)
                and (alone.high - alone.value) ** 2 < _ALONE * (found.high - found.value) ** 2
            ):
                found, method = alone, "sample"
        if not math.isfinite(found.value) or not math.isfinite(found.high):
            return self._refused(published, name, group, NoEstimate("undefined", found.differing), sizes)
        return self._answered(
            FreshCell(
                published,
                found.value,
                found.low,
                found.high,
                "exact" if found.exact else method,
                found.differing,
                found.largest_unknown,
            ),
            name,
            group,
        )

    def _knows_all(self, found: Interval | NoEstimate, sizes: Mapping[int, Sizes]) -> bool:
        if isinstance(found, Interval):
            return found.exact
        return self.share >= 1 or all(size.rows == 0 for size in sizes.values())

    def _totals(self, n: int, side: Side, sizes: Mapping[int, Sizes]) -> Totals:
        nothing = (0.0,) * len(self.question.totals)
        bounds = [[largest(total, size) for size in sizes.values()] for total in self.question.totals]
        positive = all(size.positive >= set(size.columns) for size in sizes.values())
        count = range(len(nothing))
        return Totals(
            side.base or nothing,
            side.exact or nothing,
            side.sampled or nothing,
            tuple(tuple(side.products.get((a, b), 0.0) for b in count) for a in count),
            tuple(None if any(b is None for b in each) else tuple(b for b in each if b is not None) for each in bounds),
            side.differing[n] if side.differing else 0,
            self.question.coupled if positive else (),
        )

    # -- results that are no formulas

    def _written(
        self,
        name: str,
        result: QuantileOf | ExtremeOf,
        n: int,
        group: Group,
        names: Mapping[str, Any],
        sizes: Mapping[int, Sizes],
        added: Added,
    ) -> FreshCell:
        published, known = (found.get(group) for found in added.written[n])
        if self.share >= 1 or all(size.rows == 0 for size in sizes.values()):
            return _exactly(published, known)
        if isinstance(result, ExtremeOf):
            return self._bound(name, result, n, group, names, published, sizes, added)
        found = added.quantiles[n].at(group, sum(size.rows for size in sizes.values()), self.confidence)
        if isinstance(found, QuantileAt):
            method = self._method(sizes)
            cell = FreshCell(published, found.value, found.low, found.high, method, found.differing)
            return self._answered(cell, name, names)
        return self._refused(published, name, names, found, sizes)

    def _bound(
        self,
        name: str,
        result: ExtremeOf,
        n: int,
        group: Group,
        names: Mapping[str, Any],
        published: Any,
        sizes: Mapping[int, Sizes],
        added: Added,
    ) -> FreshCell:
        found = added.extremes[n].found.get(group)
        if found is None or found.value is None:
            return self._refused(published, name, names, NoEstimate("few-keys"), sizes)
        most = max(most_of(result.row, size) for size in sizes.values())
        if found.number is not None and (found.number >= most if result.largest else found.number <= -most):
            return _exactly(published, found.value)
        rows = keys_beyond(self.share, self.confidence) * sum(size.rows for size in sizes.values())
        beyond = math.ceil(rows) if math.isfinite(rows) else None
        return FreshCell(published, method="bound", bound=FreshBound(found.value, result.largest, beyond))

    # -- what is said of a cell

    def _answered(self, cell: FreshCell, name: str, group: Mapping[str, Any]) -> FreshCell:
        if self.within is None or cell.method == "exact":
            return cell
        wide = self.why_not.too_wide(name, group, cell.estimate, cell.high - cell.low, self.within)
        return cell if wide is None else FreshCell(cell.published, differing=cell.differing, refused=wide)

    def _refused(
        self, published: Any, name: str, group: Mapping[str, Any], found: NoEstimate, sizes: Mapping[int, Sizes]
    ) -> FreshCell:
        why: RefusedCell = self.why_not.of(name, group, found, Parts.single(*sizes))
        return FreshCell(published, differing=found.differing, refused=why)

    def _method(self, sizes: Mapping[int, Sizes]) -> Method:
        missing = [p for p in sizes if p in self.states.missing]
        if not missing:
            return "correction"
        return "correction from stand-in" if all(self.states.stand_ins.get(p) for p in missing) else "sample"


def _known(formula: Formula, totals: Sequence[float]) -> float | None:
    found = None if is_null(formula, totals) else evaluate(formula, totals)
    return None if found is None else found.value


def _exactly(published: Any, value: Any) -> FreshCell:
    return FreshCell(published, value, value, value, "exact", 0, 0.0)
