"""What the reconciler announces: not what a run or a writer is at work on. On a real ledger, with Airflow's answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from partwise.ledger.ledger import Ledger
from partwise.workspace import open_workspace
from tests.airflow.test_sensor import arrive

pytestmark = pytest.mark.xdist_group("airflow")

VIEWS = {"a", "w", "b"}


@pytest.fixture
def ledger(workspace: Path) -> Iterator[Ledger]:
    """m[10:00] is there: a and w have something to do."""
    arrive(workspace, "00")
    found = open_workspace(str(workspace)).open_ledger(time.time())
    yield found
    found.database.close()


def again(ledger: Ledger, **runs: int) -> set[str]:
    from partwise_airflow.service.reconcile import tell_again

    return set(tell_again(ledger, VIEWS, lambda view: runs.get(view, 0)))


def test_views_with_work_are_announced_unless_a_run_of_theirs_is_there(ledger: Ledger) -> None:
    assert again(ledger, a=1) == {"w"}
    assert again(ledger, a=1) == set(), "w is told of already"
    assert again(ledger) == {"a"}


@pytest.mark.parametrize("table", ["w", "w__panes"])
def test_a_view_that_somebody_writes_is_left_alone(ledger: Ledger, table: str) -> None:
    held = ledger.take(table, "somewhere:1:x", 60, time.time())
    assert again(ledger) == {"a"}
    ledger.release(held, time.time())
    assert again(ledger) == {"w"}


def test_airflow_is_asked_only_about_views_with_work(ledger: Ledger) -> None:
    from partwise_airflow.service.reconcile import tell_again

    asked: list[str] = []
    tell_again(ledger, VIEWS, lambda view: asked.append(view) or 0)  # type: ignore[func-returns-value]
    assert sorted(asked) == ["a", "w"]


@pytest.mark.parametrize(
    "runs, waiting, live",
    [(0, 0, False), (1, 0, True), (1, 1, False), (2, 1, True)],
)
def test_a_run_that_waits_for_parts_does_not_count(runs: int, waiting: int, live: bool) -> None:
    """Somebody requested a part of tomorrow; what is due today does not wait for it."""
    from partwise_airflow.service.reconcile import live_runs

    def count(found: int, **expected: Any) -> Any:
        def answer(**asked: Any) -> int:
            assert asked == expected
            return found

        return answer

    ti = SimpleNamespace(
        get_dr_count=count(runs, dag_id="a", states=["queued", "running"]),
        get_ti_count=count(waiting, dag_id="a", task_ids=["required_parts_exist"], states=["deferred"]),
    )
    assert (live_runs({"ti": ti}, "a") > 0) is live
