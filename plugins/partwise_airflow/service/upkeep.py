"""Every night: completes the ledger, applies `keep`, merges small files of old parts, and audits the ledger.

Each task is a command that can be run manually as well, beside everything else: they write tables as steps do.
"""

from __future__ import annotations

import shlex
import sys
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, CronTriggerTimetable

DAG_ID = "partwise_upkeep"
COMMANDS = ("reconcile", "retain", "compact", "audit")


def upkeep_dag(spec: dict[str, Any], **_: Any) -> DAG:
    with DAG(
        DAG_ID,
        description="Completes the ledger, applies `keep`, merges small files, audits the ledger",
        doc_md=__doc__,
        # Without a start date the first run is the next night, and not the last one as soon as the DAG is there.
        schedule=CronTriggerTimetable("30 2 * * *", timezone="UTC"),
        catchup=False,
        max_active_runs=1,
        tags=["partwise"],
        default_args={"owner": "partwise", "retries": 2, "retry_delay": timedelta(minutes=5)},
    ) as dag:
        before: Any = None
        # The state of a run is that of its last task: this one succeeds only if all commands did.
        done = EmptyOperator(task_id="done")
        for command in COMMANDS:
            words = [sys.executable, "-m", "partwise.cli", command, "--workspace", spec["workspace"]]
            task = BashOperator(
                task_id=command,
                bash_command=shlex.join(words),
                append_env=True,
                trigger_rule="all_done",  # what one cannot do is no reason to leave out the others
                execution_timeout=timedelta(hours=4),
                # What the audit finds is in its log, and does not go away by itself.
                retries=0 if command == "audit" else 2,
            )
            if before is not None:
                before >> task
            task >> done
            before = task
    return dag
