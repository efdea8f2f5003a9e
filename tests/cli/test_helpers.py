"""`partwise helpers`, and what `explain` says of them."""

from __future__ import annotations

from pathlib import Path

from partwise.workspace import open_workspace
from tests.cli.conftest import Run
from tests.cli.stand_in import build_what_is_ready, load_dimension, load_rows


def test_helpers_are_listed_with_whom_they_serve(run: Run, workspace: Path) -> None:
    before = {item["name"]: item for item in run("helpers", "--json").json["helpers"]}
    assert before["measurements__panes_22df7ee0"] == {
        "name": "measurements__panes_22df7ee0",
        "input": "measurements",
        "serves": ["worst_ten_minutes"],
        "parts": 0,
        "rows": 0,
    }
    load_rows(workspace, "measurements", "2026-10-03T10:00..2026-10-03T10:14", rows=6)
    load_dimension(workspace, "nodes", rows=3)
    while build_what_is_ready(workspace):
        pass
    after = {item["name"]: item for item in run("helpers", "--json").json["helpers"]}
    assert after["measurements__panes_22df7ee0"]["parts"] == 15
    assert after["measurements__panes_22df7ee0"]["rows"] > 0
    shown = run("helpers").out
    assert "measurements__panes_22df7ee0" in shown
    assert "serves" in shown
    views = {item["name"]: item["helpers"] for item in run("explain", "worst_ten_minutes", "--json").json["views"]}
    assert views["worst_ten_minutes"] == [{"name": "measurements__panes_22df7ee0", "serves": ["worst_ten_minutes"]}]
    assert views["measurements__panes_22df7ee0"] == []


def test_helpers_that_were_built_for_a_view_alone_stay(run: Run, workspace: Path) -> None:
    """As an earlier release left them."""
    where = open_workspace(str(workspace), {})
    program = where.load()
    ledger = where.open_ledger(0.0)
    ledger.define(program.with_own(program.views).graph(), 0.0)
    ledger.database.close()
    names = {item["name"] for item in run("helpers", "--json").json["helpers"]}
    assert {"worst_ten_minutes__panes", "high_loss__helper"} <= names
    assert run("plan", "--json").json["definitions"]["added"] == []
    assert "sharing: none" in run("explain", "worst_ten_minutes").out
    found = {item["name"]: item for item in run("explain", "worst_ten_minutes", "--json").json["views"]}
    assert (found["worst_ten_minutes"]["shares"], found["worst_ten_minutes"]["together"]) == (False, None)


def test_without_helpers(run: Run, workspace: Path) -> None:
    for file in (workspace / "view_defs").rglob("*.yaml"):
        if "query:" in file.read_text():
            file.unlink()
    assert "No view has helpers" in run("helpers").out
