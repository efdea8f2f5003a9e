"""MIN and MAX as bounds: what is known to be there after a refresh cannot be undercut.

For MAX that is the largest value among clean parts and the fresh rows of sampled and exact keys. Keys that nobody has
looked at may hold more, but few do: had many, one of them would be in the sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from partwise.fresh.adding.compared import Compared
from partwise.fresh.adding.pairs import JoinedCompared
from partwise.fresh.asked.results import ExtremeOf


@dataclass(frozen=True)
class ExtremeAt:
    """The bound as DuckDB has it, and as a number where it is one."""

    value: Any
    number: float | None


class Extremes:
    def __init__(self, compared: Compared | JoinedCompared, at: int, of: ExtremeOf) -> None:
        value = f"CASE WHEN {of.only} THEN {of.value} END" if of.only else of.value
        groups = [f"__g{n}" for n in range(len(compared.question.groups))]
        call = "MAX" if of.largest else "MIN"
        by = f" GROUP BY {', '.join(groups)}" if groups else ""
        rows = compared.chosen("SELECT * FROM __known", [f"{value} AS v"])
        shown = ", ".join([*groups, f"{call}(v)", f"TRY_CAST({call}(v) AS DOUBLE)"])
        found = compared.on.execute(f"SELECT {shown} FROM ({rows}){by}").fetchall()
        self.found = {tuple(row[:-2]): ExtremeAt(row[-2], row[-1]) for row in found}


def keys_beyond(ratio: float, confidence: float) -> int:
    """At most so many keys lie beyond the sample's extreme, with this confidence: else one of them would be in it."""
    return 0 if ratio >= 1 else math.ceil(math.log(1 - confidence) / math.log(1 - ratio))
