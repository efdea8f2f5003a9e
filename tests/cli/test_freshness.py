"""`freshness`: what is validated, and who is shown as late."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.stand_in import build_what_is_ready, load_dimension, load_rows


@pytest.fixture
def hurried(workspace: Path) -> Path:
    """`total_loss` may be a second behind."""
    file = next(f for f in (workspace / "view_defs").rglob("*.yaml") if "view: total_loss\n" in f.read_text())
    file.write_text(file.read_text().replace("view: total_loss\n", "view: total_loss\nfreshness: 1 second\n"))
    return workspace


def test_status_names_who_is_past_its_deadline(run: Run, hurried: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_rows(hurried, "measurements", "2026-10-03T10:00..2026-10-03T10:04", rows=6)
    load_dimension(hurried, "nodes", rows=3)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 70)
    shown = run("status").out
    assert "total_loss is 1 minute" in shown
    assert "past its deadline: freshness 1 second, due since" in shown
    found = {row["table"]: row["freshness"] for row in run("status", "--json").json["tables"]}
    assert found["total_loss"]["allowed"] == 1
    assert 60 < found["total_loss"]["late"] < 80
    assert found["measurements"] is None
    assert found["high_loss"] is None
    monkeypatch.undo()
    while build_what_is_ready(hurried):
        pass


def test_up_to_date_nobody_is_late(run: Run, hurried: Path) -> None:
    load_rows(hurried, "measurements", "2026-10-03T10:00..2026-10-03T10:04", rows=6)
    load_dimension(hurried, "nodes", rows=3)
    while build_what_is_ready(hurried):
        pass
    assert "past its deadline" not in run("status").out
    found = {row["table"]: row["freshness"] for row in run("status", "--json").json["tables"]}
    assert found["total_loss"] == {"allowed": 1, "since": None, "deadline": None, "late": 0.0}
    assert "freshness: 1 second behind at most" in run("explain", "total_loss").out
    assert run("explain", "total_loss", "--json").json["views"][0]["freshness"] == 1


@pytest.mark.parametrize(
    "keys, message",
    [
        ("freshness: soon", "freshness"),
        (
            "freshness: 5 minutes\nrefresh: {every: 1 hour}",
            "freshness is 5 minutes, but refresh may defer parts for 1 hour",
        ),
        ("freshness: 1 hour\nrefresh: {rows: 10}", "freshness is 1 hour, but refresh may defer parts for 1 day"),
        ("freshness: 1 hour\nrefresh: {rows: 10, within: 1 hour}", None),
    ],
)
def test_validate(run: Run, hurried: Path, keys: str, message: str | None) -> None:
    file = next(f for f in (hurried / "view_defs").rglob("*.yaml") if "view: total_loss\n" in f.read_text())
    file.write_text(file.read_text().replace("freshness: 1 second", keys))
    done = run("validate")
    assert done.code == (0 if message is None else 1), done.out + done.err
    assert message is None or message in done.out + done.err


def test_the_meaning_of_a_view_is_the_same(run: Run, hurried: Path) -> None:
    load_rows(hurried, "measurements", "2026-10-03T10:00..2026-10-03T10:04", rows=6)
    load_dimension(hurried, "nodes", rows=3)
    while build_what_is_ready(hurried):
        pass
    file = next(f for f in (hurried / "view_defs").rglob("*.yaml") if "view: total_loss\n" in f.read_text())
    file.write_text(file.read_text().replace("freshness: 1 second\n", ""))
    assert run("plan", "--json").json["steps"] == []
