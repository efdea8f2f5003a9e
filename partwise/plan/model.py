"""The words of a plan: what is due and why, steps, and what waits for what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from partwise.parts import Parts, Range, range_text
from partwise.plan.refresh import Refreshed
from partwise.tables import Graph

StepKind = Literal["missing", "stale", "requested"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a part is due. `table` and `parts` name what changed, where something did."""

    kind: str  # input | definition | requested | start | repin
    table: str | None = None
    parts: Range | None = None

    def text(self, graph: Graph, missing: bool) -> str:
        if self.kind == "requested":
            return "requested"
        if self.kind == "definition":
            return "new view" if missing else "definition changed"
        if self.kind == "repin":
            return f"another version of {self.table} counts"
        if self.kind == "start" or self.table is None or self.table not in graph.tables:
            return "all inputs exist" if missing else "an earlier part became the first"
        cause = graph[self.table]
        if cause.kind == "dimension":
            return f"{cause.name} loaded" if missing else f"{cause.name} changed"
        where = f"{cause.name}[{range_text(self.parts, cause.length)}]" if self.parts else cause.name
        if missing:
            return f"{where} arrived" if cause.kind == "source" else f"{where} built"
        return f"late rows in {where}" if cause.kind == "source" else f"{where} changed"


@dataclass(frozen=True, slots=True)
class Due:
    """Consecutive parts that are due for the same newest cause, without a break since `since` (`since_seq`)."""

    lo: int
    hi: int
    seq: int
    since: float
    cause: Cause
    since_seq: int = 0

    @property
    def parts(self) -> Parts:
        return Parts.of((self.lo, self.hi))


def parts_of_due(rows: Iterable[Due]) -> Parts:
    """All parts of these rows."""
    return Parts.of(*((row.lo, row.hi) for row in rows))


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failure of a part that is still due. `retry_at` None: held until a newer cause or a request."""

    kind: str
    pin: int
    attempts: int
    retry_at: float | None
    at: float
    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """One table, one or many consecutive parts. `since`: the first of them has been due from then on."""

    table: str
    parts: Range
    kind: StepKind
    reason: str
    since: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class WaitsFor:
    """Parts that someone waits for, and why they are not there: missing, stale, deferred, failed or manual."""

    table: str
    parts: Range
    state: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """Due parts that cannot be computed now."""

    table: str
    parts: Range
    waits_for: tuple[WaitsFor, ...]


@dataclass(frozen=True, slots=True)
class Deferred:
    """Parts that wait for their view's refresh policy, since when, when they go at the latest, and what would be sooner."""

    table: str
    parts: Parts
    since: float
    fires_at: float
    waits_for: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What to do now, in order; what waits; what is left to people; what may have to follow.

    `held`: due parts that stay as published for now (they failed, or are left to people) and are read like that.
    """

    steps: tuple[Step, ...] = ()
    blocked: tuple[Blocked, ...] = ()
    manual: tuple[Step, ...] = ()
    later: Mapping[str, Parts] | None = None
    held: Mapping[str, Parts] = field(default_factory=dict)
    deferred: tuple[Deferred, ...] = ()
    allowed: Mapping[str, float] = field(default_factory=dict, compare=False)  # seconds that tables may be behind


#: The parts of a table between two indexes.
Window = tuple[str, int, int]


class Facts(Protocol):
    """What planning needs to know of the ledger, from one snapshot.

    `expect` says what will be requested, so that it can be read together; it changes no answer.
    """

    def expect(self, tables: Iterable[str] = (), windows: Iterable[Window] = ()) -> None: ...

    def due(self) -> Mapping[str, list[Due]]: ...

    def existing(self, table: str, lo: int, hi: int) -> Parts: ...

    def first_run(self, table: str) -> Range | None: ...

    def newest(self, table: str) -> int | None: ...

    def start(self, table: str) -> int | None: ...

    def lost(self, table: str) -> Parts: ...

    def failures(self) -> Mapping[str, Mapping[int, Failure]]: ...

    def refreshed(self) -> Mapping[str, Refreshed]: ...
