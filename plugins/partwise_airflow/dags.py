"""DAGs of views and sources.

required_parts_exist -> helper tables -> the view -> announce
load -> announce
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, IdentityMapper, Param, PartitionedAssetTimetable

from partwise_airflow.announce import Announce
from partwise_airflow.assets import ready
from partwise_airflow.priority import before_deadlines, by_deadline
from partwise_airflow.specs import SourceSpec, ViewSpec
from partwise_airflow.tasks.sensor import RequiredParts
from partwise_airflow.tasks.step import SparkLoad, SparkStep

START = datetime(2020, 1, 1, tzinfo=UTC)
#: A step that takes longer than this hangs.
LONGEST_STEP = timedelta(hours=2)
#: How long a run waits for parts that are not there.
LONGEST_WAIT = timedelta(hours=12)
#: When more is to be done than there are processes: what makes good for losses comes first, then what brings data.
#: Within a run the later task comes first, so that what was begun is finished before more is begun.
RECONCILE_FIRST, SOURCES_FIRST = 100, 50
LATER_FIRST = "upstream"
SENSOR = "required_parts_exist"


class BadDefinition(Exception):
    """Why there is no DAG; the message is what `partwise validate` says."""


def view_dag(
    raw: dict[str, Any],
    *,
    run: Callable[..., Any],
    done: Callable[[str], dict[str, Any] | None] | None = None,
    submit: Any = None,
) -> DAG:
    """The DAG of a view. `run` carries out a step with a Spark session, `done` tells whether there is nothing left of it.

    `submit` is the module that spark-submit runs instead: its FILE, and the `settings` of Spark that it needs.
    """
    spec = ViewSpec.from_json(raw)
    limit = timedelta(seconds=spec.timeout) if spec.timeout else None
    with DAG(
        spec.name,
        description=spec.description,
        doc_md=spec.docs,
        schedule=PartitionedAssetTimetable(assets=ready(spec.name), default_partition_mapper=IdentityMapper()),
        start_date=START,
        catchup=False,
        tags=["partwise", "view", *spec.tags],
        max_active_runs=8,  # a run that waits counts as well, and must not keep others from starting
        default_args={"owner": spec.owner, **_urgency(spec)},
        params={
            "part": Param(
                None,
                type=["null", "string"],
                title="Part or range",
                description="For example 2026-10-03T10:05 or 2026-10-03T10:00..2026-10-03T12:00 (UTC), which is then "
                "computed even if nothing has changed. Empty: whatever is due.",
            )
        },
    ) as dag:
        last: Any = RequiredParts(
            task_id=SENSOR,
            table=spec.name,
            workspace=spec.workspace,
            timeout=(limit or LONGEST_WAIT).total_seconds(),
            do_xcom_push=False,
            retries=3,
            retry_delay=timedelta(seconds=5),
        )
        for at, table in enumerate(spec.tables):
            step = _step(spec, at, run, done, submit, execution_timeout=limit or LONGEST_STEP)
            step.doc_md = f"Computes what is due of `{table.name}`."
            last >> step
            last = step
        last >> _announce(spec)
    return dag


def _urgency(spec: ViewSpec) -> dict[str, Any]:
    """A run that began earlier has the earlier deadline, so that here, too, what was begun is finished first."""
    return {"weight_rule": LATER_FIRST} if spec.freshness is None else by_deadline(spec.freshness)


def _before_views(spec: SourceSpec) -> dict[str, Any]:
    if spec.deadlines:
        return before_deadlines(SOURCES_FIRST)
    return {"weight_rule": LATER_FIRST, "priority_weight": SOURCES_FIRST}


def _step(spec: ViewSpec, at: int, run: Callable[..., Any], done: Any, submit: Any, **kwargs: Any) -> Any:
    table = spec.tables[at]
    kwargs |= {"task_id": table.name, "table": table.name, "view": spec.name, "length": table.length}
    kwargs |= {"view_length": spec.tables[-1].length, "first": at == 0, "workspace": spec.workspace}
    if spec.engine == "submit":
        from partwise_airflow.tasks.submit import SubmitStep

        return SubmitStep(application=submit.FILE, settings=submit.settings, **kwargs)
    return SparkStep(run=run, done=done, **kwargs)


def _announce(spec: ViewSpec | SourceSpec) -> Announce:
    return Announce(
        task_id="announce",
        table=spec.name,
        workspace=spec.workspace,
        do_xcom_push=False,
        retries=3,
        retry_delay=timedelta(seconds=5),
    )


def source_dag(raw: dict[str, Any], *, run: Callable[..., Any], look: Callable[[str], bool]) -> DAG:
    """The DAG of a source or dimension: takes in what is new, closes parts, announces."""
    spec = SourceSpec.from_json(raw)
    with DAG(
        spec.name,
        description=spec.description,
        doc_md=spec.docs,
        schedule=timedelta(seconds=spec.poll) if spec.poll else None,
        start_date=START,
        catchup=False,
        tags=["partwise", spec.kind, *spec.tags],
        max_active_runs=1,
        default_args={"owner": spec.owner, **_before_views(spec)},
    ) as dag:
        load = SparkLoad(
            task_id="load",
            table=spec.name,
            run=run,
            look=look,
            workspace=spec.workspace,
            execution_timeout=LONGEST_STEP,
        )
        load >> _announce(spec)
    return dag
