"""A table that somebody else writes is waited for, and named when it is given up. Nothing is computed, so no Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from partwise.workspace import open_workspace
from spark_jobs import run as running
from spark_jobs.commands.run import tell_trouble
from spark_jobs.engine import Engine
from tests.cli.stand_in import load_rows

DAY = "2026-10-03T"


@pytest.fixture
def engine(workspace: Path) -> Iterator[Engine]:
    load_rows(workspace, "measurements", f"{DAY}10:05", rows=6)
    where = open_workspace(str(workspace), {})
    ledger = where.open_ledger(time.time())
    yield Engine(None, ledger, where.load(), where.warehouse)  # type: ignore[arg-type]
    ledger.database.close()


def test_it_is_waited_for_and_named(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.ledger.take("total_loss", "elsewhere:1:a", 600, time.time())
    monkeypatch.setattr(running, "PATIENCE", 1.0)
    monkeypatch.setattr(running, "_LOOK", 0.1)
    began = time.monotonic()
    told = list(running.run(engine, ["measurements", "total_loss"]))
    assert time.monotonic() - began >= 1
    assert [outcome.given_up for outcome in told] == [False] * (len(told) - 1) + [True]
    assert len(told) > 3
    assert [tell_trouble(outcome, json=False) for outcome in told[-2:]] == [0, 1]
    said = "total_loss is being written by elsewhere:1:a"
    assert capsys.readouterr().out == f"  {said}; gave up for now, the next run retries\n"
    tell_trouble(told[-1], json=True)
    assert json.loads(capsys.readouterr().err) == {"table": "total_loss", "trouble": said, "given_up": True}


def test_it_goes_on_when_the_other_has_done_it(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    other = engine.ledger.take("total_loss", "elsewhere:1:a", 600, time.time())
    monkeypatch.setattr(running, "_LOOK", 0.05)
    told = []
    for outcome in running.run(engine, ["measurements", "total_loss"]):
        told.append(outcome)
        if len(told) == 2:
            pin = engine.ledger.pin(other, time.time())
            assert pin is not None
            from partwise.ledger.write.commit import Content

            entry = pin.entry({p: Content(1, "x") for p in pin.due})
            engine.ledger.commit(other, entry, 0, time.time())
    assert told[-1].busy is not None
    assert not any(outcome.given_up for outcome in told)
