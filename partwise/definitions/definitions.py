"""What authors wrote, frozen and checked, lengths in seconds. Nothing that is generated stands here.

What runs is made of it in `partwise.compile`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from partwise.definitions.problems import Problem
from partwise.definitions.yaml.places import Place, Placed
from partwise.plan.refresh import Refresh
from partwise.sql.references import FoundReferences
from partwise.sql.tables import tables_read
from partwise.tables import Start


@dataclass(frozen=True)
class Statement:
    """A query as written (without a semicolon at its end), what it reads, and where its text stands.

    `canonical` is one text for all the ways to write the same query.
    """

    text: str
    index: str
    found: FoundReferences
    placed: Placed
    canonical: str


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation by its Great Expectations name; `place` is that of its name."""

    name: str
    arguments: Mapping[str, Any]
    severity: Literal["error", "warn"]
    place: Place


@dataclass(frozen=True, slots=True)
class Time:
    """The event time: `unit` None means the column holds times (or text that Spark reads as times).

    `tie` orders rows of equal time.
    """

    column: str
    unit: Literal["seconds", "milliseconds"] | None = None
    tie: str | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """When a part is complete; `delay` in seconds, `marker` a path with `{part}`."""

    rule: Literal["delay", "marker", "manual"] = "delay"
    delay: int = 0
    marker: str | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Seconds; None: no bound."""

    accept: int | None = None
    future: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A table fed from outside. Exactly one of `files` (patterns) and `delta` is given. `poll` 0: only on demand.

    `key` and `max_removed` (a share of 1) are among the `checks` as well.
    """

    name: str
    place: Place
    part: int
    time: Time
    columns: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    delta: str | None = None
    close: Close = Close()
    late: Late = Late()
    keep: int | None = None
    poll: int | None = None
    checks: tuple[Check, ...] = ()
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    max_removed: float | None = None


@dataclass(frozen=True, slots=True)
class Dimension:
    """A small unpartitioned table. Exactly one of `files` and `delta` is given.

    `valid_from` is the last column of `key`: the others tell what a row is about.
    """

    name: str
    place: Place
    columns: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    delta: str | None = None
    poll: int | None = None
    checks: tuple[Check, ...] = ()
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    max_removed: float | None = None
    change: Literal["retroactive", "forward"] = "retroactive"
    valid_from: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Of a view's keys, for fresh answers. No `key`: found from the query. `keep` keys are exact, the largest by
    `outliers`, and those listed in `exact`. A missing part is compared with the newest built one (`last`), with the `mean` of so
    many of them, with that of `ago` seconds before, or with none."""

    ratio: float
    key: tuple[str, ...] = ()
    outliers: str | None = None
    keep: int = 0
    exact: tuple[str, ...] = ()
    stand_in: Literal["last", "mean", "ago", "none"] = "last"
    ago: int | None = None
    mean: int | None = None


@dataclass(frozen=True, slots=True)
class KeptState:
    """A join of inputs, by alias or name, that is kept for repairs; `keep` in seconds, None: as long as it may serve."""

    join: tuple[str, ...]
    keep: int | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A table computed here: either `update` (with or without `initialize`), or a `query` that is compiled to them.

    `state` is what its author wants to have kept, `may_keep` what Partwise may choose to keep by itself.
    """

    name: str
    place: Place
    part: int
    start: Start = field(default_factory=Start)
    initialize: Statement | None = None
    update: Statement | None = None
    query: Placed | None = None
    gaps: Literal["break", "carry"] = "break"
    strategy: Literal["auto", "merge", "subtract", "recompute", "last", "factor", "grid", "cells"] = "auto"
    output: Literal["snapshot", "pairs", "rolling"] = "snapshot"
    updates: Literal["monotonic", "weakest", "weak", "strict"] | None = None
    partial: bool = False
    share: bool = True
    keep: int | None = None
    repair: Literal["automatic", "manual"] = "automatic"
    repair_by: Literal["auto", "recompute", "keys", "merge"] = "auto"
    refresh: Refresh | None = None
    freshness: int | None = None
    sample: Sample | None = None
    state: KeptState | None = None
    may_keep: tuple[Literal["aggregate", "joins"], ...] = ("aggregate", "joins")
    engine: Literal["connect", "submit"] | None = None
    patience: int | None = None
    timeout: int | None = None
    checks: tuple[Check, ...] = ()
    description: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(s for s in (self.initialize, self.update) if s is not None)


Definition = Source | Dimension | View


@dataclass(frozen=True)
class Definitions:
    """What the authors of a workspace wrote, by name, and everything that is wrong with it.

    `broken` are names (lower case) with errors. Their definitions may be in `tables` for looking at.
    """

    tables: Mapping[str, Definition] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings and notes are allowed."""
        return not any(problem.severity == "error" for problem in self.problems)


def inputs_of(definition: Definition) -> tuple[str, ...]:
    """Names (lower case) that a view reads, in order of appearance."""
    if not isinstance(definition, View):
        return ()
    if definition.query is not None and definition.update is None:
        return tuple(tables_read(definition.query.text))
    return tuple(dict.fromkeys(found.table.lower() for s in definition.statements for found in s.found.tables))
