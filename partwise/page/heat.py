"""The heat-map: tables down, time across, one letter per cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from partwise.ledger.read.snapshot import Snapshot
from partwise.ledger.records.mixtures import mixed_parts
from partwise.ledger.records.running import running_steps
from partwise.page import queries
from partwise.page.ask import BadAsk, HeatWindow, resolution, window
from partwise.page.cells import Grid, WindowFacts, changes, paint, states_of
from partwise.page.rows import RowGroup, groups
from partwise.page.states import STATES, State, Word
from partwise.parts import FOREVER, Parts, Range, part_text
from partwise.plan.model import parts_of_due
from partwise.plan.urgency import lags
from partwise.tables import DIMENSION_PART, Table

#: A repair is marked for so many seconds, unless another time is requested.
MARKED = 86400
#: Without a wish, so many of the shortest parts are shown, the newest ones.
SHOWN = 1440
_UNPUBLISHED: frozenset[Word] = frozenset(["missing", "deferred", "manual", "stale", "blocked", "building"])


@dataclass(frozen=True, slots=True)
class Row:
    """One table. `cells`: letters with how often each follows, from cell number `first` on; see `states`.

    Cell k begins at k * `cell` seconds since 1970. `changed`: likewise, `c` for cells with a part whose content changed
    since the chosen time, in whatever state it is now. `estimated`: likewise, `e` for cells with a part that is not published as it should be, but
    that a fresh sample knows; empty without a sample. `mixed`: likewise, `m` for cells with a part that was computed while
    inputs were not up to date; empty without one. `counts` are parts by state within the window; parts that
    are repaired or empty are counted once more under these words.
    """

    table: str
    kind: str
    helper_of: str | None
    length: int
    cell: int
    first: int
    cells: str
    changed: str
    estimated: str
    mixed: str
    counts: Mapping[Word, int]
    first_part: str | None
    last_part: str | None
    writer: str | None
    late: float | None  # seconds past the deadline that its `freshness` sets


@dataclass(frozen=True, slots=True)
class RunningBackfill:
    number: int
    table: str
    first: str
    last: str
    holder: str
    began: float


@dataclass(frozen=True, slots=True)
class StepUnderWay:
    """A step that runs now: the span of its parts, and how many of them are computed. Short steps are not shown."""

    table: str
    first: str | None
    last: str | None
    done: int
    of: int
    began: float


@dataclass(frozen=True, slots=True)
class Heat:
    """`sequence` is the ledger's: as long as it is the same, nothing but `steps` has changed. Times are seconds since 1970."""

    sequence: int
    now: float
    begin: int
    end: int
    resolution: int
    since: float
    groups: tuple[RowGroup, ...]
    rows: tuple[Row, ...]
    states: tuple[State, ...]
    backfills: tuple[RunningBackfill, ...]
    steps: tuple[StepUnderWay, ...]


def heat(
    snapshot: Snapshot,
    begin: int | None = None,
    end: int | None = None,
    cells: int = 240,
    within: int = MARKED,
) -> Heat:
    """The tables from `begin` to `end`, in at most so many cells; without them the newest parts. Raises BadAsk."""
    graph, r = snapshot.graph, snapshot.r
    since = snapshot.now - within
    snapshot.facts.expect(graph.tables)
    shown = choose(snapshot, begin, end, cells)
    grids = {
        name: Grid(1, 1, 0, 0)
        if table.kind == "dimension"
        else Grid.over(shown.begin, shown.end, shown.resolution, table.length)
        for name, table in graph.tables.items()
    }
    snapshot.facts.expect(windows=((name, *grid.parts) for name, grid in grids.items()))
    facts = facts_of(snapshot, shown, {name: grid.parts for name, grid in grids.items()})
    few = [name for name, known in facts.items() if known.there and known.there.count <= queries.COUNTED]
    empty, repaired = queries.empty(r, shown, few), queries.repaired(r, shown, since)
    writers, blends = queries.writers(r, snapshot.now), mixed_parts(r)
    ordered, lag_of = groups(graph), lags(graph, snapshot.looks)
    rows = []
    for name in (name for group in ordered for name in group.tables):
        table, grid, known = graph[name], grids[name], facts[name]
        states = {word: parts.within(*grid.parts) for word, parts in states_of(table, known).items()}
        marks, bare = repaired.get(name, {}), empty.get(name, {})
        rows.append(
            Row(
                table=name,
                kind=table.kind,
                helper_of=table.helper_of,
                length=0 if table.kind == "dimension" else table.length,
                cell=grid.cell,
                first=grid.first,
                cells=paint(grid, states, marks, bare),
                changed=changes(grid, marks),
                estimated=_estimated(grid, name, facts, states),
                mixed=_mixed(grid, blends.get(name)),
                counts=_counts(states, sum(marks.values()), sum(bare.values())),
                first_part=_text(table, run.lo) if (run := snapshot.facts.first_run(name)) else None,
                last_part=_text(table, snapshot.facts.newest(name)),
                writer=writers.get(name),
                late=max(0.0, snapshot.now - lag.deadline) if (lag := lag_of.get(name)) else None,
            )
        )
    return Heat(
        sequence=r.seq,
        now=snapshot.now,
        begin=shown.begin,
        end=shown.end,
        resolution=shown.resolution,
        since=since,
        groups=ordered,
        rows=tuple(rows),
        states=STATES,
        backfills=tuple(_backfills(snapshot)),
        steps=steps_under_way(snapshot),
    )


