"""An example of a DAG written by hand: it waits for a part of a view, then reads it.

Trigger it from Airflow's UI with any part of `loss_by_region`. While the part is missing, the log of the first task
says what it waits for, and no worker is kept busy.
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
    params={"part": Param("2026-10-03T10:05", type="string", title="Part of loss_by_region")},
) as dag:
    wait = PartsSensor(task_id="wait", table="loss_by_region", parts="{{ params.part }}", timeout=3600)

    @task
    def report(part: str) -> list[str]:
        from partwise.reading import read

        rows = read(f"SELECT region, avg_loss FROM loss_by_region WHERE part_timestamp = '{part}' ORDER BY region").rows
        lines = [f"{region}: {loss:.2f}" for region, loss in rows]
        print("\n".join(lines))
        return lines

    wait >> report("{{ params.part }}")
