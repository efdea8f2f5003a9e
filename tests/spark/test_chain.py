"""Views that read their own parts: computed in memory, in a single pass, or one by one, they hold the same."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise.ledger.records.running import Running
from partwise.parts import Parts
from partwise.storage import open_at
from spark_jobs.run import run, run_all
from spark_jobs.step import chain
from spark_jobs.verify.verify import verify

from .workspace import Workspace, same_rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("engine")]

DEFINITIONS = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: bigint}
files: landing/*.csv
---
view: total
part: 1 minute
initialize: SELECT g, SUM(x) AS x, COUNT(*) AS n FROM m[i] GROUP BY g
update: |
  SELECT g, SUM(x) AS x, SUM(n) AS n
  FROM (SELECT g, x, n FROM total[j-1] UNION ALL SELECT g, x, 1 AS n FROM m[j]) GROUP BY g
---
view: longer
part: 1 minute
initialize: SELECT MAX(x) AS top, CAST(0 AS BIGINT) AS before FROM m[i]
update: |
  SELECT GREATEST(a.top, n.x) AS top, b.before AS before
  FROM (SELECT MAX(top) AS top FROM longer[j-3..j-1]) a
  CROSS JOIN (SELECT MAX(x) AS x FROM m[j]) n
  CROSS JOIN (SELECT COUNT(*) AS before FROM longer[j-2]) b
"""


def rows(rng: random.Random) -> list[dict[str, Any]]:
    return [{"t": None, "g": rng.choice([None, "a", "b"]), "x": rng.randrange(100)} for _ in range(rng.randrange(4))]


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many parts each chain had."""
    lengths: list[int] = []
    follow = chain.follow

    def counted(*given: Any) -> Any:
        found = follow(*given)
        lengths.append(len(found.contents))
        return found

    monkeypatch.setattr("spark_jobs.step.run_step.follow", counted)
    return lengths


def test_a_chain_holds_what_one_by_one_holds(spark: SparkSession, tmp_path: Path, jobs: list[int]) -> None:
    """Build, then late rows: an early one that changes all that follows, and one that changes nothing that lasts."""
    made = {
        name: Workspace(spark, tmp_path / name, DEFINITIONS, small_rows=n)
        for name, n in (("chained", 10**5), ("alone", 0))
    }
    rng = random.Random(5)
    histories: list[dict[int, list[dict[str, Any]]]] = [
        {p: rows(rng) for p in range(100, 112)},
        {102: [{"t": None, "g": "a", "x": 1}], 108: rows(rng)},
    ]
    for history in histories:
        done = {}
        for name, workspace in made.items():
            workspace.replace("m", history)
            done[name] = {r.table: (r.parts, r.changed, r.rows) for r in workspace.run()}
        assert done["chained"] == done["alone"]
        for view in ("total", "longer"):
            chained, alone = made["chained"].rows(view), made["alone"].rows(view)
            assert chained.keys() == alone.keys()
            assert all(same_rows(chained[p], alone[p]) for p in alone)
    assert max(jobs) == 11  # all but the first part
    assert verify(made["chained"].engine).different == ()
    assert made["chained"].ledger.audit() == {}
    # One file for all parts of a chain, not one a part.
    current = made["chained"].ledger.current("total")
    assert len(open_at(made["chained"].engine.path("total", current.generation), current.version).files) <= 4


def test_a_chain_ends_where_content_stays_the_same(spark: SparkSession, tmp_path: Path, jobs: list[int]) -> None:
    workspace = Workspace(spark, tmp_path / "w", DEFINITIONS)
    workspace.replace("m", {p: [{"t": None, "g": "a", "x": 50}] for p in range(20)})
    workspace.run()
    workspace.replace("m", {4: [{"t": None, "g": "a", "x": 40}]})  # below what was the top before and after it
    jobs.clear()
    done = {report.table: report for report in workspace.run()}
    assert (done["longer"].parts, done["longer"].changed) == (Parts.single(4), Parts())
    assert done["total"].changed == Parts.of((4, 19))
    assert sorted(jobs) == [1, 16]


def test_a_step_that_takes_long_publishes_and_the_next_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """With no time at all every step publishes one lot; what is left stays due, nothing is lost or done twice."""
    workspace = Workspace(spark, tmp_path / "w", DEFINITIONS, step_seconds=0.0)
    workspace.replace("m", {p: [{"t": None, "g": "a", "x": p}] for p in range(5)})
    seen: list[tuple[str, int, int]] = []
    engine = workspace.with_engine(progress=lambda step: seen.append((step.table, step.done, step.of)))
    reports = [report for report in run_all(engine) if report.table == "total"]
    assert [report.parts for report in reports] == [Parts.single(p) for p in range(5)]
    assert [entry for entry in seen if entry[0] == "total"] == [("total", 1, 5 - p) for p in range(5)]
    assert workspace.rows("total")[4] == [{"g": "a", "x": 10, "n": 5}]
    assert verify(workspace.engine).different == ()


def test_a_step_that_is_stopped_publishes_what_it_has(spark: SparkSession, tmp_path: Path) -> None:
    workspace = Workspace(spark, tmp_path / "w", DEFINITIONS)
    workspace.replace("m", {p: [{"t": None, "g": "a", "x": p}] for p in range(6)})
    stop = threading.Event()

    def seen(step: Running) -> None:
        if step.table == "total" and step.done == 3:
            stop.set()

    reports = [outcome.report for outcome in run(workspace.with_engine(progress=seen), stop=stop)]
    assert [r.parts for r in reports if r is not None and r.table == "total"] == [Parts.of((0, 2))]
    assert [r.parts for r in run_all(workspace.engine) if r.table == "total"] == [Parts.of((3, 5))]
    assert verify(workspace.engine).different == ()


def test_a_part_that_fails_ends_the_chain_and_is_told(spark: SparkSession, tmp_path: Path) -> None:
    text = DEFINITIONS.split("---\nview: longer")[0].replace(
        "SUM(n) AS n", "SUM(n) + 0 * CAST(1 / (SUM(x) - 30) AS BIGINT) AS n"
    )
    workspace = Workspace(spark, tmp_path / "w", text)
    workspace.replace("m", {p: [{"t": None, "g": "a", "x": 10}] for p in range(5)})
    (report,) = run_all(workspace.engine)[:1]
    assert (report.parts, list(report.failed)) == (Parts.of((0, 1)), [2])
    assert "DIVIDE_BY_ZERO" in report.failed[2]
    assert "all.yaml" in report.failed[2]
    workspace.replace("m", {2: [{"t": None, "g": "a", "x": 11}]})
    assert run_all(workspace.engine)[0].parts == Parts.of((2, 4))


def test_what_fails_together_is_published_in_lots(spark: SparkSession, tmp_path: Path) -> None:
    """One bad part of many makes their one query fail. What is computed in smaller lots is published when it is time."""
    text = (
        DEFINITIONS.split("---\n")[0]
        + "---\nview: v\npart: 1 minute\nupdate: SELECT g, 100 / (x - 30) AS q FROM m[j]\n"
    )
    workspace = Workspace(spark, tmp_path / "w", text, step_seconds=0.0)
    workspace.replace("m", {p: [{"t": None, "g": "a", "x": p}] for p in range(24, 40)})
    reports = run_all(workspace.engine)
    assert len(reports) > 2
    assert [p for report in reports for p in report.parts] == [p for p in range(24, 40) if p != 30]
    assert [p for report in reports for p in report.failed] == [30]
    assert verify(workspace.engine).different == ()
