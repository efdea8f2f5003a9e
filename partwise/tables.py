"""What decisions need to know of a table: its kind, its part length and what it reads.

Definitions (with their SQL, columns, checks and positions) are compiled to this; the ledger and
the planner know nothing else of them, and the simulation makes its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from partwise.parts import Reference
from partwise.plan.refresh import Refresh

Kind = Literal["source", "dimension", "view"]

#: What stands behind the kind of a helper in its name: what it is made of, or a number.
_MARK = re.compile(r"_([0-9a-f]{8}|[0-9]+)$")

#: A dimension is unpartitioned; the ledger keeps it as a table with this single part.
DIMENSION_PART = 0


@dataclass(frozen=True, slots=True)
class Input:
    """One reference of a view's query. `reference` is None for a dimension: all of it is read."""

    table: str
    reference: Reference | None


@dataclass(frozen=True, slots=True)
class Keyed:
    """A dimension's rows matter for a part only if it reads a row of `table` whose `columns` equal their `own` columns."""

    dimension: str
    own: tuple[str, ...]
    table: str
    columns: tuple[str, ...]
    reference: Reference


@dataclass(frozen=True, slots=True)
class Start:
    """Where a view begins: `earliest` (not before `part`) and `latest` are settled by what exists, `at` is given."""

    rule: Literal["earliest", "latest", "at"] = "earliest"
    part: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One table as the planner sees it.

    `initial` are the inputs of the first part (INITIALIZE), `inputs` those of every later one
    (UPDATE). A view without INITIALIZE has the same inputs in both. Parts of the inputs named in `optional`
    that lie before the start of that input read nothing; they are not waited for. A shared helper serves the views
    in `also`, too.
    """

    name: str
    kind: Kind
    length: int
    fingerprint: str
    inputs: tuple[Input, ...] = ()
    initial: tuple[Input, ...] = ()
    start: Start = Start()
    repair: Literal["automatic", "manual"] = "automatic"
    patience: float | None = None  # seconds after which a due part no longer waits for inputs that exist
    helper_of: str | None = None
    optional: tuple[str, ...] = ()
    checks: str = ""  # a mark of its checks; parts that failed are tried again when it changes
    refresh: Refresh | None = None  # when ready parts are computed; None: at once
    freshness: float | None = None  # seconds that it may be behind; None: nobody said
    rolling: bool = False  # a view that keeps only its newest part: one table that holds the result as of now
    forward: bool = False  # a dimension whose new versions count only for source parts that come to exist later
    timed: bool = False  # a dimension whose rows are valid for a time: a change counts for rows of that time
    own_times: bool = False  # rows of its own earlier parts meet those of such a dimension
    also: tuple[str, ...] = ()
    #: Of each dimension named here all that its rows meet; any change of others matters everywhere.
    keyed: tuple[Keyed, ...] = ()

    @property
    def serves(self) -> tuple[str, ...]:
        """The views that a generated helper serves; none if it is no helper."""
        return () if self.helper_of is None else (self.helper_of, *self.also)

    @property
    def for_views(self) -> tuple[str, ...]:
        """The views that are concerned by what happens to it: those that it serves, or itself."""
        return self.serves or (self.name,)

    @property
    def helper_kind(self) -> str:
        """What a generated helper is: `panes` for worst__panes as for measurements__panes_3fa1c2d4."""
        return _MARK.sub("", self.name.rpartition("__")[2])

    @property
    def of_sample(self) -> bool:
        """Whether it belongs to a sample and follows the inputs: it should not wait for its view."""
        return self.helper_of is not None and self.name.endswith(("__sizes", "__sample"))

    @property
    def of_state(self) -> bool:
        """Whether it keeps an output of its view's query for late rows: older parts of it are worth nothing."""
        return self.helper_of is not None and self.name.endswith(("__joined", "__grouped"))

    @property
    def self_references(self) -> tuple[Reference, ...]:
        return tuple(i.reference for i in self.inputs if i.table == self.name and i.reference is not None)

    def keyed_by(self, dimension: str) -> tuple[Keyed, ...]:
        """What rows of a dimension meet; nothing if each may matter for each part."""
        return tuple(item for item in self.keyed if item.dimension == dimension)

    @property
    def partitioned_inputs(self) -> tuple[Input, ...]:
        """What UPDATE reads of other partitioned tables. A view needs one: it tells which parts there are."""
        return tuple(i for i in self.inputs if i.table != self.name and i.reference is not None)

    @property
    def family(self) -> str:
        """The (first) view that a generated helper serves, else the table itself: a refresh policy holds for all of them."""
        return self.helper_of or self.name

    @property
    def input_names(self) -> tuple[str, ...]:
        """Other tables that this one reads, each once, in order of appearance."""
        names = dict.fromkeys(i.table for i in (*self.initial, *self.inputs))
        return tuple(name for name in names if name != self.name)


