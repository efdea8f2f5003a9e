"""A small world to prove the ledger and the planner in: tables are dictionaries, views are functions.

Storage keeps every version of every table, and a commit is a compare-and-swap on the version, as in
the real thing. Everything else is the product's own code on a real (in-memory) ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from zlib import crc32

from partwise.ledger.write.commit import Content, Entry
from partwise.parts import Range
from partwise.tables import DIMENSION_PART, Graph, Input, Table

if TYPE_CHECKING:
    from tests.simulation.forward import Arrivals

Value = int | None  # None: an empty part


class Conflict(Exception):
    """Another commit took the version."""


@dataclass
class Stored:
    """One table of one generation: all its versions, with the entry of the commit that made each."""

    versions: list[tuple[dict[int, Value], Entry | None]] = field(default_factory=list)

    @property
    def version(self) -> int | None:
        return len(self.versions) - 1 if self.versions else None

    def at(self, version: int | None) -> dict[int, Value]:
        return {} if version is None else self.versions[version][0]


class Storage:
    """All tables. `swap` False breaks the compare-and-swap, to see that it is needed."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, int], Stored] = {}
        self.swap = True

    def __getitem__(self, key: tuple[str, int]) -> Stored:
        return self.tables.setdefault(key, Stored())

    def commit(
        self,
        table: str,
        generation: int,
        expected: int | None,
        new: dict[int, Value],
        entry: Entry,
        gone: int = -(2**62),
    ) -> int:
        stored = self[table, generation]
        if stored.version != expected and self.swap:
            raise Conflict(table)
        base = {p: v for p, v in stored.at(stored.version).items() if p >= gone}
        stored.versions.append((base | new, entry))
        assert stored.version is not None
        return stored.version


@dataclass(frozen=True)
class Model:
    """Definitions of one snapshot: the planner's tables, and the number that stands for each view's SQL."""

    graph: Graph
    salts: dict[str, int]

    def with_view(self, table: Table, salt: int) -> Model:
        keyed = (table.keyed,) if table.keyed else ()
        meaning = repr((table.inputs, table.initial, table.length, table.start, table.optional, *keyed)).encode()
        fingerprint = f"{salt}:{crc32(meaning):x}"
        tables = {**self.graph.tables, table.name: replace(table, fingerprint=fingerprint)}
        return Model(Graph(tables), {**self.salts, table.name: salt})


def compute(table: Table, salt: int, start: int, j: int, starts: Mapping[str, int | None], read) -> Value:  # type: ignore[no-untyped-def]
    """The view's function: deterministic, sensitive to every part it requires, and with few values,
    so that a recomputation often gives what was there before."""
    total = salt
    needs = required(table, start, j, starts)
    for n, (name, span) in enumerate(needs):
        if table.keyed_by(name):
            values = met(table, name, j, needs, read)
        else:
            values = [(p, read(name, p)) for p in range(span.lo, span.hi + 1)]
        for p, value in values:
            total = total * 31 + (n + 1) * (p % 7 + 1) * (7 if value is None else value + 11)
    total = (total ^ (total >> 7)) % 4
    return None if total == 3 else total


#: A part of a table holds one key or none, by its value; a dimension has a value for each key.
KEYS = (0, 1, 2)


def key_of(value: Value) -> int | None:
    return value


def with_key(dimension: Value, key: int, value: int) -> int:
    return (dimension or 0) + (value - (looked_up(dimension, key) or 0)) * 3**key


def looked_up(dimension: Value, key: int) -> Value:
    """0: it has no row with this key."""
    return 0 if dimension is None else dimension // 3**key % 3


def met(table: Table, dimension: str, j: int, needs: list[tuple[str, Range]], read) -> list[tuple[int, Value]]:  # type: ignore[no-untyped-def]
    """What the rows of a part find in a dimension, and nothing else of it."""
    found = []
    for item in table.keyed_by(dimension):
        at = table.inputs.index(Input(item.table, item.reference))
        span = needs[at][1]
        keys = [(p, key_of(read(item.table, p))) for p in range(span.lo, span.hi + 1)]
        found += [(p, looked_up(read(dimension, DIMENSION_PART), key)) for p, key in keys if key is not None]
    return found


def merged(old: Value, was: Value, now: Value) -> Value:
    """What a part holds after its change was merged into it: right only if it held what the inputs gave before."""
    given, before, after = (3 if value is None else value for value in (old, was, now))
    found = given ^ before ^ after
    return None if found == 3 else found


def required(
    table: Table, start: int, j: int, starts: Mapping[str, int | None] | None = None
) -> list[tuple[str, Range]]:
    """What part j reads; of the view itself, and with `starts` of its optional inputs, nothing before the start.

    Only the first part must read something of each.
    """
    found = []
    for item in table.initial if j == start else table.inputs:
        span = Range(DIMENSION_PART, DIMENSION_PART) if item.reference is None else item.reference.requires(j)
        if item.table == table.name:
            span = Range(max(span.lo, start), span.hi)
        begins = starts.get(item.table) if starts and item.table in table.optional else None
        if begins is not None and (span.hi >= begins or j != start):
            span = Range(max(span.lo, begins), span.hi)
        found.append((item.table, span))
    return found


def content(value: Value) -> Content:
    return Content(0 if value is None else 1, str(value))


def scratch(
    model: Model,
    sources: dict[str, dict[int, Value]],
    starts: dict[str, int],
    frozen: dict[str, tuple[int, dict[int, Value]]] | None = None,
    arrivals: Arrivals | None = None,
) -> dict[str, dict[int, Value]]:
    """Recompute everything from the sources, in order: what the tables must hold in the end.

    `frozen` has, for a table, a part below which nothing can be recomputed, and what it holds there.
    `arrivals` says what counts of forward dimensions.
    """
    from tests.simulation import timed

    below = frozen or {}
    old: dict[str, dict[int, Value]] = {}
    tables: dict[str, dict[int, Value]] = {}
    starts = {name: min(parts) for name, parts in sources.items() if parts} | starts
    for name, parts in sources.items():
        low, kept = below.get(name, (-(2**62), {}))
        tables[name] = {p: v for p, v in kept.items() if p < low} | {p: v for p, v in parts.items() if p >= low}
    horizon = max((p for parts in sources.values() for p in parts), default=0) * 4 + 40
    for name in model.graph.order:
        view = model.graph[name]
        if view.kind != "view":
            continue
        low, kept = below.get(name, (-(2**62), {}))
        tables[name] = own = {p: v for p, v in kept.items() if p < low}
        if name not in starts or not view.partitioned_inputs:
            continue
        for j in range(starts[name], low) if arrivals else ():
            arrivals.add(view, starts[name], j, starts)
        for j in range(max(starts[name], low), horizon):
            needs = required(view, starts[name], j, starts)
            if any(t in view.optional and t not in starts for t, _ in needs):
                continue
            if all(p in tables.get(t, {}) for t, span in needs for p in range(span.lo, span.hi + 1)):
                if arrivals:
                    arrivals.add(view, starts[name], j, starts)
                    born = arrivals.born[name][j]
                    old = {t: {DIMENSION_PART: arrivals.read(t, born)} for t, _ in needs if t in model.graph.forward}
                lengths = {t.name: t.length for t in model.graph.tables.values()}
                seen = timed.seen(view, starts[name], j, lengths, {**tables, **old})
                own[j] = compute(view, model.salts[name], starts[name], j, starts, lambda t, p, seen=seen: seen[t][p])
    return tables
