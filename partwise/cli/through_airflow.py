"""A backfill that Airflow carries out, followed from the shell: for workspaces whose settings name an Airflow."""

from __future__ import annotations

import json as jsons
import sys
import time

import typer

from partwise.airflow_api import AirflowProblem, Api, Progress, failure_text, follow, start_backfill
from partwise.cli.show import say, table
from partwise.cli.stop import Stop
from partwise.settings import Airflow


def backfill(settings: Airflow, name: str, parts: str, upstream: bool, downstream: bool, json: bool) -> None:
    """Start it and wait for its end. Whoever stops waiting does not stop it."""
    api = Api(settings)
    try:
        run = start_backfill(api, name, parts, upstream, downstream)
        if not json:
            say(f"Airflow carries it out: {settings.url}/dags/partwise_backfill/runs/{run}")
        seen: set[str] = set()
        for progress in follow(api, run, lambda: time.sleep(2)):
            if not json:
                _show_steps(progress, seen)
        if json:
            print(jsons.dumps({"run": run, "state": progress.state, "report": progress.report}))
        elif progress.report:
            table(tuple(progress.report[0]), [tuple(map(str, row.values())) for row in progress.report])
        if progress.state != "success":
            raise Stop(f"The backfill failed: {failure_text(api, run, progress.tasks)}")
    except AirflowProblem as why:
        raise Stop(str(why)) from None
    except KeyboardInterrupt:
        print("partwise: it goes on in Airflow", file=sys.stderr)
        raise typer.Exit(130) from None


def _show_steps(progress: Progress, seen: set[str]) -> None:
    for task in progress.tasks:
        if task.name and task.state in ("success", "failed") and task.name not in seen:
            seen.add(task.name)
            say(f"  {task.name}: {'done' if task.state == 'success' else 'failed'}")