class Cycle(ValueError):
    """Tables that need each other; `path` starts and ends with the same name."""

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__(" -> ".join(path))
        self.path = path


@dataclass(frozen=True)
class Graph:
    """All tables of a workspace, with the order in which they can be computed."""

    tables: Mapping[str, Table] = field(default_factory=dict)

    @classmethod
    def of(cls, tables: Iterable[Table]) -> Graph:
        return cls({table.name: table for table in tables})

    def __getitem__(self, name: str) -> Table:
        return self.tables[name]

    @cached_property
    def consumers(self) -> Mapping[str, tuple[str, ...]]:
        """Which views read a table (itself aside)."""
        found: dict[str, list[str]] = {name: [] for name in self.tables}
        for table in self.tables.values():
            for name in table.input_names:
                found.setdefault(name, []).append(table.name)
        return {name: tuple(readers) for name, readers in found.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Every table after all that it reads; samples before their view. Raises Cycle."""
        done: dict[str, None] = {}
        path: list[str] = []
        # A loop with its own stack: a chain of thousands of views must not hit the recursion limit.
        for root in sorted(self.tables, key=lambda name: not self.tables[name].of_sample):
            stack = [(root, iter(self.tables[root].input_names))] if root not in done else []
            path[:] = [root] if stack else []
            while stack:
                name, rest = stack[-1]
                step = next((n for n in rest if n in self.tables and n not in done), None)
                if step is None:
                    done[name] = None
                    stack.pop()
                    path.pop()
                elif step in path:
                    raise Cycle((*path[path.index(step) :], step))
                else:
                    stack.append((step, iter(self.tables[step].input_names)))
                    path.append(step)
        return tuple(done)

    @cached_property
    def rank(self) -> Mapping[str, int]:
        return {name: at for at, name in enumerate(self.order)}

    @cached_property
    def forward(self) -> frozenset[str]:
        """Dimensions whose changes count forward only."""
        return frozenset(name for name, table in self.tables.items() if table.forward)

    @cached_property
    def timed(self) -> frozenset[str]:
        """Dimensions whose rows are valid for a time."""
        return frozenset(name for name, table in self.tables.items() if table.timed)

    @cached_property
    def bearing(self) -> frozenset[str]:
        """Views whose parts have to know when they were born: those that read a forward dimension, and what these read."""
        readers = (name for dimension in self.forward for name in self.consumers.get(dimension, ()))
        return frozenset(name for name in self.upstream(readers) if self.tables[name].kind == "view")

    @cached_property
    def behind(self) -> Mapping[str, float]:
        """Seconds that refresh policies may keep each table behind its sources: the sum along the longest path."""
        found: dict[str, float] = {}
        for name in self.order:
            table = self.tables[name]
            own = 0.0 if table.refresh is None else table.refresh.longest
            above = [(other, found.get(other, 0.0)) for other in table.input_names]
            # Helpers of a view are refreshed with it: the policy counts once.
            same = {other for other, _ in above if other in self.tables and self.tables[other].family == table.family}
            found[name] = max((late + (0.0 if other in same else own) for other, late in above), default=own)
        return found

    @cached_property
    def allowed(self) -> Mapping[str, float]:
        """Seconds that tables may be behind: their own `freshness`, or a shorter one of what is computed from them."""
        found: dict[str, float] = {}
        for name in reversed(self.order):
            own = self.tables[name].freshness
            below = [found[reader] for reader in self.consumers.get(name, ()) if reader in found]
            if own is not None or below:
                found[name] = min([*below, *([] if own is None else [own])])
        return found

    def upstream(self, names: Iterable[str]) -> frozenset[str]:
        """These tables and everything they are computed from."""
        return self._reach(names, lambda name: self.tables[name].input_names)

    def downstream(self, names: Iterable[str]) -> frozenset[str]:
        """These tables and everything computed from them."""
        return self._reach(names, lambda name: self.consumers.get(name, ()))

    def _reach(self, names, neighbours) -> frozenset[str]:  # type: ignore[no-untyped-def]
        seen: set[str] = set()
        todo = [name for name in names if name in self.tables]
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo.extend(n for n in neighbours(name) if n in self.tables)
        return frozenset(seen)


def versions_path(warehouse: str, dimension: str) -> str:
    """Where a forward dimension keeps the versions that others have taken the place of. No table can have this name."""
    return f"{warehouse.rstrip('/')}/{dimension}.versions"


def table_path(warehouse: str, table: str, generation: int) -> str:
    """A table's folder. A new generation is a new folder: readers of the old one are not disturbed."""
    return f"{warehouse.rstrip('/')}/{table}" + (f".{generation}" if generation else "")


#: Ends the names of helpers that hold rows of a stream with those of forward dimensions, by every strategy.
DATED = "dated"


def is_dated(view: str, helper: str) -> bool:
    """Whether this is such a helper of a view."""
    return helper == f"{view}__{DATED}" or helper.startswith(f"{view}__{DATED}_")