def _estimated(grid: Grid, name: str, facts: Mapping[str, WindowFacts], states: Mapping[Word, Parts]) -> str:
    """`20-3e`: cells with a part that is not published as it should be, but that a fresh sample can tell of."""
    sample = facts.get(f"{name}__sample")
    if sample is None:
        return ""
    due = parts_of_due(sample.look.due) if sample.look else Parts()
    known = sample.there - due
    cells: set[int] = set()
    for word in _UNPUBLISHED & states.keys():
        for lo, hi in (states[word] & known).within(*grid.parts).ranges:
            cells.update(range(grid.cell_of(lo), grid.cell_of(hi) + 1))
    return changes(grid, cells, "e")


def _mixed(grid: Grid, parts: Parts | None) -> str:
    if parts is None:
        return ""
    return changes(grid, {grid.cell_of(p) for p in parts.within(*grid.parts)}, "m")


def _counts(states: Mapping[Word, Parts], repaired: int, empty: int) -> dict[Word, int]:
    found: dict[Word, int] = {word: parts.count for word, parts in states.items() if parts}
    if repaired:
        found["repaired"] = repaired
    if empty:
        found["empty"] = empty
    return found


def choose(snapshot: Snapshot, begin: int | None, end: int | None, cells: int) -> HeatWindow:
    """The window that is meant: as given, or up to the newest part of any table."""
    if begin is not None and end is not None:
        return window(begin, end, cells)
    if begin is not None or end is not None:
        raise BadAsk("from and to belong together: give both, or none for the newest parts.")
    found = []
    for name, table in snapshot.graph.tables.items():
        run, newest = snapshot.facts.first_run(name), snapshot.facts.newest(name)
        if table.kind != "dimension" and run is not None and newest is not None:
            found.append((table.length, run.lo * table.length, (newest + 1) * table.length))
    if not found:
        now = int(snapshot.now)
        return window(now - 3600, now, cells)
    shortest, last = min(found)[0], max(high for _, _, high in found)
    # The shortest parts decide: a table of days that is years old must not squeeze the minutes of today.
    first = min(low for length, low, _ in found if length == shortest)
    span = max(min(last - first, SHOWN * shortest), 30 * shortest)
    step = resolution(span, cells)
    stop = -(-last // step) * step
    return window(stop - -(-span // step) * step, stop, cells)


def facts_of(snapshot: Snapshot, shown: HeatWindow, spans: Mapping[str, Range]) -> dict[str, WindowFacts]:
    """What is known of the parts of these tables."""
    failed, opened = queries.failed(snapshot.r), queries.opened(snapshot.r, shown)
    written = queries.writers(snapshot.r, snapshot.now)
    found = {}
    for name, span in spans.items():
        table, look = snapshot.graph[name], snapshot.looks.get(name)
        found[name] = WindowFacts(
            there=snapshot.facts.existing(name, *span),
            look=look,
            failed=failed.get(name, Parts()),
            opened=opened.get(name, Parts()),
            written=name in written,
            should=_should(snapshot, table),
        )
    return found


def _should(snapshot: Snapshot, table: Table) -> Range | None:
    """From the first part that should be there to the newest that is or could be."""
    if table.kind == "dimension":
        return Range(DIMENSION_PART, DIMENSION_PART)
    facts, look = snapshot.facts, snapshot.looks.get(table.name)
    run, newest = facts.first_run(table.name), facts.newest(table.name)
    lows = [p for p in (run.lo if run else None, look.due[0].lo if look and look.due else None) if p is not None]
    highs = [p for p in (newest, look.due[-1].hi if look and look.due else None) if p is not None]
    if not lows:
        return None
    settled = facts.settled(table.name)
    low = min(lows) if settled.start is None else settled.start
    if settled.floor is not None:
        low = max(low, settled.floor)
    return Range(low, max(highs)) if low <= max(highs) else None


def _text(table: Table, p: int | None) -> str | None:
    return None if p is None or table.kind == "dimension" or abs(p) >= FOREVER else part_text(p, table.length)


def steps_under_way(snapshot: Snapshot) -> tuple[StepUnderWay, ...]:
    tables = snapshot.graph.tables
    return tuple(
        StepUnderWay(
            step.table,
            _text(tables[step.table], step.parts.lo),
            _text(tables[step.table], step.parts.hi),
            step.done,
            step.of,
            step.since,
        )
        for step in running_steps(snapshot.r, snapshot.now)
        if step.table in tables
    )


def _backfills(snapshot: Snapshot) -> list[RunningBackfill]:
    found = []
    for row in queries.running_backfills(snapshot.r, snapshot.now):
        length = snapshot.graph[row.table].length if row.table in snapshot.graph.tables else 1
        first, last = part_text(row.lo, length), part_text(row.hi, length)
        found.append(RunningBackfill(row.seq, row.table, first, last, row.holder, row.began))
    return found
