"""Ranges for close and empty, everything for backfill, narrow terminals, what to type after init."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from partwise.backfill.request import BadRange, parse
from partwise.parts import Range
from partwise.tables import Table
from spark_jobs.commands.ingest import show
from spark_jobs.ingest.result import Ingested
from tests.cli.conftest import Run

DAY = "2026-10-03T"


def test_close_takes_a_range_and_leaves_what_is_there(run: Run, workspace: Path) -> None:
    assert run("close", "measurements", f"{DAY}10:01").code == 0
    done = run("close", "measurements", f"{DAY}10:00..{DAY}10:03")
    assert done.code == 0
    assert "3 parts (1 part existed already)" in done.out
    again = run("close", "measurements", f"{DAY}10:00..{DAY}10:03")
    assert again.code == 1
    assert "exist already" in again.err


def test_empty_does_the_missing_ones(run: Run, workspace: Path) -> None:
    run("empty", "measurements", f"{DAY}10:02")
    done = run("empty", "measurements", f"{DAY}10:00..{DAY}10:04", "--json")
    assert done.code == 0
    assert done.json["closed"] == [f"{DAY}10:0{at}" for at in (0, 1, 3, 4)]


def test_two_dots_are_everything() -> None:
    assert parse("..", 60, 5, 9) == Range(5, 9)
    with pytest.raises(BadRange, match="no first part"):
        parse("..", 60, None, None)
    with pytest.raises(BadRange, match="empty"):
        parse("", 60, 5, 9)


def test_narrow_tables_say_that_something_is_cut(run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("empty", "measurements", f"{DAY}10:00..{DAY}10:04")
    monkeypatch.setenv("COLUMNS", "40")
    assert "…" in run("status").out


def test_init_says_what_to_type_next(run: Run, tmp_path: Path) -> None:
    done = run("init", str(tmp_path / "shop"))
    assert done.code == 0
    assert "Type next:" in done.out
    assert "partwise run " in done.out


def test_thousands_of_lines_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    engine: Any = SimpleNamespace(definitions=SimpleNamespace(graph=lambda: {"m": Table("m", "source", 60, "m")}))
    show(engine, Ingested("m", failed=dict.fromkeys(range(40), "too few rows"), refused=[("a.csv", "no header")]))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 12 + 1 + 1
    assert lines[-2].strip() == "... and 28 more like these (--json shows all)"
    assert lines[-1].strip() == "m: a.csv was refused: no header"
