"""A fresh answer: rows of cells, each with its value and interval, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from partwise.fresh.states import PartStates
from partwise.ledger.records.estimates import Coverage

Method = Literal["exact", "correction", "correction from stand-in", "sample", "bound"]


@dataclass(frozen=True)
class FreshBound:
    """Of MAX (`at_least`) or MIN (`at_most`): certain; at most so many rows lie beyond it, with the confidence."""

    value: Any
    largest: bool
    rows_beyond: int | None


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
    bound: FreshBound | None = None


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
class Unseen:
    """What a group has at most of which the sample has no key, with the confidence. `rows`: None if not known."""

    keys: int
    rows: int | None


@dataclass(frozen=True)
class SelectedRows:
    """Rows with whether each is fresh: of a clean part, or of a sampled or exact key."""

    columns: tuple[str, ...]
    rows: tuple[tuple[tuple[Any, ...], bool], ...]


@dataclass(frozen=True)
class FreshAnswer:
    """`note`: why the answer is not as of now, if it is not. `length`: of the view's parts."""

    view: str
    rows: tuple[FreshRow, ...]
    states: PartStates
    confidence: float
    ratio: float
    keys: tuple[int, int, int] = (0, 0, 0)
    unseen: Unseen | None = None
    checked: Coverage | None = None
    note: str = ""
    length: int = 1
    selected: SelectedRows | None = None

    @property
    def refused(self) -> list[RefusedCell]:
        return [cell.refused for row in self.rows for cell in row.cells.values() if cell.refused is not None]
