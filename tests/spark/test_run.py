"""Running everything that is ready: side by side, and on after trouble that is not a query's."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from partwise import storage
from partwise.settings import Batch
from spark_jobs import retry
from spark_jobs.run import Outcome, run, run_all

from .workspace import Workspace

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("engine")]
TEXT = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, x: bigint}
files: landing/*.csv
---
view: a
part: 1 minute
update: SELECT SUM(x) AS s FROM m[j]
---
view: b
part: 1 minute
update: SELECT MAX(x) AS s FROM m[j]
---
view: after_a
part: 1 minute
update: SELECT s FROM a[j]
"""


@pytest.fixture
def space(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(retry, "PAUSES", (0.01, 0.01))
    found = Workspace(spark, tmp_path / "w", TEXT, batch=Batch(views=1))
    found.replace("m", {0: [{"t": None, "x": 1}, {"t": None, "x": 2}], 1: [{"t": None, "x": 3}]})
    return found


def built(space: Workspace) -> dict[str, list[int]]:
    return {name: list(space.parts(name)) for name in ("a", "b", "after_a")}


def vacuum(space: Workspace, table: str) -> int:
    """What VACUUM without retention does: files go that no version names, staged ones too."""
    path = Path(space.engine.path(table, 0))
    named = {file.path.split("/")[0] for file in storage.open_at(str(path)).files}
    gone = [folder for folder in path.glob("s-*") if folder.name not in named]
    for folder in gone:
        shutil.rmtree(folder)
    return len(gone)


def test_independent_tables_run_side_by_side(space: Workspace) -> None:
    """Both first steps are past their pin before either goes on: one after the other, the barrier would break."""
    both, seen = threading.Barrier(2, timeout=60), []

    def passed(point: str) -> None:
        if point == "pinned" and len(seen) < 2:
            seen.append(point)
            both.wait()

    run_all(space.with_engine(passed=passed))
    assert built(space) == {"a": [0, 1], "b": [0, 1], "after_a": [0, 1]}


def test_staged_files_that_were_vacuumed_are_computed_again(space: Workspace) -> None:
    gone: list[int] = []

    def passed(point: str) -> None:
        if point == "ready" and not sum(gone):
            gone.append(vacuum(space, "a"))

    told: list[Outcome] = []
    run_all(space.with_engine(passed=passed), ["m", "a", "after_a"], told.append)
    assert gone == [1]
    [first] = [outcome for outcome in told if outcome.trouble]
    assert (first.step.table, first.given_up) == ("a", False)
    assert isinstance(first.trouble, storage.CommitRefused)
    assert space.rows("after_a") == {0: [{"s": 3}], 1: [{"s": 3}]}


def test_trouble_with_one_table_leaves_the_others(space: Workspace) -> None:
    def passed(point: str) -> None:
        if point == "ready":
            vacuum(space, "a")

    told = list(run(space.with_engine(passed=passed), side_by_side=1))
    assert [outcome.given_up for outcome in told if outcome.trouble] == [False, False, True]
    assert built(space) == {"a": [], "b": [0, 1], "after_a": []}
    with pytest.raises(storage.CommitRefused):
        run_all(space.with_engine(passed=passed))
    space.run()
    assert built(space) == {"a": [0, 1], "b": [0, 1], "after_a": [0, 1]}


def test_spark_that_was_lost_once_is_asked_again(space: Workspace) -> None:
    lost: list[Any] = []

    def passed(point: str) -> None:
        if point == "staged" and not lost:
            lost.append(point)
            raise PySparkException("Job aborted: ExecutorLostFailure (executor 1 exited)")

    told: list[Outcome] = []
    run_all(space.with_engine(passed=passed), each=told.append)
    assert len([outcome for outcome in told if outcome.trouble]) == 1
    assert built(space) == {"a": [0, 1], "b": [0, 1], "after_a": [0, 1]}


def test_an_error_of_the_program_itself_is_not_hidden(space: Workspace) -> None:
    def passed(point: str) -> None:
        raise AssertionError(point)

    with pytest.raises(AssertionError):
        run_all(space.with_engine(passed=passed))
