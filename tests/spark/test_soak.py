"""Random arrivals, late rows, corrections, kills, backfills and upkeep, for as long as one likes; then everything is right.

    pytest tests/spark/test_soak.py --soak 60

runs for an hour, every command a process of its own that may get SIGKILL at any moment. Without the option a short
one runs in this process, in which commands die at the points that matter most.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from partwise import storage
from partwise.ledger.ledger import Ledger
from partwise.ledger.open import open_ledger

from .shell import Shell

pytestmark = pytest.mark.spark

DEFINITIONS = """
source: m
part: 1 minute
time: {column: at, tie: x}
columns: {at: timestamp, g: string, x: int}
files: landing/m*.csv
---
view: sums
part: 1 minute
update: SELECT g, SUM(x) AS x FROM m[j] GROUP BY g
---
view: total
part: 1 minute
initialize: SELECT SUM(x) AS x FROM sums[i]
update: SELECT p.x + COALESCE(n.x, 0) AS x FROM total[j-1] p CROSS JOIN (SELECT SUM(x) AS x FROM sums[j]) n
---
view: worst
part: 1 minute
query: SELECT g, MAX(x) AS x FROM m [WINDOW 3 minutes] GROUP BY g
---
view: lately
part: 1 minute
keep: 15 minutes
update: SELECT COUNT(*) AS n FROM m[j]
"""
BEGIN = datetime(2026, 10, 3, 10, tzinfo=UTC)
VIEWS = ("sums", "total", "worst")
#: The long one has these as well.
MORE = """
---
view: runs
part: 1 minute
query: SELECT g, COUNT(*) AS n, SUM(x) AS x FROM m PATTERN [a, b+] WHERE a.x > 2 AND b.x > 2 GROUP BY g
---
view: by_hand
part: 1 minute
repair: manual
update: SELECT g, x FROM sums[j] WHERE x > 3
---
dimension: d
columns: {g: string, name: string}
files: landing/d.csv
---
view: named
part: 1 minute
update: SELECT d.name, s.x FROM sums[j-1..j] s JOIN d ON d.g = s.g
"""
#: Views of the long one, to ask for.
ALL = (*VIEWS, "runs", "by_hand", "named")
Call = Callable[[list[str], bool], None]


class Soak:
    """`call` runs a command; its second argument asks for it to be killed on the way, if it can be."""

    def __init__(self, at: Path, seed: int, call: Call, views: tuple[str, ...] = VIEWS) -> None:
        self.rng, self.at, self.call, self.views = random.Random(seed), at, call, views
        self.files: dict[str, list[tuple[int, str, int]]] = {}
        self.minute = 0
        if views is ALL:
            self.rename()
        self.log: list[str] = []

    def write(self, name: str, rows: list[tuple[int, str, int]]) -> None:
        self.files[name] = rows
        lines = [f"{BEGIN + timedelta(minutes=m):%Y-%m-%dT%H:%M}:30,{g},{x}" for m, g, x in rows]
        (self.at / "landing" / name).write_text("\n".join(["at,g,x", *lines]) + "\n")

    def row(self, minute: int) -> tuple[int, str, int]:
        return minute, self.rng.choice("ab"), self.rng.randint(0, 9)

    def arrive(self) -> None:
        many = self.rng.randint(1, 4)
        rows = [self.row(m) for m in range(self.minute, self.minute + many) for _ in range(self.rng.randint(1, 3))]
        self.minute += many
        self.write(f"m{len(self.files)}.csv", rows)

    def late(self) -> None:
        self.write(f"m{len(self.files)}.csv", [self.row(self.rng.randrange(self.minute)) for _ in range(2)])

    def correct(self) -> None:
        name = self.rng.choice(sorted(self.files))
        self.write(name, [(m, g, x + 1) for m, g, x in self.files[name]])

    def backfill(self) -> list[str]:
        first = self.rng.randrange(max(1, self.minute - 1))
        last = min(self.minute - 1, first + self.rng.randint(0, 5))
        text = f"{_text(first)}..{_text(max(first, last))}"
        more = self.rng.choice([[], ["--upstream"], ["--no-downstream"]])
        return ["backfill", self.rng.choice(self.views), text, "--yes", *more]

    def rename(self) -> None:
        lines = [f"{g},{self.rng.choice(['left', 'right'])}" for g in "ab"]
        (self.at / "landing" / "d.csv").write_text("\n".join(["g,name", *lines]) + "\n")

    def once(self) -> None:
        if self.views is ALL and self.rng.random() < 0.1:
            self.rename()
        self.rng.choice([self.arrive, self.arrive, self.late, self.correct] if self.minute else [self.arrive])()
        upkeep = [["compact", "--older-than", "0 seconds"], ["retain"], ["backfill", "--resume", "--yes"]]
        words = self.rng.choice([["run"], ["run"], ["ingest"], self.backfill(), self.rng.choice(upkeep)])
        kill = self.rng.random() < 0.4
        self.log.append(f"{' '.join(words)}{' (killed)' if kill else ''}")
        self.call(words, kill)

    def expected(self) -> dict[tuple[str, str], int]:
        """What `sums` must hold: parts are closed once a later minute has been seen."""
        found: dict[tuple[str, str], int] = {}
        rows = [row for rows in self.files.values() for row in rows]
        newest = max(m for m, _, _ in rows)
        for m, g, x in rows:
            if m < newest:
                found[_text(m), g] = found.get((_text(m), g), 0) + x
        return found


def _text(minute: int) -> str:
    return f"{BEGIN + timedelta(minutes=minute):%Y-%m-%dT%H:%M}"


def check(soak: Soak, output: Callable[..., str]) -> None:
    """Nothing is left to do, every part is what it should be, the ledger is in order."""
    for _ in range(5):
        time.sleep(0.1)
        if "Nothing to do" in output("run"):
            break
    if "by_hand" in soak.views:
        output("backfill", "by_hand", f"{_text(0)}..", "--yes")  # what is stale of it waits for somebody to ask
    rows = json.loads(output("query", "SELECT part_timestamp AS p, g, x FROM sums", "--json"))
    assert {(row["p"][:16], row["g"]): row["x"] for row in rows} == soak.expected()
    found = json.loads(output("verify", "--json"))
    assert found["different"] == []
    assert found["stale"] == 0
    assert json.loads(output("reconcile", "--json"))["repaired"] == []
    ledger = open_ledger(f"sqlite:///{soak.at / 'ledger.db'}", time.time())
    try:
        assert ledger.audit() == {}
    finally:
        ledger.database.close()


class Crash(BaseException):
    """Not an Exception: nothing may catch it and go on, as nothing can after SIGKILL."""


@pytest.mark.slow
def test_a_short_one(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    shell = Shell(tmp_path / "w", DEFINITIONS, monkeypatch, capsys)
    real_commit, real_record = storage.commit, Ledger.commit
    left = -1

    def passing() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Crash

    def commit(*given: Any, **named: Any) -> int:
        passing()
        version = real_commit(*given, **named)
        passing()
        return version

    def record(self: Ledger, *given: Any, **named: Any) -> Any:
        done = real_record(self, *given, **named)
        passing()
        return done

    monkeypatch.setattr(storage, "commit", commit)
    monkeypatch.setattr(Ledger, "commit", record)

    def call(words: list[str], kill: bool) -> None:
        nonlocal left
        left = soak.rng.randint(1, 6) if kill else -1
        try:
            shell(*words, code=None)
        except Crash:
            pass
        left = -1

    soak = Soak(tmp_path / "w", 7, call)
    try:
        for _ in range(8):
            soak.once()
        check(soak, shell)
    except BaseException as why:
        why.add_note("\n".join(soak.log))
        raise


@pytest.fixture
def minutes(request: pytest.FixtureRequest) -> float:
    found: float | None = request.config.getoption("--soak")
    if not found:
        pytest.skip("runs with --soak MINUTES")
    return found


@pytest.mark.timeout(0)
def test_a_long_one(tmp_path: Path, minutes: float, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from spark_jobs.session.connect import server

    Shell(tmp_path / "w", DEFINITIONS + MORE, monkeypatch, capsys)
    seed = int(time.time())
    with server(conf={"spark.sql.shuffle.partitions": "2"}, log=tmp_path / "server.log") as remote:
        environment = {**os.environ, "PARTWISE_SPARK_REMOTE": remote}

        def output(*words: str) -> str:
            command = [sys.executable, "-m", "partwise.cli", *words]
            done = subprocess.run(command, cwd=tmp_path / "w", env=environment, capture_output=True, text=True)
            assert done.returncode in (0, 1), f"{words}: {done.stderr}{done.stdout}"
            return done.stdout

        def call(words: list[str], kill: bool) -> None:
            command = [sys.executable, "-m", "partwise.cli", *words]
            with (tmp_path / "commands.log").open("a") as log:
                child = subprocess.Popen(command, cwd=tmp_path / "w", env=environment, stdout=log, stderr=log)
            try:
                child.wait(soak.rng.uniform(2, 10) if kill else 300)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
                assert kill, f"{words} did not end"

        soak, rounds = Soak(tmp_path / "w", seed, call, ALL), 0
        end = time.monotonic() + minutes * 60
        try:
            while time.monotonic() < end:
                soak.once()
                rounds += 1
                if rounds % 20 == 0:
                    check(soak, output)
            check(soak, output)
        except BaseException as why:
            why.add_note("\n".join([f"seed {seed}", *soak.log, str(tmp_path)]))
            raise
    print(f"{rounds} commands, {soak.minute} parts, {len(soak.files)} files")
