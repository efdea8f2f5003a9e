"""Totals to an answer: every cell has a value with its interval, or the reason why it has none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from partwise.compile.program import Sampled
from partwise.estimate.formula import Formula, evaluate
from partwise.estimate.interval import FEWEST, Interval, NoEstimate, Totals, estimate, ratio_for
from partwise.fresh.bounds import Sizes, largest
from partwise.fresh.question import FreshQuestion
from partwise.fresh.states import PartStates
from partwise.fresh.totals import Added, Group, Sums
from partwise.parts import Parts
from partwise.plan.next import parts_text

Method = Literal["exact", "correction", "correction from stand-in", "sample"]


@dataclass(frozen=True)
class FreshCell:
    """Without a method there is no estimate, and `refused` says why."""

    published: Any
    estimate: Any = None
    low: Any = None
    high: Any = None
    method: Method | None = None
    differing: int = 0
    largest_unknown: float | None = None
    refused: RefusedCell | None = None


@dataclass(frozen=True)
class RefusedCell:
    column: str
    group: Mapping[str, Any]
    code: str
    message: str
    hint: str


@dataclass(frozen=True)
class FreshRow:
    group: Mapping[str, Any]
    cells: Mapping[str, FreshCell]


@dataclass(frozen=True)
class FreshAnswer:
    view: str
    rows: tuple[FreshRow, ...]
    states: PartStates
    confidence: float
    ratio: float
    keys: tuple[int, int, int] = (0, 0, 0)
    unseen: int | None = None

    @property
    def refused(self) -> list[RefusedCell]:
        return [cell.refused for row in self.rows for cell in row.cells.values() if cell.refused is not None]


@dataclass(frozen=True)
class Deciding:
    """What every cell is decided by. `within`: how wide an interval may be, as a share of its value."""

    question: FreshQuestion
    sampled: Sampled
    states: PartStates
    length: int
    confidence: float = 0.95
    within: float | None = None

    def answer(self, added: Added) -> FreshAnswer:
        rows = [self._row(group, sums, added.sizes) for group, sums in added.groups.items()]
        for at, descending in reversed(self.question.order):
            name = self.question.groups[at][0]
            # NULL comes last, as in DuckDB.
            rows.sort(key=lambda row: row.group[name] if row.group[name] is not None else 0, reverse=descending)
            rows.sort(key=lambda row: row.group[name] is None)
        # A group of which the sample has no key has at most so many, with this confidence.
        unseen = (
            math.ceil(math.log(1 - self.confidence) / math.log(1 - self.sampled.ratio))
            if self.question.groups
            else None
        )
        return FreshAnswer(
            self.question.view, tuple(rows), self.states, self.confidence, self.sampled.ratio, added.keys, unseen
        )

    def _row(self, group: Group, sums: Sums, sizes: Mapping[int, Sizes]) -> FreshRow:
        names = {name: value for (name, _), value in zip(self.question.groups, group, strict=True)}
        parts = self._parts_of(group)
        cells = {
            name: self._cell(name, formula, n, names, sums, {p: sizes[p] for p in parts})
            for n, (name, formula) in enumerate(self.question.results)
        }
        return FreshRow(names, cells)

    def _parts_of(self, group: Group) -> Parts:
        """Dirty parts that the group can have rows in: where rows are grouped by part, one at most."""
        if self.question.by_part is None:
            return self.states.dirty
        value = group[self.question.by_part]
        if value is None:
            return Parts()
        p = int(value) if isinstance(value, int) else int(value.timestamp()) // self.length
        return self.states.dirty & Parts.single(p)

    def _cell(
        self, name: str, formula: Formula, n: int, group: Mapping[str, Any], sums: Sums, sizes: Mapping[int, Sizes]
    ) -> FreshCell:
        nothing = (0.0,) * len(self.question.totals)
        was = evaluate(formula, sums.published) if sums.published is not None else None
        published = None if was is None else was.value
        if not sizes:
            if was is None:
                return FreshCell(published, method="exact")
            return FreshCell(published, published, published, published, "exact", 0, 0.0)
        bounds = [[largest(total, size) for size in sizes.values()] for total in self.question.totals]
        positive = all(size.positive >= set(size.columns) for size in sizes.values())
        count = range(len(nothing))
        totals = Totals(
            sums.base or nothing,
            sums.exact or nothing,
            sums.sampled or nothing,
            tuple(tuple(sums.products.get((a, b), 0.0) for b in count) for a in count),
            tuple(None if any(b is None for b in each) else tuple(b for b in each if b is not None) for each in bounds),
            sums.differing[n] if sums.differing else 0,
            self.question.coupled if positive else (),
        )
        found = estimate(formula, totals, self.sampled.ratio, self.confidence)
        if isinstance(found, NoEstimate):
            return FreshCell(published, differing=found.differing, refused=self._why(name, group, found, sizes))
        if not math.isfinite(found.value) or not math.isfinite(found.high):
            why = NoEstimate("undefined", found.differing)
            return FreshCell(published, differing=found.differing, refused=self._why(name, group, why, sizes))
        if self.within is not None and (wide := self._too_wide(name, group, found)) is not None:
            return FreshCell(published, differing=found.differing, refused=wide)
        return FreshCell(
            published,
            found.value,
            found.low,
            found.high,
            self._method(found, sizes),
            found.differing,
            found.largest_unknown,
        )

    def _method(self, found: Interval, sizes: Mapping[int, Sizes]) -> Method:
        if found.exact:
            return "exact"
        missing = [p for p in sizes if p in self.states.missing]
        if not missing:
            return "correction"
        return "correction from stand-in" if all(p in self.states.stand_ins for p in missing) else "sample"

    def _too_wide(self, name: str, group: Mapping[str, Any], found: Interval) -> RefusedCell | None:
        assert self.within is not None
        half, wanted = found.high - found.value, self.within * abs(found.value)
        if half <= wanted:
            return None
        message = (
            f"{name}: the interval is {half / abs(found.value):.1%} wide" if found.value else f"{name}: the value is 0"
        )
        needed = ratio_for(half, wanted, self.sampled.ratio) if wanted else 1.0
        way = f"a sample of {needed:.1%} would do" if needed <= 0.5 else "no sample would do"
        return RefusedCell(
            name, group, "too-wide", f"{message}, more than {self.within:.1%}", f"{way}; or refresh {self._dirty()}"
        )

    def _dirty(self) -> str:
        return f"{self.question.view}[{parts_text(self.states.dirty, self.length)}]"

    def _why(self, name: str, group: Mapping[str, Any], found: NoEstimate, sizes: Mapping[int, Sizes]) -> RefusedCell:
        keys = " and ".join(column for column, _ in self.sampled.key)
        refresh = f"refresh {self._dirty()}"
        if found.why == "few-keys":
            message = f"{name}: {found.differing} of the sampled keys changed it, and {FEWEST} are needed"
            return RefusedCell(name, group, "few-keys", message, f"{refresh}, or sample more keys")
        if found.why == "large-key":
            much = (
                "any amount" if found.largest is None or not math.isfinite(found.largest) else f"{found.largest:,.6g}"
            )
            message = f"{name}: one {keys} outside the sample may account for {much}, more than the sample can tell"
            keep = (
                f"raise outliers.keep (now {self.sampled.keep})" if self.sampled.keep else "add outliers: to its sample"
            )
            return RefusedCell(name, group, "large-key", message, f"{keep}, sample more keys, or {refresh}")
        if found.why == "no-bound":
            message = f"{name}: nothing is known of how much one {keys} can account for"
            hint = f"add up columns that the view sums ({', '.join(self.sampled.sized) or 'it has none'}), or {refresh}"
            return RefusedCell(name, group, "no-bound", message, hint)
        return RefusedCell(name, group, "undefined", f"{name}: it has no value here, such as 0 / 0", refresh)
