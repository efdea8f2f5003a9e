"""A backfill that Airflow carries out, followed from the shell: for workspaces whose settings name an Airflow."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import typer

from partwise.airflow_api import AirflowProblem, Api, Form, Progress, failure_text, follow, start_backfill
from partwise.cli.stop import Stop
from partwise.cli.views.backfill_bar import Watching
from partwise.cli.views.show import say
from partwise.ledger.ledger import Ledger
from partwise.ledger.records.backfills import held_by
from partwise.settings import Airflow


def backfill(
    settings: Airflow,
    ledger: Ledger,
    form: Form,
    json: bool,
    expected: float | None,
    sleep: Callable[[], None] = lambda: time.sleep(2),
) -> None:
    """Start it and watch it to its end. Whoever stops watching does not stop it."""
    api = Api(settings)
    watching: Watching | None = None
    run: str | None = None
    try:
        run = start_backfill(api, form)
        if not json:
            say(f"Airflow carries it out: {settings.url}/dags/partwise_backfill/runs/{run}")
        seen: set[str] = set()
        for progress in follow(api, run, sleep):
            watching = watching or _watching(ledger, run, expected)
            if watching:
                watching.clear()
            if not json:
                _show_steps(progress, seen)
            if watching:
                watching.draw()
        if watching:
            watching.conclude(json, more={"run": run, "state": progress.state})
        if progress.state != "success":
            raise Stop(f"The backfill failed: {failure_text(api, run, progress.tasks)}")
    except AirflowProblem as why:
        raise Stop(f"{why} It continues in Airflow." if run else str(why)) from None
    except KeyboardInterrupt:
        if watching:
            watching.clear()
        print("partwise: the backfill continues in Airflow", file=sys.stderr)
        raise typer.Exit(130) from None


def _watching(ledger: Ledger, run: str, expected: float | None) -> Watching | None:
    """None until the first task of the run has begun the backfill."""
    with ledger.database.reading() as r:
        found = held_by(r, f"airflow:{run}")
    return None if found is None else Watching(ledger, found, expected)


def _show_steps(progress: Progress, seen: set[str]) -> None:
    for task in progress.tasks:
        if task.name and task.state in ("success", "failed") and task.name not in seen:
            seen.add(task.name)
            say(f"  {task.name}: {'done' if task.state == 'success' else 'failed'}")
