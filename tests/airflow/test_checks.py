"""Failing checks in Airflow runs: the tasks of the rendered DAGs, one after the other, on real Spark.

Only the session is not the connection's: it is the one that all tests share.
"""

from __future__ import annotations

import time

import pytest

from partwise.backfill import ask
from partwise.ledger.read.snapshot import as_defined
from partwise.ledger.records import backfills
from partwise.parts import parse_range
from partwise.workspace import open_workspace
from spark_jobs.airflow import tasks
from tests.airflow.worker import Airflow

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: m
part: 1 minute
time: at
columns: {at: timestamp, x: int}
files: landing/*.csv
checks:
  - expect_column_values_to_be_between: {column: x, min_value: 0}
---
view: v
part: 1 minute
update: SELECT x FROM m[j]
checks:
  - expect_column_values_to_be_between: {column: x, max_value: 100}
---
view: w
part: 1 minute
update: SELECT SUM(x) AS s FROM v[j]
"""


def clean(airflow: Airflow) -> None:
    found = airflow.verified()
    assert (list(found.different), found.stale) == ([], 0)


def test_a_view_whose_part_fails(airflow: Airflow) -> None:
    """First build, late rows and a request: the task fails with the reason, good parts are there, the bad one is not."""
    from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

    airflow.land("a", (0, 1), (1, 500), (2, 3), (3, 0))
    airflow.tasks("m")
    with pytest.raises(AirflowFailException, match=r"v\[2026-10-03T10:01\]: check failed: 1 of 1 values of x"):
        airflow.tasks("v")
    assert airflow.seen() == {0: [1], 2: [3]}
    airflow.tasks("w")
    assert airflow.seen("w") == {0: [1], 2: [3]}
    with pytest.raises(TaskDeferred) as waits:
        airflow.tasks("w", part="2026-10-03T10:01")
    assert "w[2026-10-03T10:01] waits: v 0/1, missing 10:01" in waits.value.trigger.serialize()[1]["waits"]

    airflow.land("a", (0, 1), (1, 50), (2, 3), (3, 0))
    airflow.land("late", (2, 101))
    airflow.tasks("m")
    with pytest.raises(AirflowFailException, match=r"v\[2026-10-03T10:02\]: check failed: 1 of 2 values of x"):
        airflow.tasks("v")
    airflow.tasks("w")
    assert (airflow.seen(), airflow.seen("w")) == ({0: [1], 1: [50], 2: [3]}, {0: [1], 1: [50], 2: [3]})
    with pytest.raises(AirflowFailException, match="check failed"):
        airflow.tasks("v", part="2026-10-03T10:02")  # requested, it fails as before
    assert airflow.seen()[2] == [3]

    airflow.land("late", (2, 100))
    skipped = {}
    for name in ("m", "v", "w"):
        airflow.tasks(name)
        skipped[name] = airflow.skipped
    assert skipped == {"m": [], "v": [], "w": ["announce"]}, "nothing follows from w: nothing is told"
    assert (airflow.seen()[2], airflow.seen("w")[2]) == ([3, 100], [103])
    clean(airflow)


def test_a_backfill_whose_part_fails(airflow: Airflow) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from partwise_airflow.tasks.step import passed

    airflow.land("a", (0, 1), (1, 60), (2, 0))
    for name in ("m", "v", "w"):
        airflow.tasks(name)
    stricter = DEFINITIONS.replace("max_value: 100", "max_value: 50")
    (airflow.folder / "view_defs" / "all.yaml").write_text(stricter)
    where = open_workspace(str(airflow.folder))
    ledger = where.open_ledger(time.time())
    where.take_over(ledger, where.load(), time.time())
    graph = ledger.graph()
    with as_defined(ledger, graph, time.time()) as snapshot:
        asked = ask(backfills.world_of(snapshot), "v", parse_range("2026-10-03T10:00..2026-10-03T10:01", 60))
    with ledger.database.writing(time.time()) as w:
        number = backfills.begin(w, graph, asked, True, "test", lambda _: False).number
    ledger.database.close()
    step = f'{{"workspace": "{airflow.folder}", "table": "v", "backfill": {number}, "run": "r"}}'
    with pytest.raises(AirflowFailException, match=r"v\[2026-10-03T10:01\]: check failed"):
        passed(tasks.run_backfill(step, "v", airflow.spark))
    assert airflow.seen() == {0: [1], 1: [60]}


def test_a_source_whose_parts_fail(airflow: Airflow) -> None:
    """Told once, by the run that finds it; waiting for a correction is no news for the next look."""
    from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

    airflow.land("a", (0, 1), (1, -5), (2, 3), (3, 0))
    with pytest.raises(AirflowFailException, match=r"m\[2026-10-03T10:01\] is held back: check failed: 1 of 1"):
        airflow.tasks("m")
    assert airflow.seen("m") == {0: [1], 2: [3]}  # the other parts are there
    late = airflow.land("late", (2, -7))
    with pytest.raises(AirflowFailException, match=r"landing/late.csv is held back: m\[2026-10-03T10:02\]"):
        airflow.tasks("m")
    with pytest.raises(AirflowSkipException, match="nothing new has arrived"):
        airflow.tasks("m")
    late.unlink()
    airflow.tasks("m")  # nobody waits for it any more
    airflow.land("a", (0, 1), (1, 5), (2, 3), (3, 0))
    airflow.tasks("m")
    assert airflow.seen("m") == {0: [1], 1: [5], 2: [3]}
    with pytest.raises(AirflowSkipException, match="nothing new has arrived"):
        airflow.tasks("m")
    airflow.tasks("v")
    airflow.tasks("w")
    assert airflow.seen("w") == {0: [1], 1: [5], 2: [3]}
    clean(airflow)
