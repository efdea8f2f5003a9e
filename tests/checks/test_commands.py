"""Checks and unit tests of views as people meet them: at the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.shell import Shell

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: sales
part: 1 minute
time: at
columns: {at: timestamp, item: string, pieces: int}
files: landing/*.csv
checks:
  - expect_column_values_to_be_between: {column: pieces, min_value: 0}
---
view: sold
part: 1 minute
update: SELECT item, SUM(pieces) AS pieces FROM sales[j] GROUP BY item
checks:
  - expect_column_values_to_be_between: {column: pieces, max_value: 100}
  - expect_table_row_count_to_be_between: {min_value: 2}
    severity: warn
---
view: report
part: 1 minute
update: SELECT COUNT(*) AS items FROM sold[j]
"""
HEAD = "at,item,pieces"
ONE, TWO = "2026-10-03T10:01", "2026-10-03T10:02"


@pytest.fixture
def call(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Shell:
    return Shell(tmp_path, DEFINITIONS, monkeypatch, capsys)


def test_what_failed_is_shown_and_can_be_accepted(call: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["2026-10-03T10:00:00,tea,1", f"{ONE}:00,tea,500", f"{TWO}:00,tea,-3", "2026-10-03T10:03:00,tea,0"]
    call.land("a.csv", HEAD, *rows)
    shown = call("run", code=1)
    assert f"sales[{TWO}] is held back: check failed: 1 of 1 values of pieces" in shown
    assert f"sold[{ONE}]  failed: check failed: 1 of 1 values of pieces" in shown
    assert "sold[2026-10-03T10:00]  warning: check warned: number of rows is 1, expected at least 2" in shown

    why = call("why", "sold", ONE)
    assert "failed its checks" in why
    assert '{"item": "tea", "pieces": 500}' in why
    assert f"`partwise run --accept sold {ONE}`" in why.replace("\n", " ")
    told = call.json("why", "report", ONE)
    assert told["state"] == "waiting"
    assert f"sold[{ONE}] failed its checks" in told["why"]
    source = call.json("why", "sales", TWO)["checks"]
    assert source["results"][0]["rows"] == [
        {"at": "2026-10-03T10:02:00.000Z", "item": "tea", "pieces": -3, "file": "landing/a.csv"}
    ]
    states = {table["table"]: table["failed"] for table in call.json("status")["tables"]}
    assert states == {"sales": 1, "sold": 1, "report": 0}
    counts = [line.split() for line in call("checks").splitlines()]
    assert ["sold", "1", "1"] in counts  # failed and warned
    found = call.json("checks", "sold")["tables"][0]
    assert (found["failed"], found["warned"], found["parts"][0]["part"]) == (1, 1, ONE)

    accepted = call("run", "--accept", "sold", ONE)
    assert f"sold[{ONE}] is accepted by" in accepted
    assert json.loads(call("query", f"SELECT pieces FROM sold WHERE part_timestamp = '{ONE}'", "--json")) == [
        {"pieces": 500}
    ]
    assert call.json("why", "sold", ONE)["checks"]["accepted_by"]
    call("run", "--accept", "sold", ONE, code=1)
    assert "There is nothing to accept" in call.err
    call("run", "--accept", "sales", TWO)
    assert json.loads(call("query", "SELECT SUM(items) AS n FROM report", "--json")) == [{"n": 3}]
    assert call.json("verify")["different"] == []

    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    call("checks", "--open")
    assert opened == [(tmp_path / "data_docs" / "index.html").as_uri()]
    assert "sold" in (tmp_path / "data_docs" / "index.html").read_text()
    pages = [page.read_text() for page in (tmp_path / "data_docs" / "validations").rglob("*.html")]
    assert len(pages) == 6
    assert any("500" in page for page in pages)


CASE = """
view: sold
test: pieces are added up
given:
  sales:
    2026-10-03T10:01: [{item: tea, pieces: 2}, {item: tea, pieces: 3}, {item: jam, pieces: 1}]
expect:
  2026-10-03T10:01: [{item: tea, pieces: 6}, {item: jam, pieces: 1}]
"""
DIFFERENCE = """\
     sold[2026-10-03T10:01]  (- expected, + found)
         item  pieces
       + tea   5
       - tea   6
         1 more row as expected
1 test, 1 failed.
"""


def test_a_unit_test_that_fails_shows_the_rows(call: Shell, tmp_path: Path) -> None:
    tests = tmp_path / "tests" / "views"
    tests.mkdir(parents=True)
    (tests / "sold.yaml").write_text(CASE)
    shown = call("test", "sold", code=1)
    assert shown.startswith("FAIL sold: pieces are added up (")
    assert shown.split("\n", 1)[1] == DIFFERENCE
    (tests / "sold.yaml").write_text(CASE.replace("pieces: 6", "pieces: 5"))
    assert call.json("test")["tests"][0]["ok"]
    (tests / "sold.yaml").write_text(CASE.replace("item: jam", "itm: jam"))
    call("test", code=1)
    assert "sales has no column itm; it has at, item, pieces" in call.err


def test_a_new_workspace_has_a_unit_test_that_passes(call: Shell) -> None:
    call("init", "shop")
    shown = call("test", "revenue", "--workspace", "shop")
    assert "ok   revenue: an order that comes late is counted" in shown
    assert "2 tests, 0 failed." in shown
