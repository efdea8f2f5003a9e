"""An example of a DAG written manually: it waits for a part of a view, then reads it.

Trigger it from Airflow's UI as it is for the newest part of `loss_by_region`, or with any part. While the part is
missing, the log of `wait` says what it waits for, and no worker is kept busy.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param, task

from partwise_airflow import PartsSensor

with DAG(
    "loss_report",
    description="Prints the loss of every region for one part",
    doc_md=__doc__,
    schedule=None,
    tags=["example"],
    params={
        "part": Param(
            None,
            type=["null", "string"],
            title="Part of loss_by_region",
            description="For example 2026-10-03T10:05. Empty: the newest one.",
        )
    },
) as dag:

    @task
    def choose(part: str) -> str:
        from partwise.reading import read

        return part or read("SELECT strftime(MAX(part_timestamp), '%Y-%m-%dT%H:%M') FROM loss_by_region").rows[0][0]

    part = choose("{{ params.part or '' }}")
    wait = PartsSensor(task_id="wait", table="loss_by_region", parts=part, timeout=3600)

    @task
    def report(part: str) -> list[str]:
        from partwise.reading import read

        rows = read(f"SELECT region, avg_loss FROM loss_by_region WHERE part_timestamp = '{part}' ORDER BY region").rows
        lines = [f"{region}: {loss:.2f}" for region, loss in rows]
        print("\n".join(lines))
        return lines

    wait >> report(part)
