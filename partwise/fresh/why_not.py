"""Why a cell has no estimate, in words, with what would help."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from partwise.compile.program import Sampled
from partwise.estimate.interval import FEWEST, NoEstimate, ratio_for
from partwise.fresh.answer import RefusedCell
from partwise.fresh.states import PartStates
from partwise.parts import Parts
from partwise.plan.next import parts_text


@dataclass(frozen=True)
class WhyNot:
    view: str
    sampled: Sampled
    states: PartStates
    length: int
    ratio: float
    rows: int | None = None

    def of(self, name: str, group: Mapping[str, Any], found: NoEstimate, parts: Parts) -> RefusedCell:
        keys = " and ".join(column for column, _ in self.sampled.key)
        refresh = f"refresh {self._dirty(parts)}"
        if found.why == "few-keys" and self.rows is not None and self.rows * self.sampled.ratio < FEWEST:
            held = f"a sample of {100 * self.sampled.ratio:.3g} % would hold {round(self.rows * self.sampled.ratio):,}"
            message = f"{name}: {self.view} has {self.rows:,} {'row' if self.rows == 1 else 'rows'}: {held}"
            return RefusedCell(name, group, "few-keys", f"{message}; it is cheap to refresh", refresh)
        if found.why == "few-keys":
            message = f"{name}: {found.differing} of the sampled keys changed it, and {FEWEST} are needed"
            return RefusedCell(name, group, "few-keys", message, f"{refresh}, or sample more keys")
        if found.why == "large-key":
            much = (
                "any amount" if found.largest is None or not math.isfinite(found.largest) else f"{found.largest:,.6g}"
            )
            message = f"{name}: one {keys} outside the sample may hold {much}, more than the sample can tell"
            keep = (
                f"raise outliers.keep (now {self.sampled.keep})" if self.sampled.keep else "add outliers: to its sample"
            )
            return RefusedCell(name, group, "large-key", message, f"{keep}, sample more keys, or {refresh}")
        if found.why == "no-bound":
            message = f"{name}: nothing is known of how much one {keys} can account for"
            hint = f"add up columns that the view sums ({', '.join(self.sampled.sized) or 'it has none'}), or {refresh}"
            return RefusedCell(name, group, "no-bound", message, hint)
        return RefusedCell(name, group, "undefined", f"{name}: it has no value here, such as 0 / 0", refresh)

    def too_wide(
        self, name: str, group: Mapping[str, Any], value: float, width: float, within: float
    ) -> RefusedCell | None:
        """`width` from end to end; wanted is `within` of the value to either side."""
        half, wanted = width / 2, within * abs(value)
        if half <= wanted:
            return None
        message = f"{name}: the interval is ± {half / abs(value):.1%}" if value else f"{name}: the value is 0"
        needed = ratio_for(half, wanted, self.ratio) if wanted else 1.0
        if needed <= self.sampled.ratio:
            way = f"--ratio {100 * needed:.2g}% would do"
        else:
            way = f"a sample of {needed:.1%} would do" if needed <= 0.5 else "no sample would do"
        hint = f"{way}; or refresh {self._dirty(self.states.dirty)}"
        return RefusedCell(name, group, "too-wide", f"{message}, more than {within:.1%}", hint)

    def _dirty(self, parts: Parts) -> str:
        return f"{self.view}[{parts_text(parts, self.length)}]"
