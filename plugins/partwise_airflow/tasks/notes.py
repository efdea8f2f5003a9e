"""Writes the reason of a run into its note, so that the list of runs says why each of them was made.

No task can set the note of a run that an event made, and people leave theirs empty. The scheduler can, with its own
object, when the run starts.
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
            if why := reason_of(dag_run) or (None if dag_run.note else asked_for(dag_run)):
                dag_run.note = why
        except Exception:  # a run without a note is a run all the same; the scheduler must go on
            log.exception("could not record the reason of %s", getattr(dag_run, "run_id", "a run"))


def reason_of(dag_run: Any) -> str | None:
    """What the events that made this run say of its key; the newest one wins."""
    found = None
    for event in dag_run.consumed_asset_events:
        reasons = (event.extra or {}).get("reasons") or {}
        found = reasons.get(dag_run.partition_key, found)
    return found


def asked_for(dag_run: Any) -> str | None:
    """What somebody typed into the form of a view, or gave as the key. A note of their own is left alone."""
    # Here, since every component loads this module when it starts, and few need that one.
    from partwise_airflow.tasks.requested import by_hand

    if not by_hand(dag_run) or "partwise" not in dag_run.dag.tags:
        return None  # nor are the runs of other people's DAGs our business
    part = str((dag_run.conf or {}).get("part") or dag_run.partition_key or "").strip()
    return f"{part} was requested"[:200] if part else None
