"""What goes into a translation and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from partwise.parts import Bound

Strategy = Literal["merge", "subtract", "recompute", "grid", "last", "factor", "cells"]
Kind = Literal["snapshot", "pairs", "rolling"]

#: Starts the message of the error that a fast update raises when a group has several rows in the part.
MANY_ROWS = "PARTWISE_MANY_ROWS"


@dataclass(frozen=True, slots=True)
class QueryView:
    """A view written as `query:`. `part` is its part length in seconds.

    `output` says what its parts hold: the whole result (snapshot), or each joined row once (pairs).
    """

    name: str
    query: str
    part: int
    gaps: Literal["break", "carry"] = "break"
    strategy: Strategy | None = None
    partial: bool = False
    start: str = "earliest"
    output: Kind = "snapshot"


@dataclass(frozen=True, slots=True)
class InputTable:
    """A table that a query may read. `columns`: name -> Spark type, None where the type (or all) is unknown.

    `time` is the event time, `tie` the column that orders rows of equal time.
    """

    name: str
    kind: Literal["source", "view", "dimension"]
    part: int | None
    columns: Mapping[str, str | None] | None = None
    time: str | None = None
    tie: str | None = None


@dataclass(frozen=True, slots=True)
class GeneratedView:
    """One view of the translation, as if a person had written it.

    `part` is its part length in seconds. Parts of the tables in `optional` that lie before the start of that table read
    nothing instead of being waited for (partial windows); only in the first part of this view must at least one part of
    each reference exist, so the view starts with what it reads.
    `reaches` is the first part of this helper that part j of the view reads: where the view's start is given, the
    helper begins there. None: it begins as the view does. `fast_update` gives the same rows as `update` where no group
    has two rows in the part, and fails with
    MANY_ROWS otherwise, so it is safe to try. `unique_update` is the same without looking: for parts in which the
    columns `unique_by` of the table that it reads are never NULL and no two rows are alike in them. `single_pass` gives the rows of consecutive parts at once, where the
    view reads its own part before: see `partwise.compile.single_pass`; of a view that does not, from rows as they are,
    with the part of each result in `__j`. The bytes of the columns in `sketches`
    depend on the order of rows: they are left out of digests, another column stands for what they were made from.
    """

    name: str
    part: int
    update: str
    initialize: str | None = None
    helper: bool = True
    comment: str = ""
    optional: tuple[str, ...] = ()
    fast_update: str | None = None
    unique_update: str | None = None
    unique_by: tuple[str, ...] = ()
    single_pass: str | None = None
    sketches: tuple[str, ...] = ()
    reaches: Bound | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A strategy with the reason that `explain` shows."""

    strategy: Strategy | Literal["pattern"]
    why: str


@dataclass(frozen=True, slots=True)
class WindowShape:
    """What choosing by counts has to know of a window, so that it needs no parser.

    `table` is what the query reads, `ratio` of its parts make a pane, `panes` make a window, `per_slide` of them are
    new in each part of the view. `rolls`: every aggregate can be subtracted. `counted` is the strategy whose helpers say
    how many groups there are: of panes (merge), or of a window (last, for DISTINCT). Of a join they are the joined rows that
    come about in a part: of a rolling table (grid), or of groups (cells), where each row of the helper stands for as many as
    its column `weight` says. `stays` is in how many parts a joined row is shown on average, and `possible` are the ways to
    choose from, where others are not possible.
    """

    table: str
    ratio: int
    panes: int
    per_slide: int
    rolls: bool
    counted: Literal["merge", "last", "grid", "cells"] = "merge"
    weight: str | None = None
    stays: float = 1.0
    possible: tuple[Strategy, ...] = ()


@dataclass(frozen=True, slots=True)
class PaneKey:
    """`text` as it is compared, and as it is `written`: columns of rows stand at every second place, so that others can
    be put there. `name` of the column of the panes."""

    text: str
    written: tuple[str, ...]
    name: str

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(self.written[1::2])

    @property
    def column(self) -> str | None:
        """The column that it is, if it is nothing but one."""
        return self.written[1] if len(self.written) == 3 and not self.written[0] + self.written[2] else None


@dataclass(frozen=True, slots=True)
class PaneCell:
    """The same of what is aggregated. `counts`: it is never NULL."""

    text: str
    name: str
    counts: bool


@dataclass(frozen=True, slots=True)
class PaneCondition:
    """The same of a condition."""

    text: str
    written: tuple[str, ...]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(self.written[1::2])


@dataclass(frozen=True, slots=True)
class PaneShape:
    """What panes of one table hold, so that others can be told to hold at least that. `seconds` are in a pane."""

    table: str
    seconds: int
    keys: tuple[PaneKey, ...]
    cells: tuple[PaneCell, ...]
    where: tuple[PaneCondition, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """The views that one strategy makes of a window, in the order in which they are computed."""

    strategy: Strategy
    views: tuple[GeneratedView, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Translation:
    """Views in the order in which they are computed; the last one is the view itself.

    A window that can be kept in several ways has `variants`, the chosen one among them, and a `shape`. `shared` are the
    same ways with helpers that are made for several views to read, `panes` what the panes of merging hold. `types` are those of the view's columns that are
    known, by lower-case name.
    """

    views: tuple[GeneratedView, ...]
    choice: Choice
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    shared: tuple[Variant, ...] = ()
    shape: WindowShape | None = None
    panes: PaneShape | None = None
    types: tuple[tuple[str, str], ...] = ()
