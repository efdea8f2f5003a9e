"""Refresh policies from the shell: parts wait, everybody says so, and one refresh brings all of it."""

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
columns: {at: timestamp, src: string, x: bigint}
files: landing/m*.csv
---
view: sums
part: 1 minute
refresh: {every: 1 hour, behind: 4}
update: SELECT src, SUM(x) AS x FROM m[j] GROUP BY src
---
view: totals
part: 1 minute
update: SELECT SUM(x) AS x FROM sums[j]
---
view: worst
part: 1 minute
strategy: merge
refresh: {every: 1 hour}
query: SELECT src, MAX(x) AS x FROM m [WINDOW 2 minutes] GROUP BY src
"""


def at(minute: int) -> str:
    return f"2026-10-03T10:{minute:02d}"


def steps(shell: Shell, *words: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in shell("run", "--json", *words).splitlines():
        step = json.loads(line)
        found[step["table"]] = found.get(step["table"], []) + step["parts"]
    return found


def test_parts_wait_for_their_policy(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    shell = Shell(tmp_path / "w", DEFINITIONS, monkeypatch, capsys)
    shell.land("m1.csv", "at,src,x", *(f"{at(n)}:10,{src},{n}" for n in range(4) for src in "ab"))
    assert set(steps(shell)) == {"sums", "totals", "worst", "worst__panes"}, "the first change goes at once"
    shell.land("m2.csv", "at,src,x", f"{at(1)}:20,a,100", f"{at(5)}:00,a,1")
    assert steps(shell) == {}
    plan = shell.json("plan")
    deferred = {item["table"]: item for item in plan["deferred"]}
    # One late part and two new ones, fewer than four; the window's panes wait, the window waits for them.
    assert deferred["sums"]["parts"] == [at(1), at(3), at(4)]
    assert deferred["sums"]["waits_for"] == ["3 of 4 parts"]
    assert deferred["worst__panes"]["fires_at"] > deferred["worst__panes"]["since"]
    assert plan["steps"] == []
    assert plan["blocked"] == []  # their readers are not due before something changes
    status = {row["table"]: row for row in shell.json("status", "--helpers")["tables"]}
    assert (status["sums"]["deferred"], status["sums"]["stale"], status["sums"]["blocked"]) == (3, 1, 0)
    assert status["sums"]["refresh"]["why"] == "every 1 hour"
    why = shell("why", "sums", at(1))
    assert "deferred" in why
    assert "3 of 4 parts" in why
    assert "every 1 hour or 4 parts behind, within 1 day; at most 1 hour behind" in shell("explain", "sums")
    # A request does not wait, and brings along what it needs.
    shell("backfill", "totals", at(1), "--yes")
    assert shell.json("query", f"SELECT x FROM totals WHERE part_timestamp = '{at(1)}'") == [{"x": 102}]
    # One part more and the policy fires for all that waits; the window goes on waiting.
    shell.land("m3.csv", "at,src,x", f"{at(0)}:30,b,7", f"{at(6)}:00,a,1")
    done = steps(shell)
    assert done["sums"] == [at(0), at(3), at(4), at(5)]
    assert "worst" not in done
    assert "worst" in steps(shell, "--now")
    assert shell.json("verify")["different"] == []
