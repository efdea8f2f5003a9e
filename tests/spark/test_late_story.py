"""The story of late data, from the shell: rows come late, exactly the right parts follow, upkeep leaves all of it right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from .shell import Shell

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: m
part: 1 minute
time: at
columns: {at: timestamp, src: string, loss: double}
files: landing/m*.csv
late: {accept: 1 day}
---
view: sums
part: 1 minute
update: SELECT src, SUM(loss) AS loss FROM m[j] GROUP BY src
---
view: high
part: 1 minute
update: SELECT src FROM sums[j] WHERE loss > 10
---
view: worst
share: false
part: 1 minute
strategy: merge
query: SELECT src, MAX(loss) AS loss FROM m [WINDOW 3 minutes] GROUP BY src
---
view: checked
part: 1 minute
repair: manual
update: SELECT COUNT(*) AS n FROM m[j]
---
view: lately
part: 1 minute
keep: 5 minutes
update: SELECT src, COUNT(*) AS n FROM m[j] GROUP BY src
"""


def at(minute: int) -> str:
    return f"2026-10-03T10:{minute:02d}"


def test_the_story(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    shell = Shell(tmp_path / "w", DEFINITIONS, monkeypatch, capsys)
    shell.land("m1.csv", "at,src,loss", *(f"{at(n)}:10,{src},{n}" for n in range(12) for src in "ab"))
    shell("run")
    assert shell.json("status")["tables"][0]["parts"] == 11
    before = shell.moment()

    # A late row: the plan names exactly what it touches, and what is left to people.
    shell.land("m2.csv", "at,src,loss", f"{at(3)}:40,b,2")
    loaded = shell.json("ingest")["sources"][0]
    assert (loaded["late_rows"], loaded["changed"]) == (1, [at(3)])
    plan = shell.json("plan")
    assert {s["table"]: s["parts"] for s in plan["steps"]} == {
        "sums": [at(3)],
        "worst__panes": [at(3)],
        "lately": [at(3)],
    }
    assert [(s["table"], s["parts"]) for s in plan["manual"]] == [("checked", [at(3)])]
    assert "Left to you" in shell("plan")
    assert "late rows in m[2026-10-03T10:03]" in shell("why", "sums", at(3))

    # The run does that and no more; `high` and `worst` find out that nothing changed for them.
    steps = [json.loads(line) for line in shell("run", "--json").splitlines()]
    assert {(s["table"], tuple(s["changed"])) for s in steps} == {
        ("sums", (at(3),)),
        ("high", ()),
        ("worst__panes", ()),
        ("lately", (at(3),)),
    }
    assert shell.json("changes", "sums", "--since", "1 hour")["changes"][0]["part"] == at(3)
    total = f"SELECT SUM(loss) AS x FROM sums WHERE part_timestamp = '{at(3)}'"
    assert shell.json("query", total) == [{"x": 8.0}]
    assert shell.json("query", total, "--as-of", before) == [{"x": 6.0}]

    # What people repair, people repair.
    stale = [p["state"] for p in shell.json("status", "checked", "--range", f"{at(3)}..{at(3)}")["parts"]]
    assert stale == ["manual"]
    lines = shell("backfill", "checked", at(3), "--yes", "--json").splitlines()
    assert json.loads(lines[-1])["report"]["checked"] == {"recomputed": 1, "changed": 1, "unchanged": 0, "left": []}
    assert shell.json("plan")["manual"] == []

    # Upkeep: no revision, nothing to do, and expired is not missing.
    shell("compact", "--older-than", "0 seconds")
    expired = {e["table"]: e["first_kept"] for e in shell.json("retain")["expired"]}
    assert expired == {"lately": at(6)}
    assert shell.json("plan")["steps"] == []
    lately = next(t for t in shell.json("status")["tables"] if t["table"] == "lately")
    assert (lately["parts"], lately["missing"], lately["expired"]) == (5, 0, 6)
    assert "is expired" in shell("why", "lately", at(2))
    assert "is expired" in shell("backfill", "lately", at(2), "--yes", code=2)

    # Late rows for what is gone are stored, counted and shown; those for the rest go their way.
    shell.land("m3.csv", "at,src,loss", f"{at(2)}:50,a,30", f"{at(8)}:50,a,30")
    shell("run")
    assert "late data would have changed 1 part that expired already" in shell("status")
    assert shell.json("query", f"SELECT n FROM lately WHERE src = 'a' AND part_timestamp = '{at(8)}'") == [{"n": 2}]
    shell("backfill", "checked", f"{at(0)}..", "--yes")
    found = shell.json("verify")
    assert found["different"] == []
    assert found["stale"] == 0
    assert shell.json("reconcile")["repaired"] == []
