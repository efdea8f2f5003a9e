"""Looking needs no writing: a read-only mount, and no Spark for what needs none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.stand_in import load_rows

DAY = "2026-10-03T"


@pytest.fixture
def loaded(workspace: Path) -> Path:
    load_rows(workspace, "measurements", f"{DAY}10:05", rows=6)
    return workspace


@pytest.fixture
def read_only(loaded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As a mount is: the ledger's folder takes no file, whoever asks."""
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: not mode & os.W_OK and real(path, mode, **more))
    return loaded


@pytest.mark.parametrize(
    "command",
    ["status", "status measurements", "plan", f"why measurements {DAY}10:05", "quarantine", "changes measurements --since 2026-01-01",
     "explain high_loss", "audit", "now", "now --json", "helpers", "checks", "validate", "status --running", "query SELECT+1+AS+x"],
)  # fmt: skip
def test_looking_works_on_a_read_only_mount(run: Run, read_only: Path, command: str) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in read_only.iterdir()}
    done = run(*(word.replace("+", " ") for word in command.split()))
    assert done.code == 0, done.err
    assert {path.name: path.stat().st_mtime_ns for path in read_only.iterdir()} == before


def test_a_wrong_file_and_nothing_to_release_start_no_spark(run: Run, loaded: Path) -> None:
    known = "pyspark" in sys.modules
    done = run("retract", "measurements", "nowhere.csv")
    assert done.code == 1
    assert "has taken in no file nowhere.csv" in done.err
    text = "source: hits\npart: 1 hour\ntime: t\ncolumns: {t: timestamp}\ndelta: elsewhere\n"
    (loaded / "view_defs" / "hits.yaml").write_text(text)
    assert "hits is a Delta table of others" in run("retract", "hits", "nowhere.csv").err
    done = run("quarantine", "release", "measurements")
    assert done.code == 0
    assert "nothing was quarantined" in done.out
    assert ("pyspark" in sys.modules) == known
