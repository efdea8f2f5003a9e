"""What people type, on a warehouse and landing files in a store: one workspace from its first file to its repair."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from partwise.storage.handle import options
from tests.object_store.store import Lake, reachable
from tests.spark.shell import Shell

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: s
part: 1 minute
time: at
columns: {at: timestamp, k: string, x: int}
files: landing/*.csv
---
view: v
part: 1 minute
refresh: {every: 1 day}
sample: {ratio: 50 %, key: k}
update: SELECT k, SUM(x) AS total FROM s[j] GROUP BY k
---
view: running
part: 1 minute
initialize: SELECT SUM(x) AS total FROM s[i]
update: |
  SELECT COALESCE(p.total, 0) + COALESCE(n.total, 0) AS total
  FROM running[j-1] p CROSS JOIN (SELECT SUM(x) AS total FROM s[j]) n
---
view: recent
part: 1 minute
keep: 3 minutes
update: SELECT COUNT(*) AS n, SUM(x) AS total FROM s[j]
"""
KEYS = [f"k{n}" for n in range(400)]
N = len(KEYS)
DAY = "2026-10-03T10:"
RUNNING = "SELECT total FROM running ORDER BY part"


class StoreShell(Shell):
    """Commands on a workspace of which only the ledger is on a disk."""

    def __init__(self, at: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        super().__init__(at, DEFINITIONS, monkeypatch, capsys)
        self.lake, self.monkeypatch = lake, monkeypatch
        places = f"warehouse: {lake.url}/warehouse\nlanding: {lake.url}/landing\n"
        (at / "partwise.yaml").write_text(f"{places}store: {{endpoint: '{lake.server.url}'}}\nhistory: 1 hour\n")

    def land(self, name: str, *rows: str) -> None:
        self.lake.bucket().put(f"landing/{name}", "\n".join(["at,k,x", *rows, ""]).encode())

    def column(self, sql: str, *more: str) -> list[Any]:
        return [value for row in self.json("query", sql, *more) for value in row.values()]

    def names(self, table: str) -> list[str]:
        """Data files of a table that are in the store."""
        return [
            name for name in self.lake.names(f"warehouse/{table}") if name.endswith(".parquet") and "_log" not in name
        ]

    def leftovers(self) -> list[str]:
        words = ("_staged/", "_ingest", "_verify", "_temporary", "_probe")
        return [name for name in self.lake.names() if any(word in name for word in words)]

    @contextmanager
    def hours_later(self, hours: float, *commands: str) -> Iterator[None]:
        """For these commands the clock goes ahead."""
        with self.monkeypatch.context() as patch:
            for command in commands:
                later = SimpleNamespace(time=lambda: time.time() + 3600 * hours)
                patch.setattr(f"partwise.cli.commands.{command}.time", later)
            yield


@pytest.fixture
def shell(spark: SparkSession, tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> StoreShell:
    reachable(spark, lake)
    return StoreShell(tmp_path / "work", lake, monkeypatch, capsys)


def test_every_command_works_on_a_store(shell: StoreShell) -> None:
    shell.land("a.csv", *(f"{DAY}{m:02d}:00,{k},{m + 1}" for m in range(6) for k in KEYS))
    shell("run")
    sums = [N * (m + 1) for m in range(5)]
    totals = [sum(sums[: m + 1]) for m in range(5)]
    assert shell.column(RUNNING) == totals
    first = shell.json("now")["sequence"]
    loaded = shell.moment()

    # A late row: `running` and `recent` follow, `v` waits for its refresh, its sample does not.
    shell.land("b.csv", *(f"{DAY}01:30,{k},7" for k in KEYS))
    shell("run")
    late = [t + 7 * N * (m >= 1) for m, t in enumerate(totals)]
    assert shell.column(RUNNING) == late
    changed = [item["part"] for item in shell.json("changes", "running", "--since", loaded)["changes"]]
    assert sorted(changed) == [f"2026-10-03T10:0{m}" for m in range(1, 5)]
    look(shell)
    ask(shell, first, totals, late, sum(sums))

    shell("run", "--now", "v")
    assert shell.column("SELECT SUM(total) FROM v") == [sum(sums) + 7 * N]
    assert shell.json("verify")["different"] == []
    keep_up(shell, late)
    come_back(shell, late)
    assert shell.json("verify")["different"] == []
    assert shell.json("audit")["problems"] == []
    assert shell.leftovers() == []


def look(shell: StoreShell) -> None:
    """What only looks: states, reasons, the Parts page."""
    from tests.page.conftest import Client
    from tests.page.serve import Runs, application

    tables = {item["table"]: item for item in shell.json("status")["tables"]}
    assert (tables["running"]["parts"], tables["running"]["stale"], tables["s"]["late"]) == (5, 0, N)
    assert shell.json("status", "running")["path"] == f"{shell.lake.url}/warehouse/running"
    assert "late rows in s" in shell("why", "running", f"{DAY}03")
    page = Client(application(shell.at, None, Runs()))
    for path in ("/heat", f"/part?table=running&part={DAY}03", "/table?table=v", f"/estimate?table=v&part={DAY}01"):
        answer = page.get(path)
        assert answer.status_code == 200, answer.text


def ask(shell: StoreShell, first: int, before: list[int], now: list[int], stale: int) -> None:
    """Answers as of a time, settled, fresh, and by programs of others."""
    assert shell.column(RUNNING, "--as-of", f"@{first}") == before
    assert shell.column("SELECT SUM(total) FROM v") == [stale]
    joined = "SELECT SUM(v.total), (SELECT MAX(total) FROM running) FROM v"
    assert shell.column(joined, "--settled") == [stale, before[-1]]
    cell = shell.json("query", "--fresh", "SELECT SUM(total) AS t FROM v")["rows"][0]["cells"]["t"]
    assert cell["method"] != "exact", cell
    assert cell["low"] <= stale + 7 * N <= cell["high"]
    snapshot = shell.json("now", "--tables")
    table = next(item for item in snapshot["tables"] if item["table"] == "running")
    theirs = DeltaTable(table["path"], version=table["version"], storage_options=options(table["path"]))
    assert theirs.to_pyarrow_table().sort_by("part")["total"].to_pylist() == now


def keep_up(shell: StoreShell, totals: list[int]) -> None:
    """Small files are merged, what nobody needs is removed, and what is old expires."""
    files = shell.names("s")
    merged = {c["table"]: c for c in shell.json("compact", "--older-than", "0 seconds")["compacted"]}
    assert merged["running"]["after"] == 1
    assert set(files) < set(shell.names("s"))  # reads of the last hour are promised
    with shell.hours_later(2, "compact"):
        assert shell.json("compact")["removed"]["s"]["files"] >= len(files)
    assert not set(files) & set(shell.names("s"))
    with shell.hours_later(2, "retain"):
        expired = {e["table"]: e for e in shell.json("retain")["expired"]}
    assert set(expired) == {"recent"}
    assert shell.column("SELECT minute(part_timestamp) FROM recent ORDER BY 1") == [2, 3, 4]
    assert shell.column(RUNNING) == totals
    assert "Nothing to do" in shell("run")


def come_back(shell: StoreShell, totals: list[int]) -> None:
    """A log and a data file are gone: commands say so, and `rebuild` makes the tables again."""
    bucket = shell.lake.bucket("warehouse/running")
    bucket.remove_folder("_delta_log")
    shell.lake.bucket().remove(shell.names("s")[0])
    damaged = shell.json("reconcile", code=1)["damaged"]
    assert set(damaged) == {"running", "s"}
    assert "`partwise rebuild running`" in shell("status", code=None)
    shell("rebuild", "s", "--yes")
    shell("rebuild", "running", "--yes")
    assert shell.column(RUNNING) == totals
    assert "Nothing to do" in shell("run")


def test_keys_that_expire_stop_commands_with_a_sentence_and_nothing_is_lost(shell: StoreShell, tmp_path: Path) -> None:
    """In the middle of a run, too. Renewed ones go on; the profile is read again by itself."""
    profile = tmp_path / "credentials"
    shell.monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        shell.monkeypatch.delenv(name)

    def renew() -> str:
        given = shell.lake.server.temporary_keys()
        profile.write_text("[default]\n" + "".join(f"{name} = {value}\n" for name, value in given.items()))
        return given["aws_access_key_id"]

    old = renew()
    shell.land("a.csv", *(f"{DAY}{m:02d}:00,k,{m + 1}" for m in range(4)))
    # The source is loaded; then its readers' commits are refused.
    shell.lake.server.faults({"match": "/warehouse/(running|recent|v)/", "do": "expire", "key": old, "times": 10**6})
    said = shell("run", code=1) + shell.err
    assert "the keys have expired; renew them" in said
    assert "Traceback" not in said
    shell.lake.server.faults({"match": ".", "do": "expire", "key": old, "times": 10**6})
    rows = "SELECT COUNT(*) FROM s"
    for words in (["run"], ["query", rows], ["compact"], ["retain"], ["reconcile"], ["ingest"], ["status"]):
        said = shell(*words, code=0 if words[0] == "status" else 1) + shell.err
        assert "the keys have expired; renew them" in said, (words, said)
        assert "Traceback" not in said, words
        assert "partwise rebuild" not in said, words  # nothing is destroyed
    renew()
    shell("run")
    assert shell.column(RUNNING) == [1, 3, 6]
    assert shell.json("verify")["different"] == []
    assert "Nothing to do" in shell("run")
    assert shell.leftovers() == []
