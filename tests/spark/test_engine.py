"""Steps on real Spark and Delta: the paper's worked example to the number, and what a step leaves behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise import storage
from partwise.parts import Parts, part_text
from spark_jobs.run import run_all
from spark_jobs.verify.verify import verify

from .workspace import Workspace, same_rows

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("engine")]
VIEWS = Path(__file__).parents[2] / "view_defs"
TEN = datetime(2015, 1, 1, 10, tzinfo=UTC)
AT_TEN = int(TEN.timestamp()) // 60


def measured(minute: int, loss: float, src: str = "p", dest: str = "q") -> dict[str, Any]:
    return {"event_time": TEN + timedelta(minutes=minute, seconds=7), "src": src, "dest": dest, "loss": loss}


@pytest.fixture(scope="module")
def example(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    files = ("network", "high_loss", "high_loss_by_hand")
    text = "\n---\n".join((VIEWS / f"{name}.yaml").read_text() for name in files)
    found = Workspace(spark, tmp_path_factory.mktemp("example"), text)
    losses = [6, 12, 15, 24, 20, 16, 7]
    found.replace("measurements", {AT_TEN + m: [measured(m, loss)] for m, loss in enumerate(losses)})
    found.run()
    return found


@pytest.mark.parametrize("view", ["high_loss", "high_loss_by_hand"])
def test_the_worked_example(example: Workspace, view: str) -> None:
    """Four or more losses above ten: 10:04 shows 4 and 71, 10:05 shows 5 and 87, 10:06 nothing."""
    shown = {part_text(p, 60)[-5:]: rows for p, rows in example.rows(view).items()}
    assert shown == {
        "10:00": [],
        "10:01": [],
        "10:02": [],
        "10:03": [],
        "10:04": [{"src": "p", "dest": "q", "ct": 4, "sum_loss": 71.0}],
        "10:05": [{"src": "p", "dest": "q", "ct": 5, "sum_loss": 87.0}],
        "10:06": [],
    }


def test_late_data_change_what_they_must_and_stop_there(example: Workspace) -> None:
    """A late measurement at 10:00 makes the run one longer; 10:06 breaks it all the same, so nothing follows."""
    example.replace("measurements", {AT_TEN: [measured(0, 11)]})
    reports = {report.table: report for report in example.run()}
    at = lambda *minutes: Parts.single(*(AT_TEN + m for m in minutes))  # noqa: E731
    assert reports["loss_runs"].changed == at(0, 1, 2, 3, 4, 5)
    assert reports["loss_runs"].parts == at(0, 1, 2, 3, 4, 5, 6)  # 10:06 is looked at, and the same
    assert reports["high_loss_by_hand"].changed == reports["high_loss"].changed == at(3, 4, 5)
    for view in ("high_loss", "high_loss_by_hand"):
        rows = example.rows(view)
        assert [(r["ct"], r["sum_loss"]) for m in (3, 4, 5) for r in rows[AT_TEN + m]] == [(4, 62), (5, 82), (6, 98)]
    example.replace("measurements", {AT_TEN: [measured(0, 6)]})  # as the other tests expect it
    example.run()
    assert example.ledger.audit() == {}


SMALL = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: string, x: bigint}
files: landing/*.csv
---
view: v
part: 1 minute
update: SELECT QUERY FROM m[j] WHERE x > 0
"""


def rows(*values: int) -> list[dict[str, Any]]:
    return [{"t": TEN, "g": f"g{x}", "x": x} for x in values]


@pytest.fixture
def small(spark: SparkSession, tmp_path: Path) -> Workspace:
    found = Workspace(spark, tmp_path / "w", SMALL.replace("QUERY", "g, x"))
    found.replace("m", {1: rows(1, 2), 2: rows(), 3: rows(3)})
    found.run()
    return found


def test_an_empty_result_exists_and_an_unchanged_one_makes_no_commit(small: Workspace) -> None:
    assert small.rows("v") == {1: [{"g": "g1", "x": 1}, {"g": "g2", "x": 2}], 2: [], 3: [{"g": "g3", "x": 3}]}
    version = small.ledger.current("v")
    small.replace("m", {1: rows(1, 2, -5)})  # the view does not show it
    (report,) = small.run()
    assert (report.parts, report.changed) == (Parts.single(1), Parts())
    assert small.ledger.current("v") == version
    assert list(Path(small.engine.path("v", 0), "_staged").glob("*")) == []
    small.replace("m", {1: rows()})
    (report,) = small.run()
    assert report.changed == Parts.single(1)
    assert small.rows("v") == {1: [], 2: [], 3: [{"g": "g3", "x": 3}]}


def test_tables_are_read_by_others(small: Workspace) -> None:
    """Reader 1 and writer 2: delta-rs, DuckDB and Spark's own reader see the same rows."""
    import duckdb
    from deltalake import DeltaTable

    path = small.engine.path("v", 0)
    table = DeltaTable(path)
    assert (table.protocol().min_reader_version, table.protocol().min_writer_version) == (1, 2)
    wanted = [(1, 1), (1, 2), (3, 3)]
    arrow = table.to_pyarrow_table()
    assert sorted(zip(arrow["part"].to_pylist(), arrow["x"].to_pylist(), strict=True)) == wanted
    assert duckdb.sql("SELECT part, x FROM arrow ORDER BY part, x").fetchall() == wanted
    spark = small.spark.read.format("delta").load(path).orderBy("part", "x")
    assert [(r.part, r.x) for r in spark.collect()] == wanted


