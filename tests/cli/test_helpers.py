"""`partwise helpers`, and what `explain` says of them."""

from __future__ import annotations

from pathlib import Path

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


def test_without_helpers(run: Run, workspace: Path) -> None:
    for file in (workspace / "view_defs").rglob("*.yaml"):
        if "query:" in file.read_text():
            file.unlink()
    assert "No view has helpers" in run("helpers").out
