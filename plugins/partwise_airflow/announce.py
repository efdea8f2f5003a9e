"""Tells Airflow what has become ready."""

from __future__ import annotations

import time
from typing import Any

from airflow.sdk import BaseOperator

from partwise.ledger.records.announcements import announce, concerned
from partwise_airflow.assets import emit
from partwise_airflow.place import ledger_at


class Announce(BaseOperator):
    """The last task of a run: emits what became ready downstream of its table, and what is left of the view itself.

    A step that leaves nothing to tell skips it.
    """

    template_fields = ()
    ui_color = "#e8f0d8"

    def __init__(self, *, table: str, workspace: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table, self.workspace = table, workspace

    def execute(self, context: Any) -> dict[str, dict[str, str]]:
        with ledger_at(self.workspace) as (_, ledger):
            views, ended = concerned(ledger.graph(), self.table), (self.table, context["run_id"])
            keys = announce(ledger, time.time(), only=views, ended=ended)
        emit(context, keys)
        return {view: dict(reasons) for view, reasons in keys.items()}
