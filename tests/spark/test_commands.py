"""The engine's commands as a user calls them, on one small workspace: arrival, late rows, reads, verification."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from partwise.parts import Parts

from .shell import Shell

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
---
view: sold_so_far
part: 1 minute
initialize: SELECT SUM(pieces) AS pieces FROM sold[i]
update: |
  SELECT COALESCE(p.pieces, 0) + COALESCE(n.pieces, 0) AS pieces
  FROM sold_so_far[j-1] p CROSS JOIN (SELECT SUM(pieces) AS pieces FROM sold[j]) n
"""
ROWS = "at,item,pieces\n2026-10-03T10:00:10,tea,1\n2026-10-03T10:01:10,tea,2\n2026-10-03T10:02:10,jam,3\n2026-10-03T10:03:10,jam,9\n"


@pytest.fixture
def call(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Shell:
    """Runs a command in this process; returns what it printed."""
    shell = Shell(tmp_path, DEFINITIONS, monkeypatch, capsys)
    (tmp_path / "landing" / "sales1.csv").write_text(ROWS)
    return shell


def test_a_day_at_the_shell(call: Shell, tmp_path: Path) -> None:
    loaded = json.loads(call("ingest", "--json"))["sources"][0]
    closed = [f"2026-10-03T10:0{n}" for n in range(3)]
    assert (loaded["source"], loaded["files"], loaded["rows"], loaded["closed"]) == ("sales", 1, 4, closed)

    steps = [json.loads(line) for line in call("run", "--json").splitlines()]
    assert [(step["table"], step["parts"], step["changed"]) for step in steps] == [
        ("sold", closed, closed),
        ("sold_so_far", closed, closed),
    ]
    assert "Nothing to do" in call("run")

    total = "SELECT pieces FROM sold_so_far WHERE part_timestamp = '2026-10-03T10:02'"
    assert json.loads(call("query", total, "--json")) == [{"pieces": 6}]
    assert json.loads(call("query", total, "--json", "--engine", "spark")) == [{"pieces": 6}]
    # The minute 10:03 has a row, but is not closed: nobody reads it.
    count = "SELECT count(*) AS n, max(part_timestamp) AS last FROM sales"
    seen = [{"n": 3, "last": "2026-10-03T10:02:00Z"}]
    assert json.loads(call("query", count, "--json")) == seen
    assert (
        json.loads(call("query", count.replace("max(part_timestamp)", "max(part)"), "--json", "--engine", "spark"))[0][
            "n"
        ]
        == 3
    )
    before = call.moment()

    (tmp_path / "landing" / "sales2.csv").write_text("at,item,pieces\n2026-10-03T10:01:30,tea,5\n")
    assert json.loads(call("ingest", "--json"))["sources"][0]["late_rows"] == 1
    plan = json.loads(call("plan", "--json"))
    assert [(s["table"], s["parts"], s["kind"]) for s in plan["steps"]] == [("sold", ["2026-10-03T10:01"], "stale")]
    shown = call("run")
    assert "late rows in sales[2026-10-03T10:01]" in shown

    assert json.loads(call("query", count, "--json")) == [{**seen[0], "n": 4}]
    assert json.loads(call("query", count, "--json", "--as-of", before)) == seen
    sales = json.loads(call("status", "--json"))["tables"][0]
    assert (sales["table"], sales["late"], sales["quarantined"]) == ("sales", 1, 0)
    assert "late rows" in call("status")
    assert json.loads(call("status", "sold", "--json"))["path"] == str(tmp_path / "warehouse" / "sold")
    assert f"other readers: {tmp_path}/warehouse/sold" in call("status", "sold").replace("\n", "")
    assert call("query", total, "--csv").split() == ["pieces", "11"]
    assert json.loads(call("query", total, "--json", "--as-of", before)) == [{"pieces": 6}]
    call("query", total, "--as-of", "2020-01-01", code=1)
    assert "Without any part at that time: sold_so_far" in call.err
    assert json.loads(call("verify", "--json")) == {"checked": 6, "different": [], "stale": 0, "expired": 0}
    assert "0 differences" in call("verify")
    found = json.loads(call("reconcile", "--json"))
    nothing: dict[str, object] = {"adopted": {}, "swept": {}, "busy": {}, "failed": {}, "repaired": []}
    assert found == nothing | {"damaged": {}, "rebuilding": {}}


def test_what_cannot_be_placed_is_shown_and_a_file_can_be_taken_out(call: Shell, tmp_path: Path) -> None:
    (tmp_path / "landing" / "sales2.csv").write_text("at,item,pieces\nyesterday,tea,5\n2026-10-03T10:01:30,tea,7\n")
    loaded = json.loads(call("ingest", "--json"))["sources"][0]
    assert (loaded["rows"], loaded["quarantined"]) == (5, 1)
    found = json.loads(call("quarantine", "sales", "--json"))
    assert [(row["file"], row["line"], row["row"]) for row in found["rows"]] == [
        ("landing/sales2.csv", 2, "yesterday,tea,5")
    ]
    assert "landing/sales2.csv:2" in call("quarantine")
    assert "1 row cannot be placed and stays quarantined" in call("quarantine", "release", "sales")
    assert json.loads(call("status", "--json"))["tables"][0]["quarantined"] == 1
    assert "sales: 1 row quarantined" in call("status")
    call("run")
    sold = "SELECT pieces FROM sold WHERE part_timestamp = '2026-10-03T10:01'"
    assert json.loads(call("query", sold, "--json")) == [{"pieces": 9}]
    taken = json.loads(call("retract", "sales", "sales2.csv", "--json"))["sources"][0]
    assert taken["changed"] == ["2026-10-03T10:01"]
    call("run")
    assert json.loads(call("query", sold, "--json")) == [{"pieces": 2}]
    call("retract", "sales", "sales2.csv", code=1)
    assert json.loads(call("verify", "--json"))["different"] == []


def test_run_tells_of_refused_files_and_reconcile_of_a_table_that_others_wrote_to(call: Shell, tmp_path: Path) -> None:
    (tmp_path / "landing" / "sales_wrong.csv").write_text("when,item,pieces\n")
    (tmp_path / "landing" / "sales_late.csv").write_text("at,item,pieces\nyesterday,tea,5\n")
    steps = [json.loads(line) for line in call("run", "--json", code=1).splitlines()]
    assert {step["table"] for step in steps} == {"sold", "sold_so_far"}
    [told] = [json.loads(line) for line in call.err.splitlines() if line.startswith("{")]
    assert (told["source"], told["quarantined"]) == ("sales", 1)
    assert [(item["file"], "the column at is missing" in item["message"]) for item in told["refused"]] == [
        ("landing/sales_wrong.csv", True)
    ]
    assert "landing/sales_wrong.csv was refused" in call("run", code=1)
    DeltaTable(str(tmp_path / "warehouse" / "sold")).delete()
    assert "was not written by Partwise" in call("reconcile", code=1)
    found = json.loads(call("reconcile", "--json", code=1))
    assert list(found["failed"]) == ["sold"]


def test_a_query_that_fails_names_its_place_and_holds_up_nobody_else(call: Shell, tmp_path: Path) -> None:
    bad = "---\nview: broken\npart: 1 minute\nupdate: |\n  SELECT item, CAST(IF(pieces < 3, '1', item) AS int) AS x\n  FROM sales[j]\n"
    (tmp_path / "view_defs" / "bad.yaml").write_text(bad)
    shown = call("run", code=1)
    assert "broken[2026-10-03T10:02]  failed: view_defs/bad.yaml:5:" in shown
    assert "broken: 1 part failed; `partwise status broken`" in shown
    assert "sold_so_far[2026-10-03T10:00..2026-10-03T10:02]" in shown
    assert "broken[2026-10-03T10:00..2026-10-03T10:01]" in shown
    why = call("why", "broken", "2026-10-03T10:02")
    assert "bad.yaml:5:" in why


def test_verify_finds_what_was_changed_behind_our_back(call: Shell, tmp_path: Path) -> None:
    from partwise import storage
    from partwise.ledger.open import open_ledger
    from partwise.ledger.write.commit import Content, Entry

    call("run")
    path = str(tmp_path / "warehouse" / "sold")
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", time.time())
    held = ledger.take("sold", "someone", 60, time.time())
    handle = storage.open_at(path)
    first = ledger.graph()["sold"]
    part = min(p for file in handle.files for p in (file.lo,) if p is not None)
    gone = storage.rewrite(handle, Parts.single(part)).removed
    entry = Entry("sold", 0, first.fingerprint, 0, part, {part: Content(0, "0:wrong")})
    version = storage.commit(handle, (), gone, {"kind": "step", "entry": entry.to_json()})
    ledger.commit(held, entry, version, time.time())
    ledger.database.close()
    found = json.loads(call("verify", "sold", "--json", code=1))
    assert found["different"]
    assert {item["table"] for item in found["different"]} == {"sold"}


@pytest.mark.parametrize(
    "words, said",
    [
        (("run", "nothing"), "There is no view nothing"),
        (("ingest", "sold"), "sold is a view, not a source"),
        (("verify", "sales"), "sales is a source, not a view"),
    ],
)
def test_wrong_names_are_told(call: Shell, words: tuple[str, ...], said: str) -> None:
    assert said in call(*words, code=2)