def test_another_schema_makes_a_new_table_beside_the_old_one(small: Workspace) -> None:
    old = storage.open_at(small.engine.path("v", 0))
    small.define(SMALL.replace("QUERY", "g, x, x * 2 AS twice"))
    small.run()
    assert small.rows("v")[3] == [{"g": "g3", "x": 3, "twice": 6}]
    assert small.parts("v") == Parts.of((1, 3))
    assert small.ledger.current("v").generation == 1
    assert len(storage.open_at(old.path).files) == len(old.files)  # who reads the old one is not disturbed


def test_a_failing_query_is_recorded_where_it_stands(small: Workspace) -> None:
    small.define(SMALL.replace("QUERY", "g, 10 DIV (x - 3) AS q"))
    reports = run_all(small.engine)
    failed = {p: why for report in reports for p, why in report.failed.items()}
    assert list(failed) == [3]
    assert "all.yaml:10:19:" in failed[3]  # where the division is
    assert "DIVIDE_BY_ZERO" in failed[3]
    assert {p: rows for p, rows in small.rows("v").items() if p != 3} == {
        1: [{"g": "g1", "q": -5}, {"g": "g2", "q": -10}],
        2: [],
    }
    small.define(SMALL.replace("QUERY", "map_keys(g) AS u"))
    failed = {p: why for report in run_all(small.engine) for p, why in report.failed.items()}
    assert all("DATATYPE_MISMATCH" in why and "all.yaml:10:16" in why for why in failed.values())
    assert len(failed) == 3


@pytest.mark.parametrize(
    "query, said",
    [
        ("g, (SELECT x FROM m[j]) AS q", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
        ("/*+ BROADCAST(b) */ g, q FROM m[j] JOIN (SELECT g AS h, 1 DIV (x - 2) AS q FROM m[j]) b ON g = h --", "ZERO"),
    ],
)
def test_an_error_that_pyspark_has_no_class_for_fails_its_part_alone(small: Workspace, query: str, said: str) -> None:
    """What comes as a bare Java exception: an error of Spark itself, or the wrapper around one inside a broadcast."""
    small.define(SMALL.replace("QUERY", query))
    small.spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        failed = {p: why for report in run_all(small.engine) for p, why in report.failed.items()}
    finally:
        small.spark.conf.unset("spark.sql.adaptive.enabled")
    assert list(failed) == [1]
    assert said in failed[1]
    assert "all.yaml:10" in failed[1]
    assert "\tat " not in failed[1]
    assert list(small.parts("v")) == [2, 3]


def test_queries_may_name_the_part_and_a_star_leaves_it_out(small: Workspace) -> None:
    more = """
---
view: newest
part: 1 minute
update: SELECT g, MAX(part) AS p, MIN(part_timestamp) AS t FROM m[j-1..j] GROUP BY g
---
view: everything
part: 1 minute
update: SELECT DISTINCT * FROM v[j-2..j]
---
view: last_of_three
part: 1 minute
query: SELECT LAST(x) AS x FROM v [WINDOW 3 minutes]
"""
    small.define(SMALL.replace("QUERY", "g, x") + more)
    small.replace("m", {3: rows(1)})
    small.run()
    second = datetime.fromtimestamp(60, UTC)
    assert same_rows(small.rows("newest")[2], [{"g": g, "p": 1, "t": second} for g in ("g1", "g2")])
    assert sorted(r["x"] for r in small.rows("everything")[3]) == [1, 2]  # g1 of two parts is one row
    assert small.rows("last_of_three")[3] == [{"x": 1}]
    assert verify(small.engine).different == ()


def test_a_digest_that_fails_once_leaves_no_rows_twice(small: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are then staged again, one by one; what the first try staged must not be committed with them."""
    from pyspark.errors import PySparkException

    from spark_jobs.step import run_step

    digests, calls = run_step.digests, []

    def failing(*given: Any, **named: Any) -> dict[int, str]:
        calls.append(given)
        if len(calls) == 1:
            raise PySparkException("an executor was lost")
        return digests(*given, **named)

    monkeypatch.setattr(run_step, "digests", failing)
    small.replace("m", {1: rows(4), 2: rows(5), 3: rows(6)})
    small.run(small_rows=0)  # as large results are staged and digested
    assert len(calls) == 4
    assert small.rows("v") == {p: [{"g": f"g{x}", "x": x}] for p, x in ((1, 4), (2, 5), (3, 6))}
    assert list(Path(small.engine.path("v", 0), "_staged").glob("*")) == []


COMMENTED = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, x: bigint}
files: landing/*.csv
---
view: seen
part: 1 minute
update: |
  -- this part, and the part before
  SELECT DISTINCT * FROM m[j-1..j]
"""


def test_a_comment_does_not_decide_which_columns_a_query_sees(spark: SparkSession, tmp_path: Path) -> None:
    """The row of part 0 and the equal one of part 1 are one row, whether parts are computed alone or together."""
    workspace = Workspace(spark, tmp_path / "w", COMMENTED)
    rows = [{"t": datetime(1970, 1, 1, tzinfo=UTC), "x": x} for x in (1, 1, 2)]
    workspace.replace("m", {0: rows[:1], 1: rows[1:], 2: rows[2:]})
    workspace.run()
    together = workspace.rows("seen")
    assert [len(together[p]) for p in sorted(together)] == [2, 2]
    workspace.replace("m", {0: [*rows[:1], *rows[:1]]})
    workspace.run()
    alone = workspace.rows("seen")
    assert [len(alone[p]) for p in sorted(alone)] == [2, 2]
    assert verify(workspace.engine).different == ()
