"""What Airflow's tasks call, with a real session: steps as JSON in, reports as JSON out."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from partwise.workspace import open_workspace
from spark_jobs.airflow import tasks
from tests.spark.place import Place

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: s
part: 1 minute
time: at
columns: {at: timestamp, x: int}
files: landing/*.csv
---
view: inverse
part: 1 minute
update: SELECT 100 div x AS x FROM s[j]
---
view: after
part: 1 minute
update: SELECT SUM(x) AS x FROM inverse[j]
"""


@pytest.fixture
def place(tmp_path: Path, spark: SparkSession) -> Place:
    return Place(tmp_path / "ws", spark, DEFINITIONS)


def test_arrival_steps_and_news(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.land("a", (0, 1), (1, 2), (2, 4), (3, 1))
    assert tasks.anything_new(place.step("s"))
    loaded = place.load()
    assert (loaded["files"], loaded["rows"], loaded["closed"]) == (1, 4, ["2026-10-03T10:00..2026-10-03T10:02"])
    assert not tasks.anything_new(place.step("s")), "the same files again are no news"

    with caplog.at_level(logging.INFO, "partwise.step"):
        done = place.run("inverse", parts="2026-10-03T10:01")
    assert done["steps"][0]["parts"] == ["2026-10-03T10:00..2026-10-03T10:02"], "a key is a hint: all that is ready"
    assert (done["failed"], done["again"], done["steps"][0]["rows"]) == ({}, False, 3)
    assert "s[2026-10-03T10:00..2026-10-03T10:02] arrived" in caplog.text
    assert "3 parts, 3 rows, 3 of them changed" in caplog.text
    assert place.run("inverse")["steps"] == []

    place.land("late", (1, 5))
    assert tasks.anything_new(place.step("s"))
    assert place.load()["changed"] == ["2026-10-03T10:01"]
    again = place.run("inverse")["steps"][0]
    assert (again["parts"], again["reason"]) == (["2026-10-03T10:01"], "late rows in s[2026-10-03T10:01]")


def test_the_log_of_a_step_names_versions_of_forward_dimensions(
    tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    rates = "---\ndimension: rates\nchange: forward\ncolumns: {rate: int}\nfiles: rates.csv\n"
    view = "---\nview: priced\npart: 1 minute\nupdate: SELECT s.x * r.rate AS v FROM s[j] s JOIN rates r ON true\n"
    place = Place(tmp_path / "ws", spark, DEFINITIONS + rates + view)
    for rate in (1, 2):
        file = place.folder / "rates.csv"
        file.write_text(f"rate\n{rate}\n")
        os.utime(file, (rate, rate))
        tasks.load_source(place.step("rates"), spark)
        place.load(f"a{rate}", (rate - 1, 1), (rate, 1))
    with caplog.at_level(logging.INFO, "partwise.step"):
        steps = place.run("priced")["steps"]
    said = [f"rates: version {n} of 2, current when s[2026-10-03T10:0{n - 1}] came to exist" for n in (1, 2)]
    assert [step["versions"] for step in steps] == [[text] for text in said]
    assert all(text in caplog.text for text in said)


def test_a_query_that_is_certain_to_fail_is_not_tried_again(place: Place) -> None:
    place.load("a", (0, 1), (1, 0), (2, 4))
    failed = place.run("inverse", parts="2026-10-03T10:01")
    assert "DIVIDE_BY_ZERO" in failed["failed"]["2026-10-03T10:01"]
    assert not failed["again"]


def test_a_query_that_fails_says_so_until_it_is_held_and_leaves_what_was_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.step.run_step.is_certain", lambda _: False)
    place.land("a", (0, 1), (1, 2), (2, 4))
    place.load()
    place.run("inverse")
    place.land("zero", (1, 0))
    place.load()
    failed = place.run("inverse", parts="2026-10-03T10:01")
    assert list(failed["failed"]) == ["2026-10-03T10:01"]
    assert "DIVIDE_BY_ZERO" in failed["failed"]["2026-10-03T10:01"]
    assert "all.yaml:" in failed["failed"]["2026-10-03T10:01"]
    assert failed["again"], "it will be tried again"
    # A second try that comes too early computes nothing, and is no success either.
    second = place.run("inverse", parts="2026-10-03T10:01")
    assert (second["steps"], list(second["failed"])) == ([], ["2026-10-03T10:01"])
    # Runs for other parts are not failed by this one.
    assert place.run("inverse", parts="2026-10-03T10:00")["failed"] == {}
    from partwise.reading import read

    assert read("SELECT count(*) FROM inverse", str(place.folder)).rows == [(2,)], "the content of before"


def test_a_query_that_fails_outside_of_the_key_is_tried_again_too(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key is a hint: what the run computes besides it may fail as well, and so may a run without a key."""
    monkeypatch.setattr("partwise.ledger.ledger.BACKOFF", (600.0,))
    monkeypatch.setattr("spark_jobs.step.run_step.is_certain", lambda _: False)
    by = {"by": {"dag": "inverse", "run": "r", "task": "inverse"}}
    place.load("a", (0, 1), (1, 0), (2, 4), (3, 1))
    failed = place.run("inverse", parts="2026-10-03T10:00", **by)
    assert list(failed["failed"]) == ["2026-10-03T10:01"]
    assert failed["again"]
    second = place.run("inverse", **by)
    assert (second["steps"], list(second["failed"]), second["again"]) == ([], ["2026-10-03T10:01"], True)
    other = {"by": {**by["by"], "run": "another"}}
    assert place.run("inverse", **other)["failed"] == {}, "that was another run's"


def test_a_table_that_somebody_writes_is_waited_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from partwise.ledger.write.leases import Busy

    place.land("a", (0, 1), (1, 2))
    place.load()
    ledger = open_workspace(str(place.folder)).open_ledger(time.time())
    ledger.take("inverse", "somewhere:1:x", 2, time.time())
    began = time.monotonic()
    assert place.run("inverse")["steps"], "the lease ran out, and the step went on"
    assert time.monotonic() - began > 1
    ledger.take("inverse", "somewhere:1:x", 600, time.time())
    ledger.database.close()
    monkeypatch.setattr(tasks, "PATIENCE", 0.0)
    with pytest.raises(Busy, match="inverse is being written by somewhere"):
        place.run("inverse")


def test_a_backfill_computes_what_has_changed_since_it_began(place: Place) -> None:
    from partwise.backfill import ask
    from partwise.ledger.read.snapshot import as_defined
    from partwise.ledger.records import backfills
    from partwise.parts import parse_range

    place.land("a", (0, 1), (1, 2), (2, 4))
    place.load()
    place.run("inverse")
    place.run("after")
    ledger = open_workspace(str(place.folder)).open_ledger(time.time())
    graph = ledger.graph()
    with as_defined(ledger, graph, time.time()) as snapshot:
        asked = ask(backfills.world_of(snapshot), "inverse", parse_range("2026-10-03T10:00", 60))
    with ledger.database.writing(time.time()) as w:
        number = backfills.begin(w, graph, asked, True, "test", lambda _: False).number
    ledger.database.close()
    first = tasks.run_backfill(place.step("inverse", backfill=number), "inverse", place.spark)
    assert [step["parts"] for step in first["steps"]] == [["2026-10-03T10:00"]]
    assert first["steps"][0]["changed"] == []
    then = tasks.run_backfill(place.step("after", backfill=number), "after", place.spark)
    assert then["steps"] == [], "what it reads did not change"


def test_a_driver_of_our_own_names_its_ui_and_a_shared_one_what_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTWISE_SPARK_UI", "http://shared:4040")
    own = SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl="http://own:4041"))
    assert tasks.ui_link(own) == "http://own:4041"  # type: ignore[arg-type]
    conf = {"spark.driver.host": "there", "spark.ui.port": "4042"}
    shared = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session", "conf": conf})()
    assert tasks.ui_link(shared) == "http://shared:4040"
    monkeypatch.delenv("PARTWISE_SPARK_UI")
    assert tasks.ui_link(shared) == "http://there:4042"
    conf["spark.ui.enabled"] = "false"
    assert tasks.ui_link(shared) is None


OTHERS = """
view: double
part: 1 minute
update: SELECT x * 2 AS x FROM s[j]
---
view: ratio
part: 1 minute
update: SELECT 1 div (x - x) AS x FROM s[j]
---
view: paused
part: 1 minute
update: SELECT -x AS x FROM s[j]
---
view: submitted
part: 1 minute
engine: submit
update: SELECT x + 1 AS x FROM s[j]
"""


def test_small_steps_that_wait_for_a_slot_go_along(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Each run keeps its log and its failure; a view without a run that waits is left alone."""
    from partwise.ledger.facts import LedgerFacts
    from partwise.ledger.records import announcements
    from spark_jobs.airflow.company import already_done

    (place.folder / "view_defs" / "others.yaml").write_text(OTHERS)
    place.load("a", (0, 1), (1, 2))
    ledger = open_workspace(str(place.folder)).open_ledger(time.time())
    views = {"inverse", "double", "ratio", "paused", "submitted"}
    assert announcements.announce(ledger, time.time()).keys() == views
    with ledger.database.aside() as on:
        for view in sorted(views - {"paused"}):
            announcements.wait_for_turn(on, view, f"run of {view}")
    assert already_done(place.step("double")) is None
    with caplog.at_level(logging.INFO, "partwise.step"):
        done = place.run("inverse", begins="inverse", by={"dag": "inverse", "run": "r1", "task": "inverse"})
    assert [step["parts"] for step in done["steps"]] == [["2026-10-03T10:00"]]
    assert "double[2026-10-03T10:00]: s[2026-10-03T10:00] arrived" in caplog.text
    due = {step.table for step in ledger.plan(time.time()).steps}
    assert due == {"ratio", "paused", "submitted", "after"}
    with ledger.database.reading() as r:
        assert LedgerFacts(r).failures() == {}
        assert announcements.in_turn(r) == {"double", "ratio", "submitted"}
    with caplog.at_level(logging.INFO, "partwise.step"):
        report = already_done(place.step("double", begins="double", ends="double"))
    assert report == {"table": "double", "steps": [], "failed": {}, "again": False, "quiet": True}
    assert "nothing of it is due and ready; it was computed by task inverse of inverse, run r1" in caplog.text
    with ledger.database.reading() as r:
        assert announcements.in_turn(r) == {"ratio", "submitted"}
        assert "double" not in announcements.told(r)
    assert already_done(place.step("ratio")) is None
    assert "DIVIDE_BY_ZERO" in place.run("ratio")["failed"]["2026-10-03T10:00"]
    assert already_done(place.step("ratio")) is None, "its failure is told by the step itself"
    ledger.database.close()


WINDOW = """
---
view: w
share: false
part: 1 minute
query: SELECT SUM(x) AS s FROM s [WINDOW 2 minutes]
"""


def test_a_dag_whose_file_lags_behind_recovers(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """How a window is kept is settled by the first step; the DAG still has the tasks of before."""
    (place.folder / "view_defs" / "w.yaml").write_text(WINDOW.lstrip("\n-"))
    place.land("a", (0, 1), (1, 2), (2, 4), (3, 1))
    place.load()
    gone = place.run("w__panes")
    assert gone == {"table": "w__panes", "steps": [], "failed": {}, "again": False}
    assert place.run("w")["steps"][0]["parts"] == ["2026-10-03T10:01..2026-10-03T10:02"]
    assert place.run("w__panes") == gone, "however often"


def test_helpers_that_the_dag_does_not_know_are_computed_by_the_task_of_the_view(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partwise.choose.window.TABLE", 0)
    monkeypatch.setattr("partwise.choose.window.WRITTEN", 0)
    (place.folder / "view_defs" / "w.yaml").write_text(WINDOW.lstrip("\n-").replace("2 minutes", "6 minutes"))
    place.land("a", *((minute, minute) for minute in range(9) for _ in range(20)))
    place.load()
    assert place.run("w__panes")["steps"][0]["parts"] == ["2026-10-03T10:00..2026-10-03T10:07"]
    done = place.run("w", parts="2026-10-03T10:06")
    assert done["steps"][0]["parts"] == ["2026-10-03T10:05..2026-10-03T10:07"]
    ledger = open_workspace(str(place.folder)).open_ledger(time.time())
    assert {name for name, table in ledger.graph().tables.items() if table.helper_of} == {"w__panes", "w__rolling"}
    assert not ledger.plan(time.time()).steps or {s.table for s in ledger.plan(time.time()).steps} == {"inverse"}
    ledger.database.close()
