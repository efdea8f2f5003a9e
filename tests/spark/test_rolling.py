"""Rolling tables on Spark and Delta: part after part, with late rows, they hold what their windows give now."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from partwise import storage
from partwise.cli.rows_changed import RowsChanged, rows_changed
from partwise.parts import Parts
from partwise.storage.wheel import cell_of
from partwise.workspace import open_workspace
from spark_jobs.verify.verify import verify
from tests.compile.several_oracle import Draw, Form, History, Row, Windowed, joined

from .test_several import NODE, SOURCES
from .workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("several")]

#: A join by the wheel, rows of one window by the wheel, and the join again, written whole.
STREAMS = (Windowed("a", 360), Windowed("b", 240))
JOIN = f"SELECT a.k, a.x, b.y FROM {STREAMS[0].sql()} JOIN {STREAMS[1].sql()} ON b.k = a.k"
RECENT = f"SELECT k, x FROM {STREAMS[0].sql()} WHERE x > 0"
CHECKS = "checks:\n  - expect_column_values_to_not_be_null: {column: k}\n"
VIEWS = "".join(
    f"---\nview: {name}\npart: 1 minute\noutput: rolling\n{more}query: |\n  {query}\n"
    for name, query, more in (
        ("joined", JOIN, f"strategy: grid\n{CHECKS}"),
        ("recent", RECENT, "strategy: grid\n"),
        ("whole", JOIN, "strategy: recompute\n"),
    )
)


def pairs(sides: list[list[Row]]) -> list[tuple[object, ...]]:
    return [(a["k"], a["x"], b["y"]) for a, b in joined(sides)]


FORMS = {
    "joined": Form(JOIN, STREAMS, pairs),
    "recent": Form(
        RECENT, STREAMS[:1], lambda s: [(r["k"], r["x"]) for r in s[0] if r["x"] is not None and r["x"] > 0]
    ),
    "whole": Form(JOIN, STREAMS, pairs),
}


def compare(workspace: Workspace, history: History, position: int) -> None:
    for name, form in FORMS.items():
        found = workspace.rows(name)
        assert set(found) == {position}, name
        assert Counter(tuple(row.values()) for row in found[position]) == form.report(history, position), name
    assert workspace.ledger.audit() == {}


def cells(workspace: Workspace, name: str) -> list[bool]:
    current = workspace.ledger.current(name)
    handle = storage.open_at(workspace.engine.path(name, current.generation), current.version)
    return [cell_of(file.path) is not None for file in handle.files]


def told_what_changed(workspace: Workspace, folder: Path, draw: Draw, part: int) -> None:
    """`changes` knows which rows came and went with one more part."""
    (folder / "partwise.yaml").write_text("")
    before, moment = {name: rows_of(workspace, name) for name in FORMS}, time.time()
    for name in "ab":
        workspace.replace(name, {part: [draw.row(name, part) for _ in range(3)]})
    workspace.run()
    for name in FORMS:
        found, after = rows_changed(open_workspace(str(folder), {}), name, moment, 1000), rows_of(workspace, name)
        assert isinstance(found, RowsChanged)
        assert (Counter(found.came), Counter(found.went)) == (after - before[name], before[name] - after)
        assert (found.came_count, found.went_count) == (len(found.came), len(found.went))


def rows_of(workspace: Workspace, name: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for rows in workspace.rows(name).values() for row in rows)


def test_part_after_part(spark: SparkSession, tmp_path: Path) -> None:
    draw = Draw(random.Random(3))
    # Enough parts for all levels of the wheel.
    history: History = {
        name: {p: [draw.row(name, p) for _ in range(draw.rng.choice([0, 1, 2, 3]))] for p in range(14)} for name in "ab"
    }
    workspace = Workspace(spark, tmp_path, SOURCES + NODE + VIEWS, wheel_rows=0)
    seen: History = {name: {p: parts[p] for p in range(6)} for name, parts in history.items()}
    for name, parts in seen.items():
        workspace.replace(name, parts)
    workspace.run()
    compare(workspace, seen, 5)
    at = 5
    for step in (1, 1, 1, 2, 1, 1):
        at += step
        for name in "ab":
            new = {p: history[name][p] for p in range(at - step + 1, at + 1)}
            workspace.replace(name, new)
            seen[name].update(new)
        if at > 6:
            late, stream, part = draw.late(seen, "ab")
            workspace.replace(stream, {part: late[stream][part]})
            seen = late
        workspace.run()
        compare(workspace, seen, at)
        assert workspace.run() == [], "a step that runs twice changes nothing"
    told_what_changed(workspace, tmp_path, draw, at + 1)
    at += 1
    seen = {name: {**seen[name], at: workspace.rows(name)[at]} for name in "ab"}  # type: ignore[misc]
    compare(workspace, seen, at)
    assert all(cells(workspace, "joined"))
    assert cells(workspace, "recent")
    assert not any(cells(workspace, "whole"))
    checked = verify(workspace.engine)
    assert (checked.different, checked.checked) == ((), 3)
    # A table that shrinks is written whole again, and grows into a wheel again.
    for least in (10**6, 0):
        workspace.replace("b", {at: [draw.row("b", at), {**draw.row("b", at), "k": "p", "y": least}]})
        seen["b"][at] = workspace.rows("b")[at]  # type: ignore[assignment]
        workspace.run(wheel_rows=least)
        compare(workspace, seen, at)
        assert any(cells(workspace, "joined")) == (least == 0)


def test_a_check_that_fails_keeps_what_is_shown(spark: SparkSession, tmp_path: Path) -> None:
    workspace = Workspace(spark, tmp_path, SOURCES + VIEWS.replace("k}", "x}"), wheel_rows=0)
    rows = [{"k": "p", "x": 1, "ts": 0, "tie": 1}]
    workspace.replace("a", dict.fromkeys(range(7), rows))
    workspace.replace("b", {p: [{"k": "p", "y": 1, "ts": 0, "tie": 1}] for p in range(7)})
    workspace.run()
    before = workspace.rows("joined")
    workspace.replace("a", {7: [{"k": "p", "x": None, "ts": 0, "tie": 1}]})
    workspace.replace("b", {7: []})
    reports = {report.table: report for report in _run(workspace)}
    assert set(reports["joined"].failed) == {7}
    assert workspace.rows("joined") == before
    assert workspace.parts("whole") == Parts.single(7)


def _run(workspace: Workspace) -> list:  # type: ignore[type-arg]
    from spark_jobs.run import run_all

    return run_all(workspace.engine)
