"""The plan of a backfill, tried again: on a real ledger, without Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from partwise.ledger.records import backfills
from partwise.workspace import open_workspace
from tests.airflow.test_sensor import arrive

pytestmark = pytest.mark.xdist_group("airflow")


def plan(workspace: Path, run: str, resume: int | None = None) -> dict[str, Any]:
    from partwise_airflow.service.backfill import PlanBackfill

    task = PlanBackfill(task_id="plan", depth=5, workspace=str(workspace))
    form = {"table": "a", "range": "2026-10-03T10:00..2026-10-03T10:01", "resume": resume}
    form |= {"upstream": False, "downstream": True, "dry_run": False}
    found: dict[str, Any] = task.execute({"params": form, "run_id": run})
    return found


def end(workspace: Path, number: int, done: bool) -> None:
    ledger = open_workspace(str(workspace)).open_ledger(time.time())
    with ledger.database.writing(time.time()) as w:
        backfills.finish(w, number, done)
    ledger.database.close()


def test_a_plan_that_died_goes_on_with_what_it_began(workspace: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    arrive(workspace, "00", "01")
    first = plan(workspace, "r")
    assert plan(workspace, "r") == first, "begun by itself: not somebody else's"
    with pytest.raises(AirflowFailException, match="is working on some of these parts"):
        plan(workspace, "other")
    end(workspace, first["number"], done=False)
    assert plan(workspace, "r") == first, "cleared manually after it was stopped"
    end(workspace, first["number"], done=False)
    assert plan(workspace, "other", resume=first["number"]) == first
    assert plan(workspace, "other", resume=first["number"]) == first, "and so is one that was taken over"
    end(workspace, first["number"], done=True)
    assert plan(workspace, "r")["number"] > first["number"], "done is done: this is another one"
