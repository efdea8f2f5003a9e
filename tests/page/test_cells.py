"""Cells from ranges: every part in exactly one state, the worst of a cell wins, at every zoom."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.ledger.read.reports import state_of
from partwise.page import queries
from partwise.page.ask import HeatWindow
from partwise.page.cells import Grid, paint, states_of
from partwise.page.heat import Row, facts_of, heat
from partwise.page.part import cell, details
from partwise.page.states import LETTERS, RANK, STATES, Word
from partwise.parts import Parts, Range
from tests.page.warehouse import MINUTE, TEN, Warehouse, every_state, small


def unpack(text: str) -> str:
    return "".join(letter * int(count) for count, letter in re.findall(r"(\d+)(\D)", text))


@given(
    length=st.sampled_from([1, 7, 60, 300, 3600, 86400]),
    resolution=st.sampled_from([1, 60, 300, 3600, 86400, 604800]),
    begin=st.integers(-(10**7), 10**9),
    span=st.integers(1, 10**6),
)
def test_every_part_lies_in_one_cell_and_cells_cover_the_window(
    length: int, resolution: int, begin: int, span: int
) -> None:
    grid = Grid.over(begin, begin + span, resolution, length)
    first, last = grid.parts_of(grid.first), grid.parts_of(grid.last)
    assert grid.first * grid.cell <= begin
    assert (grid.last + 1) * grid.cell >= begin + span
    for k in (grid.first, grid.last):
        assert all(grid.cell_of(p) == k for p in (grid.parts_of(k).lo, grid.parts_of(k).hi))
    assert grid.parts == Range(first.lo, last.hi)
    assert grid.parts_of(grid.first + 1).lo == first.hi + 1


_ranges = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=6).map(
    lambda pairs: Parts.of(*((a, a + n) for a, n in pairs))
)


@given(
    states=st.dictionaries(
        st.sampled_from([s.word for s in STATES if s.word not in ("none", "empty", "repaired")]), _ranges
    ),
    per_cell=st.sampled_from([1, 3, 10]),
)
def test_the_worst_state_of_a_cell_wins(states: dict[Word, Parts], per_cell: int) -> None:
    taken = Parts()
    apart: dict[Word, Parts] = {}
    for word, parts in states.items():  # each part has one state
        apart[word] = parts - taken
        taken |= parts
    grid = Grid.over(0, 60 * 350, 60 * per_cell, 60)
    found = unpack(paint(grid, apart))
    for k in range(grid.first, grid.last + 1):
        inside = grid.parts_of(k)
        words = [w for w, parts in apart.items() if parts.within(*inside)]
        worst = max(words, key=RANK.__getitem__, default="none")
        assert found[k - grid.first] == LETTERS[RANK[worst]]


def test_states_agree_with_what_status_says_of_each_part() -> None:
    made = every_state()
    seen = set()
    with made.snapshot() as snapshot:
        shown = HeatWindow(TEN - 3600, TEN + 3 * 3600, 60)
        for name, table in snapshot.graph.tables.items():
            if table.kind == "dimension":
                continue
            span = Grid.over(shown.begin, shown.end, 60, table.length).parts
            facts = facts_of(snapshot, shown, {name: span})[name]
            by_state = states_of(table, facts)
            there, opened = facts.there, queries.opened(snapshot.r, shown).get(name, Parts())
            look = snapshot.looks.get(name)
            due = Parts.of(*((row.lo, row.hi) for row in look.due)) if look else Parts()
            for p in range(span.lo, span.hi + 1):
                words = [word for word, parts in by_state.items() if p in parts]
                assert len(words) <= 1, (name, p, words)
                said = state_of(snapshot, name, p, p in there, p in due, p in facts.failed, p in opened)
                mine = words[0] if words else "missing"  # not expected at all
                mine = {"building": "stale" if p in there else "missing"}.get(mine, mine)
                assert mine == said, (name, p)
                seen.update(words)
    assert seen == {"fresh", "open", "building", "missing", "manual", "stale", "blocked", "failed"}


#: Windows that begin and end with cells, that cut them, and that lie within one part of an hour.
WINDOWS = [(TEN, TEN + 7200), (TEN + 1217, TEN + 7111), (TEN + 1800, TEN + 2400), (TEN - 3590, TEN + 10)]


@pytest.fixture(scope="module")
def by_part() -> tuple[Warehouse, dict[str, Row]]:
    """Every row part by part, over more days than can be requested at once."""
    made = every_state()
    made.deliver("orders", {}, {TEN // 86400: 2})
    with made.snapshot() as snapshot:
        days = [heat(snapshot, at, at + 86400, 2000) for at in range(TEN - 36000 - 86400, TEN + 86400, 86400)]
    rows = {}
    for same in zip(*(day.rows for day in days), strict=True):
        whole = {name: "".join(getattr(row, name) for row in same) for name in ("cells", "changed")}
        rows[same[0].table] = replace(same[0], **whole)
    return made, rows


@pytest.mark.parametrize("begin, end", WINDOWS)
@pytest.mark.parametrize("cells", [2000, 100, 7, 1])
def test_the_heat_map_shows_the_same_at_every_zoom(
    by_part: tuple[Warehouse, dict[str, Row]], cells: int, begin: int, end: int
) -> None:
    made, exact = by_part
    with made.snapshot() as snapshot:
        found = heat(snapshot, begin, end, cells)
    assert (found.end - found.begin) / found.resolution <= cells
    for row in found.rows:
        if row.kind == "dimension":
            assert (row.cells, row.changed) == ("1f", "1-")
            continue
        each = exact[row.table]
        for of_row, of_part in ((row.cells, each.cells), (row.changed, each.changed)):
            worst: dict[int, str] = {}
            for at, letter in enumerate(unpack(of_part)):
                k = (each.first + at) * each.cell // row.cell
                worst[k] = max(worst.get(k, "-"), letter, key=f"{LETTERS}c".index)
            mine = {row.first + at: letter for at, letter in enumerate(unpack(of_row))}
            assert mine == {k: worst[k] for k in mine}, row.table


def test_a_part_that_changed_is_marked_in_whatever_state_it_is_now() -> None:
    made = every_state()
    made.deliver("measurements", {MINUTE + 22: 9})  # repaired before, stale now
    with made.snapshot() as snapshot:
        row = next(r for r in heat(snapshot, TEN, TEN + 7200, 2000).rows if r.table == "by_minute")
        assert unpack(row.cells)[20:26] == "rrsrrf"
        assert unpack(row.changed)[19:26] == "-ccccc-"
        assert row.counts["repaired"] == 5
        found = cell(snapshot, snapshot.graph["by_minute"], TEN + 1200, TEN + 1560)
        assert found.counts == {"fresh": 5, "stale": 1, "repaired": 5}
        assert details(snapshot, snapshot.graph["by_minute"], MINUTE + 22).state == "stale"


def test_repairs_are_marked_and_forgotten_and_empty_parts_are_told_apart() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        row = {r.table: r for r in heat(snapshot, TEN, TEN + 7200, 2000).rows}
        assert unpack(row["final"].cells)[20:26] == "rrrrrf"
        assert "e" in row["worst"].cells
        assert row["worst"].counts["empty"] == 11
        later = {r.table: r for r in heat(snapshot, TEN, TEN + 7200, 2000, within=10).rows}
        assert "r" not in later["final"].cells
    made.now += 2 * 86400
    with made.snapshot() as snapshot:
        assert all("r" not in r.cells for r in heat(snapshot, TEN, TEN + 7200, 2000).rows)


def test_without_a_wish_the_newest_parts_are_shown_by_the_shortest_part() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        found = heat(snapshot, cells=120)
        assert (found.begin, found.resolution) == (TEN, 60)
        assert found.end == (MINUTE + 115) * 60


def test_an_empty_warehouse_is_shown() -> None:
    made = Warehouse.of(small())
    with made.snapshot() as snapshot:
        found = heat(snapshot)
        assert {row.cells for row in found.rows if row.kind != "dimension"} <= {f"{n}-" for n in range(1, 400)}


def test_sources_come_first_and_helpers_follow_their_view() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        groups = heat(snapshot).groups
    assert [group.title for group in groups] == ["measurements", "orders"]
    names = groups[0].tables
    assert names[:2] == ("measurements", "nodes")
    assert names.index("worst_helper") == names.index("worst") + 1
    assert names.index("by_minute") < names.index("final")


def test_a_cell_of_many_parts_is_counted_by_state() -> None:
    made = every_state()
    with made.snapshot() as snapshot:
        found = cell(snapshot, snapshot.graph["by_minute"], TEN + 2400, TEN + 3000)
        assert found.count == 10
        assert found.counts == {"fresh": 4, "stale": 5, "failed": 1}
        assert (found.rows, found.revision) == (30, 1)
        one = cell(snapshot, snapshot.graph["by_minute"], TEN + 1200, TEN + 1260)
        assert (one.part, one.rows, one.revision) == ("2026-10-03T10:20", 3, 2)
