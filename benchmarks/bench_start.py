"""What people wait for at a prompt: starts, the first run of a workspace, a late row, the load of a small file.

    python benchmarks/bench_start.py [--rounds 3] [--only WORD] [--before DIR]

`--before`: a checkout of an earlier commit, run in turns with this one; without it only the present figures are printed.
Wall time of whole commands, medians, but for `load` (inside of a warm process) and `idle` (CPU time).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEFINITIONS = """
source: m
part: 1 minute
time: t
columns: {t: timestamp, g: bigint, x: double, s: string}
files: landing/*
---
view: v
part: 1 minute
update: SELECT g, COUNT(*) AS n, SUM(x) AS x FROM m[j] GROUP BY g
"""
#: Loads one file after the other in a session that is warm, and prints the seconds of each.
LOADER = """
import json, sys, time
from pathlib import Path
try:
    from spark_jobs.session.session import session
except ImportError:
    from spark_jobs.session import session
from partwise.workspace import open_workspace
from spark_jobs.engine import Engine
from spark_jobs.ingest import ingest

spark, where = session(), open_workspace(str(Path.cwd()))
ledger = where.open_ledger(time.time())
found = where.load()
where.take_over(ledger, found, time.time())
engine = Engine(spark, ledger, found, where.warehouse)
taken = []
for file in sorted(Path("ready").iterdir()):
    file.rename(Path("landing") / file.name)
    began = time.perf_counter()
    done = ingest(engine, where, ["m"], settle=0)
    taken.append(time.perf_counter() - began)
    assert not done[0].refused and done[0].files == 1, done
print(json.dumps(taken))
"""
WARM = 4


@dataclass(frozen=True)
class Tree:
    """A checkout. `jars` may leave the archive of classes out."""

    name: str
    at: Path
    jars: Path

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(self.at), "PARTWISE_JARS": str(self.jars)}

    def run(self, folder: Path, *words: str) -> None:
        self.call(folder, "-m", "partwise.cli", *words)

    def call(self, folder: Path, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=folder, env=self.environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: {words}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def cpu(work: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def written(path: Path, minute: int, rows: int = 10_000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        f"2026-10-03T{minute // 60:02}:{minute % 60:02}:{n % 60:02},{n % 1000},{n / 8},name{n % 50}"
        for n in range(rows)
    )
    path.write_text("\n".join(["t,g,x,s", *lines]) + "\n")


def workspace(at: Path, name: str) -> Path:
    folder = at / name
    (folder / "view_defs").mkdir(parents=True)
    (folder / "landing").mkdir()
    (folder / "partwise.yaml").touch()  # as programs run it: no driver in the background
    (folder / "view_defs/all.yaml").write_text(DEFINITIONS)
    return folder


def idle(trees: list[Tree], at: Path, rounds: int) -> dict[str, list[float]]:
    """CPU of `run` with nothing to do, of that of `status`."""
    found: dict[str, list[float]] = {}
    for tree in trees:
        folder = workspace(at, f"idle-{tree.name}")
        written(folder / "landing/0.csv", 0, 100)
        tree.run(folder, "run")
        for _ in range(rounds):
            pair = [cpu(partial(tree.run, folder, word)) for word in ("run", "status")]
            found.setdefault(tree.name, []).append(pair[0] / pair[1])
            print(f"    {tree.name}: run {pair[0]:.2f} s, status {pair[1]:.2f} s of CPU", flush=True)
    return found


def first_run(trees: list[Tree], at: Path, rounds: int) -> dict[str, list[float]]:
    """`init` and `run`."""
    found: dict[str, list[float]] = {}
    for number in range(rounds):
        for tree in trees:
            folder = at / f"first-{tree.name}-{number}"

            def both(tree: Tree = tree, folder: Path = folder) -> None:
                tree.run(at, "init", str(folder))
                tree.run(folder, "run")

            found.setdefault(tree.name, []).append(timed(both))
    return found


def late_row(trees: list[Tree], at: Path, rounds: int) -> dict[str, list[float]]:
    """`run` after one late row; ours with a driver in the background."""
    found: dict[str, list[float]] = {}
    folders = {tree.name: workspace(at, f"late-{tree.name}") for tree in trees}
    for tree in trees:
        for minute in range(5):
            written(folders[tree.name] / f"landing/{minute}.csv", minute, 1000)
    ours = folders[trees[0].name]
    (ours / "partwise.yaml").write_text("spark: {keep: 5 minutes}\n")
    try:
        for number in range(WARM + rounds):
            for tree in trees:
                if tree is not trees[0] and 0 < number < WARM:
                    continue  # nothing stays warm between its commands
                written(folders[tree.name] / f"landing/late{number}.csv", 1, 1 + number)
                seconds = timed(partial(tree.run, folders[tree.name], "run"))
                if number >= WARM:
                    found.setdefault(tree.name, []).append(seconds)
    finally:
        trees[0].run(ours, "driver", "stop")
    return found


def cold(trees: list[Tree], at: Path, rounds: int) -> dict[str, list[float]]:
    """`run` for one new part in a driver of its own."""
    found: dict[str, list[float]] = {}
    folders = {tree.name: workspace(at, f"cold-{tree.name}") for tree in trees}
    for number in range(rounds + 1):
        for tree in trees:
            written(folders[tree.name] / f"landing/{number}.csv", number)
            seconds = timed(partial(tree.run, folders[tree.name], "run"))
            if number:
                found.setdefault(tree.name, []).append(seconds)
    return found


def load(trees: list[Tree], at: Path, rounds: int) -> dict[str, list[float]]:
    """The load of a CSV file of 10,000 rows in a warm session."""
    found = {}
    for tree in trees:
        folder = workspace(at, f"load-{tree.name}")
        for number in range(WARM + 3 * rounds):
            written(folder / f"ready/{number:03}.csv", number)
        found[tree.name] = json.loads(tree.call(folder, "-c", LOADER))[WARM:]
    return found


#: Name, what is measured, goal as a share of before (of `status`; of the start without the archive).
ROWS: tuple[tuple[str, Callable[[list[Tree], Path, int], dict[str, list[float]]], float | None], ...] = (
    ("idle: CPU of run / of status", idle, None),
    ("first run of a new workspace", first_run, 0.6),
    ("second run after a late row", late_row, 0.25),
    ("load of a small file, warm", load, 0.3),
    ("cold start for one new part", cold, None),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--before", type=Path)
    asked = parser.parse_args()
    jars = Path(os.environ.get("PARTWISE_JARS") or ROOT / ".jars").absolute()
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        plain = at / "jars"  # the same without the archive of classes
        plain.mkdir()
        for jar in jars.glob("*.jar"):
            (plain / jar.name).symlink_to(jar)
        now = Tree("now", ROOT, jars)
        trees = [now, *([Tree("before", asked.before.absolute(), plain)] if asked.before else [])]
        for name, work, goal in ROWS:
            if asked.only not in name:
                continue
            more = [Tree("no archive", ROOT, plain)] if work is cold else []
            taken = work([*trees, *more], at, asked.rounds)
            middle = {who: statistics.median(each) for who, each in taken.items()}
            parts = ", ".join(f"{who} {value:.2f}" for who, value in middle.items())
            ratio = f"; now / before {middle['now'] / middle['before']:.2f}" if "before" in middle else ""
            print(f"{name}: {parts}{ratio}{'' if goal is None else f'  (goal {goal})'}", flush=True)


if __name__ == "__main__":
    main()
