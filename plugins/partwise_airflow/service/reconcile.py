"""The DAG that loses nothing: every minute it looks what the ledger knows and Airflow does not.

Definitions are taken over, leases of dead runs are freed and their commits adopted, and views with ready parts are
announced, unless a run of theirs is queued or running or somebody writes one of their tables. A run that somebody
requested and that waits for parts keeps nobody from working.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator

from partwise.ledger.ledger import Ledger
from partwise.ledger.records.announcements import announce, leased, news
from partwise.ledger.write.lease_holding import who
from partwise.reconcile import free_dead
from partwise_airflow.assets import emit
from partwise_airflow.dags import RECONCILE_FIRST, SENSOR, START
from partwise_airflow.place import ledger_at
from partwise_airflow.priority import before_deadlines

DAG_ID = "partwise_reconcile"


class Reconcile(BaseOperator):
    template_fields = ()
    ui_color = "#f0d8d8"

    def __init__(self, *, workspace: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.workspace = workspace

    def execute(self, context: Any) -> dict[str, Any]:
        with ledger_at(self.workspace, take_over=True) as (workspace, ledger):
            found = free_dead(ledger, workspace.warehouse, who(), time.time())
            for table, holder in found.freed.items():
                self.log.warning("the lease of %s belonged to %s, which is dead: released", table, holder)
            for table, count in found.adopted.items():
                self.log.warning("%s: %s commits that the ledger did not know were adopted", table, count)
            keys = tell_again(ledger, set(workspace.definitions(ledger).usable), lambda view: live_runs(context, view))
        emit(context, keys)
        return {"freed": found.freed, "adopted": found.adopted, "announced": {k: dict(v) for k, v in keys.items()}}


def tell_again(ledger: Ledger, usable: set[str], runs: Callable[[str], int]) -> Any:
    """Announce what nobody works on. Airflow is asked only about views that have something to do."""
    now = time.time()
    graph = ledger.graph()
    with ledger.database.reading() as r:
        views = {item.view for item in news(r, graph, now, usable, live={})}
        busy = {view for name in leased(r, now) if name in graph.tables for view in graph[name].for_views}
    live = {view: view in busy or runs(view) > 0 for view in views}
    return announce(ledger, now, only=views, live=live) if views else {}


def live_runs(context: Any, view: str) -> int:
    """Runs that will compute what is due. One whose sensor is deferred may wait for half a day: it does not count."""
    runs = int(context["ti"].get_dr_count(dag_id=view, states=["queued", "running"]))
    if not runs:
        return 0
    return runs - int(context["ti"].get_ti_count(dag_id=view, task_ids=[SENSOR], states=["deferred"]))


def reconcile_dag(spec: dict[str, Any], **_: Any) -> DAG:
    with DAG(
        DAG_ID,
        description="Announces what got lost, frees leases of dead runs, adopts their commits",
        doc_md=__doc__,
        schedule="* * * * *",
        start_date=START,
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=timedelta(minutes=10),
        tags=["partwise"],
        default_args={"owner": "partwise"},
    ) as dag:
        Reconcile(
            task_id="reconcile",
            workspace=spec["workspace"],
            execution_timeout=timedelta(minutes=5),
            **(before_deadlines(RECONCILE_FIRST) if spec.get("deadlines") else {"priority_weight": RECONCILE_FIRST}),
        )
    return dag
