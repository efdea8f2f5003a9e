"""`partwise.open`: the same answers and the same promises as the commands, in types."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import partwise
from partwise.api import PastReader, Reader
from partwise.ledger.read.promise import promise_from
from partwise.workspace import open_workspace
from tests.cli.conftest import ROOT, Run, cache, run, workspace  # noqa: F401
from tests.cli.stand_in import load_dimension, load_rows

PART = int(datetime(2026, 10, 3, 10, 0, tzinfo=UTC).timestamp()) // 60


def deliver(folder: Path, minutes: range, mode: str = "append") -> None:
    """Two rows for each of these minutes, in the Delta table and in the ledger."""
    parts = [PART + minute for minute in minutes for _ in range(2)]
    times = [datetime.fromtimestamp(part * 60, UTC) for part in parts]
    rows = pa.table(
        {
            "event_time": pa.array(times, pa.timestamp("us", "UTC")),
            "src": ["ams", "ber"] * len(minutes),
            "dest": ["ber", "ams"] * len(minutes),
            "loss": [float(part) for part in parts],
            "part": parts,
            "part_timestamp": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    write_deltalake(folder / "warehouse/measurements", rows, mode=mode)
    load_rows(folder, "measurements", f"2026-10-03T10:{minutes[0]:02}..2026-10-03T10:{minutes[-1]:02}", rows=2)


@pytest.fixture
def reader(workspace: Path) -> Reader:  # noqa: F811
    deliver(workspace, range(3))
    return partwise.open(workspace)


def test_query_gives_arrow_with_the_types_of_the_table(reader: Reader) -> None:
    found = reader.query(
        "SELECT part_timestamp, count(*) AS n, max(loss) AS worst FROM measurements GROUP BY ALL ORDER BY 1"
    )
    assert found.column("n").to_pylist() == [2, 2, 2]
    assert found.schema.field("worst").type == pa.float64()
    assert found.column("part_timestamp").to_pylist()[0] == datetime(2026, 10, 3, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("parts", "rows"), [(None, 6), ("2026-10-03T10:01", 2), ("2026-10-03T10:01..2026-10-03T10:02", 4), ("2027-01-01T00:00", 0)]
)  # fmt: skip
def test_read_gives_the_rows_of_parts(reader: Reader, parts: str | None, rows: int) -> None:
    found = reader.read("MEASUREMENTS", parts)
    assert found.num_rows == rows
    assert found.column_names[:4] == ["event_time", "src", "dest", "loss"]


def test_rows_of_parts_that_are_not_closed_are_not_seen(reader: Reader, workspace: Path) -> None:  # noqa: F811
    """Also not through `parts`: what is not closed does not exist yet."""
    parts = [PART + 7]
    times = pa.array([datetime.fromtimestamp(parts[0] * 60, UTC)], pa.timestamp("us", "UTC"))
    row = {"event_time": times, "src": ["x"], "dest": ["y"], "loss": [1.0], "part": parts, "part_timestamp": times}
    write_deltalake(workspace / "warehouse/measurements", pa.table(row), mode="append")
    load_rows(workspace, "measurements", "2026-10-03T10:00", rows=2)  # a new version, without closing 10:07
    assert reader.read("measurements").num_rows == 6
    assert reader.read("measurements", "2026-10-03T10:07").num_rows == 0
    assert reader.query("SELECT count(*) AS n FROM measurements").column("n").to_pylist() == [6]


def test_as_of_reads_the_past_and_only_reads(reader: Reader, workspace: Path) -> None:  # noqa: F811
    before = datetime.now(UTC)
    deliver(workspace, range(3, 5))
    past = reader.as_of(before)
    assert past.read("measurements").num_rows == 6
    assert past.query("SELECT count(*) AS n FROM measurements").column("n").to_pylist() == [6]
    assert reader.read("measurements").num_rows == 10
    assert type(past) is PastReader
    assert not hasattr(past, "status")
    assert reader.as_of(before.strftime("%Y-%m-%dT%H:%M:%S")).moment == int(before.timestamp())


def test_before_what_is_promised_there_is_no_answer(reader: Reader, workspace: Path) -> None:  # noqa: F811
    """`partwise query --as-of` refuses it as well: half an answer would be worse than none."""
    early = datetime.now(UTC)
    ledger = open_workspace(str(workspace)).open_ledger(time.time())
    with closing(ledger.database), ledger.database.writing(time.time() + 60) as w:
        promise_from(w, early.timestamp() + 30)
    for read in (lambda: reader.as_of(early).read("measurements"), lambda: reader.as_of(early).query("SELECT 1 AS n")):
        with pytest.raises(partwise.PartwiseError, match=r"Reads reach back to .* `history`"):
            read()
    from partwise.reading import NotKept
    from partwise.reading import read as read_sql

    with pytest.raises(NotKept):
        read_sql("SELECT 1", str(workspace), moment=early.timestamp())


def test_status_and_plan_are_those_of_the_commands(reader: Reader, run: Run, workspace: Path) -> None:  # noqa: F811
    load_dimension(workspace, "nodes", 4)
    shown = {row["table"]: row for row in run("status", "--helpers", "--json").json["tables"]}
    found = {row.name: row for row in reader.status()}
    assert found.keys() == shown.keys()
    for name, row in found.items():
        counts = ("parts", "missing", "stale", "blocked", "failed", "quarantined")
        assert {key: getattr(row, key) for key in counts} == {key: shown[name][key] for key in counts}
    assert found["measurements"].last == datetime(2026, 10, 3, 10, 2, tzinfo=UTC)

    planned, plan = run("plan", "--json").json, reader.plan()
    assert [(s.table, s.parts, s.kind, s.reason) for s in plan.steps] == [
        (s["table"], len(s["parts"]), s["kind"], s["reason"]) for s in planned["steps"]
    ]
    assert plan.steps
    assert [(b.table, len(b.waits_for)) for b in plan.blocked] == [
        (b["table"], len(b["waits_for"])) for b in planned["blocked"]
    ]
    only = reader.plan("loss_by_region")
    assert {s.table for s in only.steps} <= {s.table for s in plan.steps}


def test_nothing_is_written(workspace: Path) -> None:  # noqa: F811
    reader = partwise.open(workspace)
    assert reader.status()
    assert reader.plan().steps == ()
    assert not (workspace / "ledger.db").exists()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.query("SELECT * FROM measurement"), "Tables of this workspace: measurements"),
        (lambda r: r.query("SELEC 1"), "SELEC"),
        (lambda r: r.read("measurement"), "There is no table measurement; did you mean measurements?"),
        (lambda r: r.read("high_loss"), "high_loss has no parts yet"),
        (lambda r: r.read("measurements", "yesterday"), "'yesterday' is not a time"),
        (lambda r: r.as_of("yesterday"), "'yesterday' is not a time"),
        (lambda r: r.as_of(datetime(2026, 1, 1)), "has no time zone"),  # noqa: DTZ001
        (lambda r: r.plan("measurements"), "measurements is a source, not a view"),
    ],
)
def test_mistakes_are_errors_with_a_sentence(reader: Reader, call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(partwise.PartwiseError) as why:
        call(reader)
    assert message in str(why.value)


def test_without_a_workspace_or_a_run_there_is_nothing_to_read(tmp_path: Path, workspace: Path) -> None:  # noqa: F811
    with pytest.raises(partwise.PartwiseError, match="there is no folder"):
        partwise.open(tmp_path / "none")
    with pytest.raises(partwise.PartwiseError, match="nothing to read yet"):
        partwise.open(workspace).query("SELECT 1")
    with pytest.raises(partwise.PartwiseError, match="nothing to read yet"):
        partwise.open(workspace).read("measurements")
    assert not (workspace / "ledger.db").exists()


def test_importing_partwise_imports_nothing_else_of_weight() -> None:
    heavy = (
        "sqlglot",
        "pydantic",
        "sqlalchemy",
        "duckdb",
        "pyarrow",
        "deltalake",
        "typer",
        "rich",
        "yaml",
        "partwise.api",
    )
    script = f"import sys, partwise; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=os.environ, capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_the_page_is_made_from_the_code() -> None:
    done = subprocess.run([sys.executable, "tools/api_page.py"], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == (ROOT / "docs/api.md").read_text(), "python tools/api_page.py > docs/api.md"
