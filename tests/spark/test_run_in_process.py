"""`partwise.open(...).run()`: loads and computes in this process, as `partwise run` does, and has no start cost when warm."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import partwise
from partwise.api import FinishedStep, LoadedTable, Reader, RunResult
from spark_jobs import in_process

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: sales
part: 1 minute
time: at
columns: {at: timestamp, item: string, pieces: int}
files: landing/sales*.csv
---
view: sold
part: 1 minute
update: SELECT item, SUM(pieces) AS pieces FROM sales[j] GROUP BY item
checks:
  - expect_column_values_to_be_between: {column: pieces, min_value: 0}
---
view: all_sold
part: 1 minute
refresh: {every: 1 hour}
update: SELECT SUM(pieces) AS pieces FROM sold[j]
"""
NOTHING = RunResult((), (), ())


@pytest.fixture
def reader(spark: SparkSession, tmp_path: Path) -> Reader:
    for name in ("view_defs", "landing"):
        (tmp_path / name).mkdir()
    (tmp_path / "partwise.yaml").write_text("")
    (tmp_path / "view_defs" / "all.yaml").write_text(DEFINITIONS)
    return partwise.open(tmp_path)


def land(reader: Reader, number: int, *rows: str) -> None:
    (reader.folder / f"landing/sales{number}.csv").write_text("\n".join(["at,item,pieces", *rows, ""]))


def minute(number: int) -> datetime:
    return datetime(2026, 10, 3, 10, number, tzinfo=UTC)


def test_it_loads_and_computes_what_is_ready(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    land(reader, 1, *(f"2026-10-03T10:0{n}:10,tea,{n + 1}" for n in range(4)))
    done = reader.run("sold")
    assert done.loaded == (LoadedTable("sales", 1, 4, 0, 0, 3, 0, (), ()),)
    (step,) = done.steps
    assert step == FinishedStep("sold", minute(0), minute(2), 3, 3, 3, step.reason, step.seconds, ())
    assert "arrived" in step.reason
    assert done.problems == ()
    assert reader.query("SELECT sum(pieces) AS n FROM sold").column("n").to_pylist() == [6]

    # Deferred by its refresh policy, unless that is passed; then nothing is left, and nothing of Spark is asked.
    assert [item.table for item in reader.run(now=True).steps] == ["all_sold"]
    with monkeypatch.context() as patched:
        patched.setattr(in_process, "_worked", None)
        assert reader.run() == NOTHING
        assert reader.run("SOLD", ingest=False) == NOTHING

    land(reader, 2, "2026-10-03T10:01:30,tea,10", "2026-10-03T10:05:00,jam,1", "yesterday,jam,1")
    assert reader.run(ingest=False) == NOTHING
    done = reader.run("sold")
    assert done.loaded == (LoadedTable("sales", 1, 2, 1, 1, 2, 1, (), ()),)
    assert [(item.first, item.last, item.parts, item.changed) for item in done.steps] == [(minute(1), minute(4), 3, 3)]
    assert reader.query("SELECT sum(pieces) AS n FROM sold").column("n").to_pylist() == [20]


def test_later_calls_use_the_session_of_the_first(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_jobs.session import session

    land(reader, 1, "2026-10-03T10:00:10,tea,1", "2026-10-03T10:01:00,tea,1")
    assert reader.run("sold").steps
    monkeypatch.setattr(session, "session", None)  # nobody asks for one any more
    land(reader, 2, "2026-10-03T10:02:00,tea,1")
    assert [step.rows for step in reader.run("sold").steps] == [1]


def test_what_goes_wrong_is_told(reader: Reader) -> None:
    land(reader, 1, "2026-10-03T10:00:10,tea,-1", "2026-10-03T10:01:00,tea,1", "2026-10-03T10:02:00,tea,1")
    land(reader, 2)
    (reader.folder / "landing/sales3.csv").write_text("other,columns\n1,2\n")
    (reader.folder / "view_defs/broken.yaml").write_text("view: nonsense\npart: 1 minute\nupdate: SELECT\n")
    done = reader.run("sold")
    (step,) = done.steps
    ((start, why),) = step.failed
    assert (start, step.changed) == (minute(0), 1)
    definitions, refused, failed = done.problems
    assert "broken.yaml" in definitions
    assert refused.startswith("sales: landing/sales3.csv was refused: it has no header")
    assert failed == f"sold[2026-10-03T10:00:00]: {why}"
    assert "pieces" in why
    with pytest.raises(partwise.PartwiseError, match=r"There is no view selld; did you mean sold\?"):
        reader.run("selld")
