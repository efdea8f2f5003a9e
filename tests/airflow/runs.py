"""Runs DAGs in one process against Airflow's own database, and prints what happened as JSON.

    python runs.py WORKSPACE

A process of its own: Airflow keeps settings and database in globals.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))


def main(workspace: str) -> None:
    from airflow.dag_processing.dagbag import BundleDagBag
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.xcom import XComModel
    from airflow.settings import Session
    from sqlalchemy import select

    found: dict[str, Any] = {}

    def events() -> list[tuple[str, str | None, Any]]:
        with Session() as session:
            rows = session.execute(
                select(AssetModel.name, AssetEvent.partition_key, AssetEvent.extra)
                .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
                .order_by(AssetEvent.id)
            )
            return [(name, key, (extra or {}).get("reasons")) for name, key, extra in rows]

    def left(dag: str, waiting: str, reading: str) -> dict[str, Any]:
        """What a task showed of itself, and what another one returned, in the newest run."""
        fields = RenderedTaskInstanceFields
        with Session() as session:
            shown = session.scalars(
                select(fields.rendered_fields).where(fields.dag_id == dag, fields.task_id == waiting)
            )
            value = select(XComModel.value).where(XComModel.dag_id == dag, XComModel.task_id == reading)
            return {"waits": shown.all()[-1]["waits"], "read": str(session.scalars(value).one())}

    def run(bundle: str, name: str, broken: str | None = None, **conf: Any) -> dict[str, str]:
        """The states of its tasks and, as "", of the run. `broken`: a command that fails at once."""
        from airflow.dag_processing.bundles.manager import DagBundlesManager

        where = DagBundlesManager().get_bundle(bundle)
        where.initialize()
        bag = BundleDagBag(dag_folder=where.path, bundle_path=where.path, bundle_name=bundle)
        found.setdefault("errors", {}).update({str(k): str(v)[-500:] for k, v in bag.import_errors.items()})
        dag = bag.dags[name]
        if broken:
            task = dag.get_task(broken)
            task.bash_command, task.retries = "false", 0
        done = dag.test(run_conf=conf or None, logical_date=None)
        with Session() as session:
            done = session.merge(done)
            states = {ti.task_id: str(ti.state) for ti in done.get_task_instances(session=session)}
            return states | ({"": str(done.state)} if broken else {})

    found["nothing"] = run("partwise", "partwise_reconcile")
    found["events of nothing"] = events()
    arrive(workspace)
    ask("a", "2030-01-01T00:00")
    found["reconcile"] = run("partwise", "partwise_reconcile")
    found["events"] = events()
    found["again"] = run("partwise", "partwise_reconcile")
    found["events again"] = events()
    found["dry run"] = run("partwise", "partwise_backfill", table="a", range="2026-10-03T10:00", dry_run=True)
    build(workspace)
    found["upkeep"] = run("partwise", "partwise_upkeep")
    found["broken upkeep"] = run("partwise", "partwise_upkeep", broken="retain")
    spoil(workspace, 1)
    found["spoiled ledger"] = run("partwise", "partwise_upkeep")
    spoil(workspace, -1)
    for name, conf in {"requested": {"part": "2026-10-03T10:00"}, "newest": {}}.items():
        # Read at once: the next run of the same DAG clears what this one left.
        states = run("dags", "loss_report", **conf)
        found[f"report of {name}"] = {"states": states, **left("loss_report", "wait", "report")}
    print("FOUND " + json.dumps(found))


def ask(view: str, part: str) -> None:
    """A manual run whose sensor waits for a part that does not come, as the scheduler and the triggerer leave it."""
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.settings import Session
    from airflow.utils import timezone
    from airflow.utils.state import DagRunState, TaskInstanceState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    with Session() as session:
        dag = SerializedDagModel.get(view, session=session).dag
        run = dag.create_dagrun(
            run_id="manual__waits",
            run_after=timezone.utcnow(),
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            state=DagRunState.RUNNING,
            conf={"part": part},
            session=session,
        )
        for ti in run.get_task_instances(session=session):
            if ti.task_id == "required_parts_exist":
                ti.state = TaskInstanceState.DEFERRED
        session.commit()


def arrive(workspace: str) -> None:
    """Five parts of the source exist, as if they had been loaded."""
    from partwise.ledger.write.commit import Content, Entry
    from partwise.parts import parse_part
    from partwise.workspace import open_workspace

    where = open_workspace(workspace)
    ledger = where.open_ledger(time.time())
    first = parse_part("2026-10-03T10:00", 60)
    held = ledger.take("m", "test", 60, time.time())
    parts = {first + n: Content(1, str(n)) for n in range(5)}
    entry = Entry("m", 0, ledger.graph()["m"].fingerprint, None, parts=parts)
    ledger.commit(held, entry, None, time.time())
    ledger.database.close()


def spoil(workspace: str, seconds: int) -> None:
    """A revision has another time than its version."""
    from partwise.workspace import open_workspace

    ledger = open_workspace(workspace).open_ledger(time.time())
    with ledger.database.changing_schema() as on:
        on.exec_driver_sql(f"UPDATE revision SET at = at + {seconds} WHERE \"table\" = 'loss_by_region'")
    ledger.database.close()


def build(workspace: str) -> None:
    """Part 10:00 of loss_by_region, as a step would have built it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from partwise import storage
    from partwise.ledger.write.commit import Content
    from partwise.storage import schema as schemas
    from partwise.storage.paths import table_path
    from partwise.workspace import open_workspace

    where = open_workspace(workspace)
    ledger = where.open_ledger(time.time())
    held = ledger.take("loss_by_region", "test", 60, time.time())
    handle = storage.create(
        table_path(where.warehouse, "loss_by_region", 0), schemas.of({"region": "string", "avg_loss": "double"})
    )
    ledger.adopt(held, [(0, None)], time.time())
    pin = ledger.pin(held, time.time())
    assert pin is not None
    rows = {
        "part": pa.array(list(pin.due), pa.int64()),
        "part_timestamp": pa.array([p * 300_000_000 for p in pin.due], pa.timestamp("us", "UTC")),
        "region": pa.array(["north" for _ in pin.due]),
        "avg_loss": pa.array([2.5 for _ in pin.due]),
    }
    folder = Path(storage.begin(handle, "step"))
    folder.mkdir()
    pq.write_table(pa.table(rows), folder / "part-0.parquet")
    entry = pin.entry({j: Content(1, str(j)) for j in pin.due})
    version = storage.commit(
        handle, storage.staged(handle.path, "step"), (), {"kind": "step", "entry": entry.to_json()}
    )
    ledger.commit(held, entry, version, time.time())
    ledger.database.close()


if __name__ == "__main__":
    main(sys.argv[1])
