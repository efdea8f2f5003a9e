"""Joins, views as input, late rows at every place of a window, and helpers that aggregates share."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from partwise.compile import InputTable, QueryView, Translation, translate
from partwise.compile.load import load_texts
from tests.compile.duck import Duck, catch_up, repair

TABLE = InputTable("s", "source", 60, {"g": "string", "ts": "bigint", "x": "int", "d": "decimal(8,2)"}, "ts")
NODES = InputTable("nodes", "dimension", None, {"node": "string", "region": "string"})
STRATEGIES = ("recompute", "merge", "subtract")


def translated(query: str, strategy: str, table: InputTable = TABLE, part: int = 60) -> Translation:
    return translate(QueryView("v", query, part, strategy=strategy), {table.name: table, "nodes": NODES})  # type: ignore[arg-type]


def filled(made: Translation, rows: list[dict[str, Any]], parts: int, table: InputTable = TABLE) -> Duck:
    duck = Duck(made, [table, NODES])
    duck.insert(
        "nodes", [{"node": "a", "region": "north"}, {"node": "b", "region": "south"}, {"node": "c", "region": None}]
    )
    duck.insert(table.name, rows)
    catch_up(duck, {table.name: set(range(parts))})
    return duck


def values(duck: Duck, part: int) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in duck.rows("v", part)), key=repr)


ROWS = [
    {"part": p, "g": g, "ts": 60 * p, "x": 10 * p + k} for p in range(4) for k, g in enumerate(["a", "b", "c", "z"])
]
#: x of the groups in parts 2 and 3: a 20 + 30, b 21 + 31, c 22 + 32, z (in no dimension) 23 + 33.
JOINS = {
    "JOIN nodes n ON n.node = s.g": [("north", 50, 2), ("south", 52, 2), (None, 54, 2)],
    "LEFT JOIN nodes n ON n.node = s.g": [("north", 50, 2), ("south", 52, 2), (None, 110, 4)],
    "JOIN nodes AS n ON n.node = s.g AND n.region IS NOT NULL": [("north", 50, 2), ("south", 52, 2)],
    "CROSS JOIN nodes n": [("north", 212, 8), ("south", 212, 8), (None, 212, 8)],
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("join", JOINS)
def test_joins_with_a_dimension(join: str, strategy: str) -> None:
    query = f"SELECT n.region, SUM(s.x) AS total, COUNT(*) AS many FROM s [WINDOW 2 minutes] {join} GROUP BY n.region"
    duck = filled(translated(query, strategy), ROWS, 4)
    assert values(duck, 3) == sorted(JOINS[join], key=repr)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("join", "groups"), [("SEMI", "abc"), ("ANTI", "z")])
def test_a_dimension_may_choose_the_rows(join: str, groups: str, strategy: str) -> None:
    query = f"SELECT g, MAX(x) AS top, COUNT(*) AS many FROM s [WINDOW 2 minutes] LEFT {join} JOIN nodes n ON n.node = s.g GROUP BY g"
    assert values(filled(translated(query, strategy), ROWS, 4), 3) == [
        (g, 30 + "abcz".index(g), 2) for g in groups
    ]  # fmt: skip


@pytest.mark.parametrize("strategy", ["recompute", "merge"])
def test_a_view_may_be_the_input(strategy: str) -> None:
    """Types of its columns may not be known; without event time FIRST and LAST go by the part."""
    known = InputTable("u", "view", 60, {"g": "string", "x": "int", "part_timestamp": "bigint"})
    x = "x" if strategy == "recompute" else "CAST(x AS INT)"  # the type of a sum of sums is not that of a sum
    query = f"SELECT g, MAX(x) AS top, SUM({x}) AS total, FIRST(x) AS first_x, LAST(x) AS last_x FROM u [WINDOW 3 minutes] GROUP BY g"
    made = translated(query, strategy, InputTable("u", "view", 60, {"g": None, "x": None}))
    rows = [{"part": p, "part_timestamp": 60 * p, "g": "a", "x": x} for p, x in enumerate([9, 4, 7, 1])]
    assert values(filled(made, rows, 4, known), 3) == [("a", 7, 12, 4, 1)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("at", range(8))
def test_a_late_row_changes_the_windows_that_hold_it_and_no_others(at: int, strategy: str) -> None:
    query = (
        "SELECT g, SUM(x) AS total, SUM(d) AS money, COUNT(*) AS n, MIN(x) AS low FROM s [WINDOW 3 minutes] GROUP BY g"
    )
    rows = [{"part": p, "g": "a", "ts": 60 * p, "x": p, "d": p} for p in range(8) if p != 4]
    duck = filled(translated(query, strategy), rows, 8)
    before = {p: values(duck, p) for p in range(2, 8)}
    late = [{"part": at, "g": g, "ts": 60 * at, "x": -3, "d": None} for g in ("a", "new")]
    duck.insert("s", late)
    done = repair(duck, {("s", at)})
    holding = [p for p in range(2, 8) if p - 2 <= at <= p]
    assert [part for view, part in done if view == "v"] == holding
    for part in range(2, 8):
        if part not in holding:
            assert values(duck, part) == before[part]
            continue
        ((_, total, money, n, _),) = before[part]
        assert values(duck, part) == [("a", total - 3, money, n + 1, -3), ("new", -3, None, 1, -3)]


def test_aggregates_share_what_they_are_made_from() -> None:
    query = "SELECT g, SUM(x) AS a, AVG(x) AS b, COUNT(x) AS c, SUM(x) / COUNT(*) AS e FROM s [WINDOW 5 minutes] GROUP BY g HAVING COUNT(*) > 1"
    for strategy, columns in (("merge", ["sum_x", "count_x", "n"]), ("subtract", ["n", "sum_x", "count_x"])):
        panes = translated(query, strategy).views[0]
        assert panes.name == "v__panes", "named after the view"
        assert re.findall(r" AS (\w+)", panes.update) == columns


def test_a_window_over_parts_of_an_hour_slides_by_an_hour() -> None:
    table = replace(TABLE, part=1800)
    made = translated(
        "SELECT g, SUM(x) AS a FROM s [WINDOW 90 minutes SLIDE 1 hour] GROUP BY g", "subtract", table, 3600
    )
    duck = filled(made, [{"part": p, "g": "a", "ts": 1800 * p, "x": 2**p} for p in range(8)], 8)
    assert {p: values(duck, p) for p in sorted(duck.built["v"])} == {
        p: [("a", sum(2**k for k in range(2 * p - 1, 2 * p + 2)))] for p in (1, 2, 3)
    }


DEFINITIONS = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: int}
files: landing/m/*.csv
---
dimension: nodes
columns: {node: string, region: string}
files: landing/nodes.csv
---
view: v
part: 1 minute
strategy: %s
query: |
  SELECT region, SUM(x) AS total FROM m [WINDOW 5 minutes] JOIN nodes ON node = g GROUP BY region
"""


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_reads_the_rows_depends_on_the_dimension(strategy: str) -> None:
    """So a new content of it makes exactly these parts stale; what is made of them follows."""
    found = load_texts({"all.yaml": (DEFINITIONS % strategy).encode()})
    assert found.ok, found.problems
    graph = found.graph()
    readers = [name for name, table in graph.tables.items() if "nodes" in {i.table for i in table.inputs}]
    if strategy == "recompute":
        assert readers == ["v"]
    else:
        assert [(name.rpartition("_")[0], graph[name].for_views) for name in readers] == [("m__panes", ("v",))]
