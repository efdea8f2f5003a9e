"""Writes the reason of a run into its note, so that the list of runs says why each of them was made.

No task can set the note of a run that an event made. The scheduler can, with its own object, when the run starts.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.listeners import hookimpl

log = logging.getLogger(__name__)


class Notes:
    @hookimpl
    def on_dag_run_running(self, dag_run: Any, msg: str) -> None:
        try:
            if why := reason_of(dag_run):
                dag_run.note = why
        except Exception:  # a run without a note is a run all the same; the scheduler must go on
            log.exception("the reason of %s could not be noted", getattr(dag_run, "run_id", "a run"))


def reason_of(dag_run: Any) -> str | None:
    """What the events that made this run say of its key; the newest one wins."""
    found = None
    for event in dag_run.consumed_asset_events:
        reasons = (event.extra or {}).get("reasons") or {}
        found = reasons.get(dag_run.partition_key, found)
    return found
