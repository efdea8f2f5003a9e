"""What `query --json` makes of values: JSON, whatever a table holds."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from partwise.storage.query import query
from spark_jobs.commands.query import distinct, hint, plain
from tests.cli.conftest import Run
from tests.cli.stand_in import load_rows

MOMENT = datetime(2026, 10, 3, 10, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        (1.5, 1.5),
        (True, True),
        (MOMENT, "2026-10-03T10:05:00Z"),
        (date(2026, 10, 3), "2026-10-03"),
        ({"at": MOMENT, "x": [float("nan"), {"d": Decimal("1.5")}]}, {"at": "2026-10-03T10:05:00Z", "x": [None, {"d": "1.5"}]}),
        ({1: "a"}, {"1": "a"}),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)  # fmt: skip
def test_every_value_is_json(value: Any, shown: Any) -> None:
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == shown


def test_columns_of_one_name_stay_apart() -> None:
    assert distinct(["n", "n", "m", "n"]) == ["n", "n_2", "m", "n_3"]
    assert distinct(["n", "n", "n_2"]) == ["n", "n_3", "n_2"]


@pytest.mark.parametrize("text", ["-- nothing", ";"])
def test_a_query_that_asks_nothing_answers_nothing(text: str) -> None:
    assert query(text, {}).rows == []


def test_nothing_asked_is_wrong_use(run: Run, workspace: Path) -> None:
    done = run("query", "  ")
    assert (done.code, done.out) == (2, "")
    assert "SQL is empty" in done.err


def test_a_table_that_was_never_built_is_told_as_such(run: Run, workspace: Path) -> None:
    assert run("empty", "measurements", "2026-10-03T10:00").code == 0
    done = run("query", "SELECT * FROM total_loss")
    assert done.code == 1
    assert "Without any part yet: total_loss. `partwise plan` shows what is waited for." in done.err
    assert "does not exist" not in done.err
    assert "nowhere does not exist" in run("query", "SELECT * FROM nowhere JOIN measurements USING (src)").err


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_a_table_that_cannot_be_read_is_told_in_words(run: Run, workspace: Path, engine: str) -> None:
    """The ledger knows of a version, but the folder is gone. No Spark is started to find that out."""
    load_rows(workspace, "measurements", "2026-10-03T10:00..2026-10-03T10:14", rows=6)
    done = run("query", "SELECT * FROM measurements", "--engine", engine)
    assert done.code == 1
    assert "unexpected error" not in done.err
    assert "warehouse/measurements" in done.err
    assert "`partwise rebuild TABLE` makes it again" in done.err


def test_a_damaged_log_is_told_without_a_stack_of_frames(run: Run, workspace: Path) -> None:
    load_rows(workspace, "measurements", "2026-10-03T10:00..2026-10-03T10:14", rows=6)
    log = workspace / "warehouse" / "measurements" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_text("garbage\n")
    done = run("query", "SELECT * FROM measurements")
    assert done.code == 1
    assert "cannot be opened" in done.err
    assert "<unknown>" not in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DROP TABLE measurements", "`partwise query` only reads: DROP is no query"),
        ("SELECT * FROM measurements [j]", "References such as measurements[j] belong in definitions"),
        ("SELECT nothing FROM measurements", ""),
    ],
)
def test_what_belongs_elsewhere_is_told(sql: str, said: str) -> None:
    found = hint(sql, ["measurements", "nodes"])
    assert found.strip().startswith(said)
    assert bool(found) == bool(said)


def test_quarantine_shows_what_dimensions_set_aside(run: Run, workspace: Path) -> None:
    assert run("quarantine", "nodes").code == 0
    assert "total_loss is a view, not a source or dimension" in run("quarantine", "total_loss").err
