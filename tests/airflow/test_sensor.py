"""The sensor and what it waits in, on a real ledger, without Airflow's processes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from partwise.ledger.records import announcements
from partwise.ledger.write.commit import Content, Entry
from partwise.parts import parse_part
from partwise.workspace import open_workspace

pytestmark = pytest.mark.xdist_group("airflow")


def arrive(workspace: Path, *minutes: str) -> None:
    where = open_workspace(str(workspace))
    ledger = where.open_ledger(time.time())
    where.take_over(ledger, where.load(), time.time())
    if minutes:
        held = ledger.take("m", "test", 60, time.time())
        parts = {parse_part(f"2026-10-03T10:{minute}", 60): Content(1, minute) for minute in minutes}
        ledger.commit(held, Entry("m", 0, ledger.graph()["m"].fingerprint, None, parts=parts), None, time.time())
    ledger.database.close()


def sensor(workspace: Path, **kwargs: Any) -> Any:
    from partwise_airflow import PartsSensor

    return PartsSensor(task_id="wait", workspace=str(workspace), **kwargs)


def test_it_passes_at_once_when_the_parts_are_there(workspace: Path) -> None:
    arrive(workspace, "00", "01")
    assert sensor(workspace, table="m", parts="2026-10-03T10:00..2026-10-03T10:01").execute({}) is not None


def test_it_waits_without_a_worker_and_says_for_what(workspace: Path) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    arrive(workspace, "00")
    with pytest.raises(TaskDeferred) as deferred:
        sensor(workspace, table="a", parts="2026-10-03T10:01", required_by=True, timeout=99).execute({})
    name, kwargs = deferred.value.trigger.serialize()
    assert name == "partwise_airflow.trigger.PartsTrigger"
    assert kwargs["waits"] == "a[2026-10-03T10:01] waits: m 0/1, missing 10:01"
    assert deferred.value.timeout.total_seconds() == 99


def rendered(task: Any, given: Any) -> dict[str, Any]:
    """What Airflow stores before it executes the task."""
    from airflow.sdk.execution_time.task_runner import _serialize_rendered_fields

    copy = task.prepare_for_execution()
    copy.render_template_fields(given)
    return _serialize_rendered_fields(copy)


def test_the_rendered_fields_say_for_what(workspace: Path) -> None:
    arrive(workspace, "00")
    waiting = sensor(workspace, table="m", parts="2026-10-03T10:{{ minute }}")
    assert rendered(waiting, {"minute": "01"}) == {
        "table": "m",
        "parts": "2026-10-03T10:01",
        "waits": "m[2026-10-03T10:01] waits: m 0/1, missing 10:01",
    }
    assert "'yesterday' is not a time" in rendered(sensor(workspace, table="m", parts="yesterday"), {})["waits"]


def test_a_view_renders_a_reason_only_where_somebody_asked(workspace: Path) -> None:
    """Of runs that events make nothing is stored: that would be a call of the API for each of them."""
    from partwise_airflow.tasks.sensor import RequiredParts

    arrive(workspace, "00")
    first = RequiredParts(task_id="required_parts_exist", table="a", workspace=str(workspace))
    by_hand = context({"part": "2026-10-03T10:01"}, kind="manual")
    assert rendered(first, by_hand) == {"waits": "a[2026-10-03T10:01] waits: m 0/1, missing 10:01"}
    assert rendered(first, context(key="2026-10-03T10:00")) == {}


def test_the_trigger_fires_when_the_last_part_arrives(workspace: Path) -> None:
    from partwise_airflow.trigger import PartsTrigger

    arrive(workspace, "00")
    kwargs = {"table": "m", "parts": "2026-10-03T10:00..2026-10-03T10:01", "own": True, "every": 0.1}
    trigger = PartsTrigger(**PartsTrigger(workspace=str(workspace), **kwargs).serialize()[1])

    async def both() -> Any:
        waiting = asyncio.create_task(anext(trigger.run()))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        await asyncio.to_thread(arrive, workspace, "01")
        return await asyncio.wait_for(waiting, 20)

    event = asyncio.run(both())
    assert event.payload == {"text": "m[2026-10-03T10:00..2026-10-03T10:01] exists"}


def test_who_waited_in_vain_says_for_what(workspace: Path) -> None:
    from airflow.sdk.exceptions import AirflowSensorTimeout

    arrive(workspace, "00")
    waiting = sensor(workspace, table="m", parts="2026-10-03T10:00..2026-10-03T10:01", timeout=60)
    with pytest.raises(AirflowSensorTimeout, match=r"gave up after 60 seconds: m\[.*\] waits: m 1/2, missing 10:01"):
        waiting.resume_execution("__fail__", {"error": "Trigger timeout"}, {})


@pytest.mark.parametrize(
    "table, parts, why",
    [
        ("b", "2026-10-03T10:03", "not the start of a part of 5 minutes"),
        ("a", "yesterday", "'yesterday' is not a time"),
    ],
)
def test_a_part_that_cannot_be_meant_fails_at_once(workspace: Path, table: str, parts: str, why: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    arrive(workspace)
    with pytest.raises(AirflowFailException, match=why):
        sensor(workspace, table=table, parts=parts).execute({})


def context(conf: dict[str, Any] | None = None, key: str | None = None, kind: str = "asset_triggered") -> Any:
    run = SimpleNamespace(conf=conf, partition_key=key, run_type=kind)
    return {"dag_run": run, "params": {"part": None}, "run_id": "r"}


def test_what_a_run_is_for() -> None:
    from partwise_airflow.tasks.requested import RequestedParts, asked_of

    key = "2026-10-03T10:05"
    assert asked_of(context(key=key)) == RequestedParts(key, requested=False)
    assert asked_of(context(key=key, kind="manual")) == RequestedParts(key, requested=True)
    assert asked_of(context({"part": f" {key} "}, kind="manual")) == RequestedParts(key, requested=True)
    assert asked_of(context({"part": ""}, kind="manual")) == RequestedParts(None, requested=False)
    assert RequestedParts(key, False).of(300, 60) == "2026-10-03T10:05..2026-10-03T10:09"
    assert RequestedParts(None, False).of(300, 60) is None


def test_a_run_with_nothing_to_do_is_skipped_and_one_with_work_goes_on(workspace: Path) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    from partwise_airflow.place import ledger_at
    from partwise_airflow.tasks.sensor import RequiredParts

    arrive(workspace)
    first = RequiredParts(task_id="required_parts_exist", table="w", workspace=str(workspace))
    with pytest.raises(AirflowSkipException, match="w: nothing of it is due and ready"):
        first.execute(context(key="2026-10-03T10:00"))
    arrive(workspace, "00", "01")
    assert "w__panes[2026-10-03T10:00..2026-10-03T10:01]" in first.execute(context(key="2026-10-03T10:00"))
    # It waits for a slot now: until it begins, others may compute it along with theirs.
    with ledger_at(str(workspace)) as (_, ledger):
        announcements.announce(ledger, time.time(), only={"w"})
        first.execute(context(key="2026-10-03T10:00"))
        with ledger.database.reading() as r:
            assert announcements.in_turn(r) == {"w"}


def test_a_view_that_was_just_added_can_be_asked_for(workspace: Path) -> None:
    """By hand, before anything has told the ledger of it."""
    from airflow.sdk.exceptions import TaskDeferred

    from partwise_airflow.tasks.sensor import RequiredParts

    arrive(workspace, "00")
    (workspace / "view_defs" / "new.yaml").write_text("view: c\npart: 1 minute\nupdate: SELECT src FROM m[j]\n")
    first = RequiredParts(task_id="required_parts_exist", table="c", workspace=str(workspace))
    assert first.execute(context({"part": "2026-10-03T10:00"}, kind="manual")) == "2026-10-03T10:00"
    with pytest.raises(TaskDeferred):
        first.execute(context({"part": "2026-10-03T10:01"}, kind="manual"))


def test_the_note_of_a_run_is_the_reason_of_its_key() -> None:
    from partwise_airflow.tasks.notes import Notes

    events = [
        SimpleNamespace(extra={"reasons": {"k": "m[k] arrived", "other": "no"}}),
        SimpleNamespace(extra=None),
        SimpleNamespace(extra={"reasons": {"k": "late rows in m[k]"}}),
    ]
    run = SimpleNamespace(consumed_asset_events=events, partition_key="k", note=None, run_id="r", run_type="manual")
    Notes().on_dag_run_running(run, "")
    assert run.note == "late rows in m[k]"
    Notes().on_dag_run_running(SimpleNamespace(run_id="r"), "")  # whatever the scheduler hands in, it goes on


@pytest.mark.parametrize(
    "kind, conf, key, before, after",
    [
        ("manual", {"part": " 2026-10-03T10:05 "}, None, None, "2026-10-03T10:05 was requested"),
        ("manual", None, "2026-10-03T10:05", None, "2026-10-03T10:05 was requested"),
        ("manual", {"part": "2026-10-03T10:05"}, None, "the boss wants it", "the boss wants it"),
        ("manual", {"part": None}, None, None, None),
        ("asset_triggered", None, "2026-10-03T10:05", None, None),
    ],
)
def test_the_note_of_a_run_by_hand_says_what_was_asked_for(
    kind: str, conf: Any, key: str | None, before: str | None, after: str | None
) -> None:
    from partwise_airflow.tasks.notes import Notes

    run = SimpleNamespace(
        consumed_asset_events=[], partition_key=key, note=before, run_id="r", run_type=kind, conf=conf
    )
    run.dag = SimpleNamespace(tags={"partwise", "view"})
    Notes().on_dag_run_running(run, "")
    assert run.note == after
    run.note, run.dag.tags = before, {"theirs"}
    Notes().on_dag_run_running(run, "")
    assert run.note == before, "of other people's DAGs"


def test_asking_for_a_part_that_cannot_be_built_says_why(workspace: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from partwise_airflow.tasks.requested import RequestedParts
    from partwise_airflow.tasks.step import requested

    arrive(workspace, "00")
    with pytest.raises(AirflowFailException, match="There is no part of a in 2026-10-03T10:07"):
        requested(str(workspace), "a", RequestedParts("2026-10-03T10:07", requested=True))
    requested(str(workspace), "a", RequestedParts("2026-10-03T10:00", requested=True))
    ledger = open_workspace(str(workspace)).open_ledger(time.time())
    assert [(step.table, step.kind) for step in ledger.plan(time.time(), ["a"]).steps] == [("a", "requested")]
    ledger.database.close()
