"""Tells Airflow what has become ready."""

from __future__ import annotations

import time
from typing import Any

from airflow.sdk import BaseOperator

from partwise.ledger.announcements import announce
from partwise_airflow.assets import emit
from partwise_airflow.place import ledger_at


class Announce(BaseOperator):
    """The last task of a run: emits what became ready downstream of its table, and what is left of the view itself."""

    ui_color = "#e8f0d8"

    def __init__(self, *, table: str, workspace: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table, self.workspace = table, workspace

    def execute(self, context: Any) -> dict[str, dict[str, str]]:
        with ledger_at(self.workspace) as (_, ledger):
            graph = ledger.graph()
            served = {graph[name].helper_of or name for name in graph.downstream([self.table])} | {self.table}
            views = {name for name in served if name in graph.tables and graph[name].kind == "view"}
            ended = (self.table, context["run_id"])
            keys = announce(ledger, time.time(), only=views, ended=ended)
        emit(context, keys)
        return {view: dict(reasons) for view, reasons in keys.items()}
